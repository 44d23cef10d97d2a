"""The HTML report of 50,000 runs, beside reading their rows with the database's own library."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import tracemalloc
from pathlib import Path

import orjson

from evalstudio.execution.conclusion import conclude
from evalstudio.project.config import StorageSettings
from evalstudio.reporting.reports import writer_for
from evalstudio.reporting.reports.model import write_reports
from evalstudio.storage.opening import DEFAULT_PATH, open_store

from .comparing import REPETITIONS, ROUNDS, finished_execution
from .measuring import BenchmarkLine, interleaved

RUNS = 50_000
PEAKS = (2_000, 20_000)
_PEAK_SUBJECTS = 200
_MOST_TIMES = 10
_MOST_MEMORY = 1.5


def measure(runs: int = RUNS, peaks: tuple[int, int] = PEAKS) -> list[BenchmarkLine]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        execution = asyncio.run(fill(folder, runs, REPETITIONS))
        ours, floor = interleaved(
            lambda: asyncio.run(written(folder, execution)), lambda: _read_rows(folder, runs), ROUNDS
        )
        small, large = (asyncio.run(peak(folder, number)) for number in peaks)
    return [
        BenchmarkLine(
            f"HTML report of {runs:,} runs, CPU",
            f"{ours:.1f} s",
            f"{floor:.2f} s reading the rows",
            f"{ours / floor:.1f} × of at most {_MOST_TIMES} ×",
            ours <= _MOST_TIMES * floor,
        ),
        BenchmarkLine(
            "HTML report, memory with ten times the repetitions",
            f"{large / 1e6:.1f} MB",
            f"{small / 1e6:.1f} MB",
            f"{large / small:.2f} × of at most {_MOST_MEMORY} ×",
            large <= _MOST_MEMORY * small,
        ),
    ]


async def fill(folder: Path, runs: int, repetitions: int) -> str:
    async with await open_store(StorageSettings(), folder) as store:
        return await finished_execution(store, runs, repetitions, 1)


async def written(folder: Path, execution_id: str) -> None:
    """What ``evalstudio report -f html`` does."""
    async with await open_store(StorageSettings(), folder) as store:
        conclusion = await conclude(store, await store.execution(execution_id), detailed=True)
        with (folder / "report.html").open("w", encoding="utf-8") as file:
            await write_reports(conclusion.source, [writer_for("html", file)])


async def peak(folder: Path, runs: int) -> int:
    """The most memory that a report of the same subjects takes, repeated more or less often."""
    place = folder / f"peak {runs}"
    place.mkdir()
    execution = await fill(place, runs, runs // _PEAK_SUBJECTS)
    tracemalloc.start()
    await written(place, execution)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def _read_rows(folder: Path, runs: int) -> None:
    query = "SELECT r.*, o.output FROM runs r JOIN outputs o ON o.run_id = r.id AND o.attempt = r.attempt"
    connection = sqlite3.connect(folder / DEFAULT_PATH)
    read = sum(1 for *_, output in connection.execute(query) if orjson.loads(output))
    connection.close()
    assert read == runs
