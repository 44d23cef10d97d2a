"""The database or the server goes away while runs are under way: the commands wait, and nothing is lost.

The time it is away is short here; EVALSTUDIO_OUTAGE_SECONDS=560 makes it what is promised, and leaves a
busy machine the rest of the ten minutes to start again.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.faults.ledger import compare
from tests.faults.test_clocks import asked_again
from tests.faults.trial import COMMAND, Trial, begin
from tests.support.api_server import ServerProcess
from tests.support.postgres import PostgresServer, free_port, running_postgres
from tests.support.projects import apply_project, calls, make_project, scripted

SOAK_SECONDS = float(os.environ.get("EVALSTUDIO_OUTAGE_SECONDS", "45"))


async def outage(
    trial: Trial, seconds: float, begin: Callable[[], object], end: Callable[[], object]
) -> None:
    await asked_again(trial, 6)
    await asyncio.to_thread(begin)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(end)
    codes = await trial.end(seconds + 240)
    assert set(codes) == {0}, trial.log[-2000:]
    assert "Traceback" not in trial.log


async def without_postgres(folder: Path, server: PostgresServer, runs: int, seconds: float) -> None:
    storage = {"type": "postgres", "connectionString": server.new_database()}
    trial = await begin(folder, runs, 0.5, storage)
    with trial.cleaned_up():
        trial.worker()
        trial.worker()
        await outage(trial, seconds, server.stop, server.start)
        (await compare(trial.config, runs)).check(f"PostgreSQL away for {seconds:g} s")


async def with_a_locked_file(folder: Path, runs: int, seconds: float) -> None:
    trial = await begin(folder, runs, 0.5, {"type": "sqlite"})
    connection = sqlite3.connect(
        folder / "data" / "evalstudio.db", isolation_level=None, check_same_thread=False
    )
    with trial.cleaned_up():
        trial.worker()
        trial.worker()
        locked: dict[str, Any] = {"begin": lambda: connection.execute("BEGIN EXCLUSIVE")}
        await outage(trial, seconds, locked["begin"], lambda: connection.execute("ROLLBACK"))
        (await compare(trial.config, runs)).check(f"SQLite locked for {seconds:g} s")
    connection.close()


async def without_a_server(folder: Path, runs: int, seconds: float) -> None:
    """``eval run --server`` watches; the server is killed and comes back after a while."""
    config = make_project(folder, [scripted("s", "wait=0.5 one", "wait=0.5 two")], repetitions=runs)
    apply_project(config)
    port = free_port()
    server = ServerProcess(config, port=port)
    server.wait_ready(60)
    trial = Trial(folder, config, runs)
    with trial.cleaned_up():
        watcher = trial.start([*COMMAND, "eval", "run", "--server", server.url])
        while len(calls(folder)) < 6:
            assert watcher.poll() is None, trial.log
            await asyncio.sleep(0.05)
        server.kill()
        await asyncio.sleep(seconds)
        server = ServerProcess(config, port=port)
        try:
            assert await trial.end(seconds + 240) == [0], trial.log[-2000:]
        finally:
            server.stop()
        ledger = await compare(config, runs)
        ledger.check(f"server killed and away for {seconds:g} s")


async def test_a_server_away(tmp_path: Path) -> None:
    await without_a_server(tmp_path, 16, 2)


@pytest.mark.soak
async def test_long_outages(tmp_path: Path) -> None:
    """All at the same time: most of it is waiting."""
    with running_postgres() as server:
        outcomes = await asyncio.gather(
            without_postgres(tmp_path / "postgres", server, 60, SOAK_SECONDS),
            with_a_locked_file(tmp_path / "sqlite", 60, SOAK_SECONDS),
            without_a_server(tmp_path / "server", 60, SOAK_SECONDS),
            return_exceptions=True,
        )
    assert outcomes == [None, None, None]
