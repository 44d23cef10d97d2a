"""Several processes on one SQLite project: nobody is turned away, nothing is lost, nothing done twice."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evalstudio.project.config import StorageSettings
from evalstudio.storage.contract import Filters
from evalstudio.storage.opening import DEFAULT_PATH, open_store

ROOT = Path(__file__).parents[2]


async def worker(folder: Path, name: str, runs: int) -> tuple[list[str], str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.store_worker",
        str(folder),
        name,
        str(runs),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    out, err = await process.communicate()
    return out.decode().split(), err.decode()


async def share_work(folder: Path, runs: int) -> None:
    told = await asyncio.gather(*(worker(folder, f"w{n}", runs) for n in range(8)))
    assert [err for _, err in told if err] == []
    done = [run_id for finished, _ in told for run_id in finished]
    assert len(done) == len(set(done)) == 8 * runs
    async with await open_store(StorageSettings(), folder) as store:
        executions = (await store.executions()).items
        assert [(one.status, one.counts.passed) for one in executions] == [("completed", runs)] * 8
        assert (await store.runs(Filters(status="running"))).items == []
        kinds = [event.kind for event in await store.events(limit=100_000)]
        assert kinds.count("run.finished") == kinds.count("run.turn") == 8 * runs
        assert len({one["agentId"] for one in (await store.evaluations(limit=1000)).items}) == 8
    with closing(sqlite3.connect(folder / DEFAULT_PATH)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (16 * runs,)


async def test_eight_processes_write_to_one_project_at_once(tmp_path: Path) -> None:
    await share_work(tmp_path, 40)


@pytest.mark.soak
async def test_eight_processes_write_to_one_project_for_long(tmp_path: Path) -> None:
    await share_work(tmp_path, 1000)
