"""Ray at size: memory that does not grow, kills that cost nothing, and as fast as processes.

``EVALSTUDIO_RAY_RECORDS`` is how many records are generated, about 600 bytes each; ten million by default.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import orjson
import pytest
from tests.scoring.test_soak import PLAN
from tests.support.command_line import COMMAND
from tests.support.model_server import Recorded, threaded_server
from tests.support.processes import descendants, megabytes, name_of
from tests.support.s3_server import S3Server, running_s3
from tests.support.scoring_files import Folder, judged_plan, rows

RECORDS = int(os.environ.get("EVALSTUDIO_RAY_RECORDS", "10000000"))
_FILLER = "The booking was made by telephone and confirmed by mail. " * 8
RAY = "ray.jsonl"
# Whatever the size of the dataset.
_MOST_GROWTH_MB = 80
# Of the dataset and its results together.
_BYTES_EACH = 2600


def write_records(path: Path, count: int) -> None:
    with open(path, "wb", buffering=1 << 20) as file:
        for number in range(count):
            said = f"your booking {number} is {'ready' if number % 3 else 'late, darn'}"
            row = {"id": f"r{number}", "response": said, "groundTruth": "your booking is ready"}
            file.write(orjson.dumps(row | {"prompt": _FILLER}) + b"\n")


def workers_of(driver: int) -> list[int]:
    """The actors of the cluster that a driver has started."""
    return [one for one in descendants(driver) if name_of(one).startswith("ray::ScoringActor")]


def start(
    folder: Folder, *arguments: str, dataset: str = "records.jsonl", workers: int = 2
) -> subprocess.Popen[str]:
    command = [COMMAND, "score", dataset, "--plan", "plan.json", "--workers", str(workers), "--json"]
    return subprocess.Popen([*command, *arguments], cwd=folder.path, stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    assert process.returncode == 0, out
    return json.loads(out)


def wait_for_share(folder: Folder, process: subprocess.Popen[str], share: float) -> None:
    """Until so much of the dataset is scored and in the results file."""
    size, manifest = (
        (folder.path / "records.jsonl").stat().st_size,
        folder.path / f"{RAY}.shards/manifest.json",
    )
    while True:
        known = orjson.loads(manifest.read_bytes()) if manifest.exists() else {}
        if known.get("merged", 0) * known.get("shardBytes", 0) >= size * share:
            return
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.2)


class Watched:
    """A command on Ray, and what it and its workers have in memory from one share of the work to another."""

    def __init__(self, folder: Folder, *arguments: str) -> None:
        self.process = start(folder, "-o", RAY, "--on", "ray", *arguments)
        self._folder = folder

    def at(self, share: float) -> tuple[int, int]:
        """Megabytes of the command, and of its largest worker."""
        wait_for_share(self._folder, self.process, share)
        # What is resumed has its share before it has workers.
        while not (workers := workers_of(self.process.pid)):
            assert self.process.poll() is None, "it ended before it could be looked at"
            time.sleep(0.1)
        return megabytes(self.process.pid), max(megabytes(one) for one in workers)

    def check_flat(self, first: float, last: float, between: Callable[[], object] = lambda: None) -> None:
        before = self.at(first)
        between()
        after = self.at(last)
        print(f"\nfrom {first:.0%} to {last:.0%}: command {before[0]} to {after[0]} MB,", end=" ")
        print(f"worker {before[1]} to {after[1]} MB")
        assert max(later - earlier for earlier, later in zip(before, after, strict=True)) < _MOST_GROWTH_MB

    def kill_worker(self) -> None:
        os.kill(workers_of(self.process.pid)[0], signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.mark.soak
def test_ten_million_records_survive_kills_in_flat_memory(tmp_path: Path) -> None:
    folder, began = Folder(tmp_path), time.perf_counter()
    free = shutil.disk_usage(tmp_path).free
    assert free > RECORDS * _BYTES_EACH, (
        f"{RECORDS:,} records need {RECORDS * _BYTES_EACH >> 30} GB on the disk"
    )
    folder.plan(PLAN)
    write_records(tmp_path / "records.jsonl", RECORDS)
    print(f"\n{RECORDS:,} records written in {time.perf_counter() - began:.0f} s")
    # The command itself is killed at the end of this.
    with Watched(folder) as first:
        first.check_flat(0.2, 0.5, first.kill_worker)
    with Watched(folder, "--resume") as second:
        second.check_flat(0.6, 0.9)
        summary = finished(second.process)
    print(f"scored, killed and resumed in {time.perf_counter() - began:.0f} s")
    assert (summary["records"], summary["duplicateIds"]) == (RECORDS, 0)
    assert RECORDS * 0.3 < summary["resumed"] < RECORDS
    check_results(tmp_path / RAY, RECORDS)
    check_size(tmp_path)
    (tmp_path / RAY).unlink()
    (tmp_path / "records.jsonl").unlink()


def check_results(output: Path, count: int) -> None:
    """Every record once, in the order of the dataset."""
    number = -1
    with open(output, "rb", buffering=1 << 20) as file:
        for number, line in enumerate(file):
            assert line.startswith(b'{"recordId":"r%d","line":%d,' % (number, number + 1)), number
    assert number == count - 1


def check_size(folder: Path) -> None:
    """Results are there once: what is in the results file is no longer in shards."""
    results, shards = (folder / RAY).stat().st_size, (folder / f"{RAY}.shards").iterdir()
    beside = sum(one.stat().st_size for one in shards)
    print(f"results {results >> 20} MB, beside them {beside >> 10} kB")
    assert results < RECORDS * _BYTES_EACH
    assert beside < max(1 << 20, results // 100)


@pytest.mark.soak
def test_ray_keeps_up_with_processes(tmp_path: Path) -> None:
    """At least 0.8 of the throughput of ``--workers 2``; starting is left out of both."""
    folder, count = Folder(tmp_path), max(100_000, RECORDS // 20)
    folder.plan(PLAN)
    write_records(tmp_path / "records.jsonl", count)
    rates: dict[str, list[float]] = {"local": [], "ray": []}
    for on in ("local", "ray", "local", "ray"):
        rates[on].append(rate_of(folder, on))
        print(f"\n{on}: {rates[on][-1]:.1f} MB of results per second")
    ratio = max(rates["ray"]) / max(rates["local"])
    print(f"throughput on Ray: {ratio:.2f} of --workers 2")
    assert ratio >= 0.8


def rate_of(folder: Folder, on: str) -> float:
    """Megabytes per second, from the first results to the last."""
    output = folder.path / "timed.jsonl"
    output.unlink(missing_ok=True)
    command, sizes = start(folder, "-o", output.name, "--on", on), list[tuple[float, int]]()
    while command.poll() is None:
        size = output.stat().st_size if output.exists() else 0
        if size > (sizes[-1][1] if sizes else 0):
            sizes.append((time.perf_counter(), size))
        time.sleep(0.02)
    finished(command)
    (began, first), (ended, last) = sizes[0], sizes[-1]
    return (last - first) / (ended - began) / 1e6


@pytest.mark.soak
def test_a_bucket_survives_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results uploaded in several parts, a killed worker, a killed command, and every record once."""
    folder, count = Folder(tmp_path), min(RECORDS, 60_000)
    folder.plan(PLAN)
    write_records(tmp_path / "records.jsonl", count)
    with running_s3(monkeypatch) as s3:
        s3.put("records.jsonl", (tmp_path / "records.jsonl").read_bytes())
        places = ("s3://evals/records.jsonl", "-o", "s3://evals/results/", "--on", "ray")
        first = start(folder, *places[1:], dataset=places[0])
        wait_for_objects(s3, first, 2)
        os.kill(workers_of(first.pid)[0], signal.SIGKILL)
        wait_for_objects(s3, first, 4)
        first.kill()
        first.communicate()
        assert not json.loads(s3.get("results/manifest.json"))["isComplete"]
        summary = finished(start(folder, *places[1:], "--resume", dataset=places[0]))
        assert (summary["records"], summary["duplicateIds"]) == (count, 0)
        assert 0 < summary["resumed"] < count
        lines = s3.lines("results/")
    ids = [line[: line.index(b",")] for line in lines]
    assert ids == [b'{"recordId":"r%d"' % number for number in range(count)]


def wait_for_objects(s3: S3Server, process: subprocess.Popen[str], count: int) -> None:
    """Until so many shards are described in the bucket."""
    described = re.compile(r"results/\d+-[0-9a-f-]+\.json")
    while sum(described.fullmatch(name) is not None for name in s3.names("results/")) < count:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.2)


@pytest.mark.soak
def test_a_hundred_calls_a_minute_are_kept_over_four_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = list[float]()

    def reply(_: Recorded) -> dict[str, Any]:
        moments.append(time.monotonic())
        return {"reasoning": "fine", "score": 5}

    folder = Folder(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "k-123456")
    with threaded_server(reply) as server:
        folder.plan(judged_plan(server.url, 100))
        folder.dataset({**row, "context": {"long": "text " * 800}} for row in rows(140))
        summary = finished(start(folder, "-o", RAY, "--on", "ray", workers=4))
    assert (summary["records"], len(moments)) == (140, 140)
    moments.sort()
    most = max(sum(first <= one < first + 60 for one in moments) for first in moments)
    print(f"\n{most} calls in the busiest minute, {moments[-1] - moments[0]:.0f} s for all")
    # One more than a hundred begins with the minute and ends with it; some arrive late.
    assert most <= 103
