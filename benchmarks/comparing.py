"""Comparing 50,000 runs with 50,000, beside reading their rows with the database's own library."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import orjson
from sqlalchemy import insert, update

from evalstudio.execution.comparing import compare_executions
from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import Execution
from evalstudio.storage import schema
from evalstudio.storage.contract import NewRun, Snapshot
from evalstudio.storage.opening import DEFAULT_PATH, open_store
from evalstudio.storage.store import SqlStore
from evalstudio.storage.transaction import Transaction

from .measuring import BenchmarkLine, interleaved

RUNS = 50_000
REPETITIONS = 10
ROUNDS = 2
_PEAK_SUBJECTS = 200
_SCENARIO = Snapshot.of({"name": "one", "script": ["hello"], "evaluators": [{"type": "regex"}]})
_CONNECTOR = Snapshot.of({"name": "agent", "type": "http"})


def measure() -> list[BenchmarkLine]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base, candidate = asyncio.run(fill(folder, RUNS))
        ours, floor = interleaved(
            lambda: asyncio.run(compared(folder, base, candidate)), lambda: _read_rows(folder), ROUNDS
        )
        small, large = (asyncio.run(peak(folder, share)) for share in (2_000, 20_000))
    return [
        BenchmarkLine(
            f"comparing {RUNS:,} runs with {RUNS:,}, CPU",
            f"{ours:.1f} s",
            f"{floor:.1f} s reading the rows",
            f"{ours / floor:.1f} × of at most 8 ×",
            ours <= 8 * floor,
        ),
        BenchmarkLine(
            "comparing, memory with ten times the repetitions",
            f"{large / 1e6:.0f} MB",
            f"{small / 1e6:.0f} MB",
            f"{large / small:.2f} × of at most 1.5 ×",
            large <= 1.5 * small,
        ),
    ]


async def fill(folder: Path, runs: int, repetitions: int = REPETITIONS) -> tuple[str, str]:
    """Two executions of so many finished runs, whose outputs are as large as those of three evaluators."""
    async with await open_store(StorageSettings(), folder) as store:
        return await finished_execution(store, runs, repetitions, 1), await finished_execution(
            store, runs, repetitions, 2
        )


async def finished_execution(store: SqlStore, number: int, repetitions: int, seed: int) -> str:
    new = [_run(place, repetitions) for place in range(number)]
    execution = await store.enqueue(Execution(eval_id="e", eval_name="all"), new)
    random = Random(seed)

    def finish(unit: Transaction) -> None:
        outputs = [_output(run.id, random) for run in new]
        unit.connection.execute(insert(schema.outputs), outputs)
        for outcome in ("pass", "fail"):
            ids = [one["run_id"] for one in outputs if one["result"]["outcome"] == outcome]
            for start in range(0, len(ids), 5000):
                which = schema.runs.c.id.in_(ids[start : start + 5000])
                ended = {
                    "status": "completed",
                    "outcome": outcome,
                    "latency_ms": 20.0,
                    "answer_hash": outcome,
                }
                unit.connection.execute(update(schema.runs).where(which).values(ended))
        done = {"status": "completed", "queued": 0, "passed": number}
        of_execution = schema.executions.c.id == execution.id
        unit.connection.execute(update(schema.executions).where(of_execution).values(done))

    await store.database.write(finish)
    return execution.id


def _run(place: int, repetitions: int) -> NewRun:
    subject = place // repetitions
    return NewRun(
        _SCENARIO,
        _CONNECTOR,
        scenario_id="s",
        scenario_name="one",
        connector_id="c",
        connector_name="agent",
        case={"name": f"case {subject}", "vars": {"number": subject}},
        repetition=place % repetitions + 1,
    )


def _output(run_id: str, random: Random) -> dict[str, Any]:
    findings = [
        {
            "type": kind,
            "label": kind,
            "name": kind,
            "kind": "assertion",
            "gate": "always",
            "success": random.random() < 0.9,
            "value": random.random(),
            "reason": "what was found, in a sentence or two " * 3,
            "metadata": {"pattern": "BK", "matches": ["BK-12345"]},
            "turn": 1,
            "durationMs": 0.1,
        }
        for kind in ("regex", "tool-usage", "json-schema")
    ]
    output = {
        "totalLatencyMs": 20.0,
        "messageCount": 2,
        "metrics": {"latency": 20.0},
        "evaluatorResults": findings,
    }
    outcome = "pass" if all(one["success"] for one in findings) else "fail"
    return {"run_id": run_id, "attempt": 1, "result": {"outcome": outcome}, "output": output}


async def compared(folder: Path, base: str, candidate: str) -> None:
    async with await open_store(StorageSettings(), folder) as store:
        sides = await store.execution(base), await store.execution(candidate)
        result = await compare_executions(store, *sides)
        assert result.overall.subjects == RUNS // REPETITIONS


async def peak(folder: Path, runs: int) -> int:
    """The most memory that a comparison of the same subjects takes, repeated more or less often."""
    place = folder / f"peak {runs}"
    place.mkdir()
    base, candidate = await fill(place, runs, runs // _PEAK_SUBJECTS)
    async with await open_store(StorageSettings(), place) as store:
        sides = await store.execution(base), await store.execution(candidate)
        tracemalloc.start()
        await compare_executions(store, *sides)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most


def _read_rows(folder: Path) -> int:
    """Every row of both executions, its output read as JSON."""
    query = "SELECT r.*, o.output FROM runs r JOIN outputs o ON o.run_id = r.id AND o.attempt = r.attempt"
    connection = sqlite3.connect(folder / DEFAULT_PATH)
    read = sum(1 for *_, output in connection.execute(query) if orjson.loads(output))
    connection.close()
    assert read == 2 * RUNS
    return read
