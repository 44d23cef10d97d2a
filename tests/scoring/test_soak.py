"""Datasets at size: memory that does not grow, and a kill in the middle that costs nothing.

The normal suite runs a reduced size; ``make soak`` runs a million records and prints its numbers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
from tests.support.command_line import COMMAND

PLAN = {
    "criteria": [
        {"name": "long-enough", "weight": 2},
        {"name": "close", "scale": "numeric"},
        {"name": "clean"},
        {"name": "complete", "scale": "likert5"},
    ],
    "evaluators": [
        {"type": "rule-based", "rules": [{"criterionName": "long-enough", "type": "length", "min": 5}]},
        {"type": "lexical-similarity", "criterionName": "close"},
        {"type": "toxicity", "criterionName": "clean", "toxicTerms": ["darn", "heck"]},
        {"type": "keyword-coverage", "criterionName": "complete", "expectedKeywords": ["booking", "ready"]},
    ],
}
SCORE = """
import sys, time
from pathlib import Path
from evalstudio.scoring.job import ScoringJob
from evalstudio.scoring.job import score_dataset
from tests.support.memory import peak_megabytes
start = time.perf_counter()
job = ScoringJob(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), resume=True)
summary, _ = score_dataset(job)
print(summary.records, peak_megabytes(), round(time.perf_counter() - start, 1))
"""


def write_records(path: Path, count: int) -> None:
    with open(path, "wb") as file:
        for number in range(count):
            said = f"your booking {number} is {'ready' if number % 3 else 'late, darn'}"
            row = {"id": f"r{number}", "response": said, "groundTruth": "your booking is ready"}
            file.write(orjson.dumps(row) + b"\n")


def measured(dataset: Path, plan: Path, output: Path) -> tuple[int, int, float]:
    """Records, peak memory in megabytes and seconds of one scoring process."""
    arguments = [sys.executable, "-c", SCORE, str(dataset), str(plan), str(output)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    records, megabytes, seconds = done.stdout.split()
    return int(records), int(megabytes), float(seconds)


def kill_in_the_middle(dataset: Path, plan: Path, output: Path, count: int) -> int:
    """Start the command, kill it once part of its results are there, and say how many lines it left."""
    running = subprocess.Popen(
        [COMMAND, "score", str(dataset), "-c", str(plan), "-o", str(output)], stdout=subprocess.DEVNULL
    )
    # A result takes some 900 bytes.
    while not output.exists() or output.stat().st_size < count * 300:
        assert running.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    running.kill()
    running.wait()
    return output.read_bytes().count(b"\n")


def check_results(output: Path, count: int) -> None:
    with open(output, "rb") as file:
        number = -1
        for number, line in enumerate(file):
            result = orjson.loads(line)
            assert (result["recordId"], result["line"]) == (f"r{number}", number + 1)
    assert number + 1 == count


def prepare(folder: Path, small: int, large: int) -> tuple[Path, Path, int]:
    """The large dataset, the plan, and the memory that the small one takes."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps(PLAN))
    write_records(folder / "small.jsonl", small)
    write_records(folder / "large.jsonl", large)
    _, little, _ = measured(folder / "small.jsonl", plan, folder / "small-results.jsonl")
    return folder / "large.jsonl", plan, little


def kill_and_resume(dataset: Path, plan: Path, little: int, count: int) -> None:
    output = dataset.with_name("killed.jsonl")
    kept = kill_in_the_middle(dataset, plan, output, count)
    records, much, _ = measured(dataset, plan, output)
    print(f"killed after {kept:,} records, resumed to {records:,}; peak memory {much} MB")
    assert 0 < kept < count
    assert records == count
    assert much <= little * 1.2
    check_results(output, count)


def test_memory_stays_flat_and_a_kill_costs_nothing(tmp_path: Path) -> None:
    dataset, plan, little = prepare(tmp_path, 10_000, 40_000)
    kill_and_resume(dataset, plan, little, 40_000)


@pytest.mark.soak
def test_a_million_records_in_flat_memory_with_a_kill_in_the_middle(tmp_path: Path) -> None:
    dataset, plan, little = prepare(tmp_path, 10_000, 1_000_000)
    output = dataset.with_name("straight.jsonl")
    records, much, seconds = measured(dataset, plan, output)
    print(f"\n{records:,} records in {seconds:.0f} s; peak memory {much} MB, {little} MB at 10,000")
    assert records == 1_000_000
    assert much <= little * 1.2
    check_results(output, 1_000_000)
    kill_and_resume(dataset, plan, little, 1_000_000)
