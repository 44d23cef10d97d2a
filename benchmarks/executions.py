"""Whole executions, everything stored, beside a bare aiohttp loop that writes one batched row per call.

Conversations of three turns stand beside the bare loop of ``conversations``, which stores nothing at all. All
run on the event loop that the commands use.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from evalstudio.cli.project import run_async
from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import StoredEval
from evalstudio.storage.contract import Filters, all_runs

from . import conversations
from .conversations import CONVERSATIONS, SCENARIO, SCRIPT, agent, medians
from .measuring import ROUNDS, BenchmarkLine

RUNS = 400
AT_ONCE = 50
SECONDS = 0.02
QUESTION = "A table for two, please."
ONE_TURN = {
    "name": "one turn",
    "script": [QUESTION],
    "evaluators": [{"type": "regex", "config": {"pattern": r"BK-\d{5}"}}],
}


def measure() -> list[BenchmarkLine]:
    return [*_single_turns(), *_conversations()]


def _conversations() -> list[BenchmarkLine]:
    rounds: list[tuple[tuple[float, float], tuple[float, float]]] = []
    with agent(conversations.SECONDS) as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "ours"
        _project(folder, url, SCENARIO, CONVERSATIONS)
        for _ in range(ROUNDS + 1):
            wall, cpu, _ = run_async(_ours(folder, CONVERSATIONS))
            ours = wall, cpu
            start, cpu = time.perf_counter(), time.process_time()
            run_async(conversations.bare(url, CONVERSATIONS))
            rounds.append((ours, (time.perf_counter() - start, time.process_time() - cpu)))
    # The first round loads modules and opens the database.
    wall, floor_wall, times_wall = medians([(ours[0], bare[0]) for ours, bare in rounds[1:]])
    cpu, floor_cpu, times_cpu = medians([(ours[1], bare[1]) for ours, bare in rounds[1:]])
    per_turn = 1e3 / (CONVERSATIONS * len(SCRIPT))
    return [
        BenchmarkLine(
            f"{CONVERSATIONS} conversations of {len(SCRIPT)} turns, everything stored, wall",
            f"{wall:.2f} s",
            f"{floor_wall:.2f} s bare aiohttp, nothing stored",
            f"{times_wall:.2f} × of at most 1.04 ×",
            times_wall <= 1.04,
        ),
        BenchmarkLine(
            "stored conversations, CPU per turn",
            f"{cpu * per_turn:.2f} ms",
            f"{floor_cpu * per_turn:.2f} ms bare aiohttp, nothing stored",
            f"{times_cpu:.2f} × of at most 1.5 ×",
            times_cpu <= 1.5,
        ),
    ]


def _single_turns() -> list[BenchmarkLine]:
    with agent(SECONDS) as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _project(folder / "ours", url, ONE_TURN, RUNS)
        run_async(_ours(folder / "ours", RUNS))
        walls: tuple[list[float], list[float]] = ([], [])
        latencies: list[float] = []
        for number in range(ROUNDS):
            spent, _, seen = run_async(_ours(folder / "ours", RUNS))
            walls[0].append(spent)
            latencies += seen
            walls[1].append(run_async(_bare(url, folder / f"bare{number}.db")))
    ours, floor = (statistics.median(side) for side in walls)
    latency = statistics.median(latencies)
    return [
        BenchmarkLine(
            f"{RUNS} runs, {AT_ONCE} at a time, everything stored",
            f"{ours:.2f} s",
            f"{floor:.2f} s bare aiohttp and SQLite",
            f"{ours / floor:.2f} × of at most 3 ×",
            ours <= 3 * floor,
        ),
        BenchmarkLine(
            "latency reported for a 20 ms agent, median",
            f"{latency:.1f} ms",
            "20 ms",
            "under 30 ms",
            latency < 30,
        ),
    ]


def _project(folder: Path, url: str, scenario: dict[str, Any], repetitions: int) -> None:
    folder.mkdir()
    (folder / "evalstudio.config.json").write_text(json.dumps({"name": "bench"}))
    name = scenario["name"]
    definitions: dict[str, Any] = {
        "connectors": [
            {"name": "agent", "type": "http", "baseUrl": url, "config": {"responsePath": "messages"}}
        ],
        "scenarios": [scenario],
        "evals": [{"name": "all", "scenarios": [name], "connectors": ["agent"], "repetitions": repetitions}],
    }
    (folder / "evals.json").write_text(json.dumps(definitions))


async def _ours(folder: Path, repetitions: int) -> tuple[float, float, list[float]]:
    """Wall and CPU seconds from queueing to the end, and the latencies that are stored."""
    async with open_workspace(folder / "evalstudio.config.json") as workspace:
        await apply_files(workspace, [folder / "evals.json"])
        wanted = await workspace.store.find("eval", "all")
        assert isinstance(wanted, StoredEval)
        order = await request_for(workspace, wanted)
        start, cpu = time.perf_counter(), time.process_time()
        execution = await start_execution(workspace, order)
        done = await work_off(workspace, execution, stop=asyncio.Event(), concurrency=AT_ONCE)
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
        assert done.counts.passed == repetitions
        runs = [run async for run in all_runs(workspace.store, Filters(execution_id=execution.id))]
        return spent, cpu, [run.latency_ms or 0.0 for run in runs]


async def _bare(url: str, path: Path) -> float:
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY, body TEXT)")
    rows: list[tuple[str]] = []
    left = iter(range(RUNS))
    start = time.perf_counter()
    async with aiohttp.ClientSession() as session:

        async def worker() -> None:
            for _ in left:
                body = {"messages": [{"role": "user", "content": QUESTION}]}
                async with session.post(url, json=body) as response:
                    rows.append((json.dumps(await response.json()),))
                if len(rows) >= AT_ONCE:
                    base.executemany("INSERT INTO calls (body) VALUES (?)", rows)
                    base.commit()
                    rows.clear()

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    base.executemany("INSERT INTO calls (body) VALUES (?)", rows)
    base.commit()
    spent = time.perf_counter() - start
    base.close()
    return spent
