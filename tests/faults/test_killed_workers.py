"""``kill -9`` at any moment: every run ends exactly once, nothing finished is lost or repeated."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres import PostgresServer
from tests.support.projects import calls, make_project, scripted

from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import all_runs
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import RunSummary, StoredEval
from evalstudio.storage.contract import Filters

Storage = Callable[[], dict[str, Any]]


@dataclass
class Seen:
    """What was known to be finished after a kill, and how long the agent's log was then."""

    finished: dict[str, RunSummary]
    logged: int


@dataclass
class Trial:
    folder: Path
    config: Path
    runs: int
    seen: list[Seen] = field(default_factory=list[Seen])
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list[Any])

    def worker(self) -> None:
        command = [sys.executable, "-m", "evalstudio", "worker", "--until-done", "--concurrency", "4"]
        with open(self.folder / "worker.log", "ab") as log:
            self.workers.append(
                subprocess.Popen(
                    [*command, "--config", str(self.config)], stdout=log, stderr=log, cwd=self.folder
                )
            )

    def kill_one(self, pick: random.Random) -> None:
        """Kill the one that has been at work for longer, mostly; the other may still be starting."""
        victim = self.workers[0] if pick.random() < 0.8 else pick.choice(self.workers)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.workers.remove(victim)

    async def look(self) -> list[RunSummary]:
        async with open_workspace(self.config) as workspace:
            return [run async for run in all_runs(workspace.store, Filters())]

    async def note(self) -> int:
        logged = len(calls(self.folder))
        runs = await self.look()
        finished = {run.id: run for run in runs if run.status in ("completed", "error")}
        self.seen.append(Seen(finished, logged))
        return len(finished)


async def begin(folder: Path, runs: int, seconds: float, storage: dict[str, Any]) -> Trial:
    script = (f"wait={seconds} one", f"wait={seconds} two")
    config = make_project(folder, [scripted("s", *script)], repetitions=runs, storage=storage)
    async with open_workspace(config) as workspace:
        await apply_files(workspace, [folder / "evals.json"])
        wanted = await workspace.store.find("eval", "all")
        assert isinstance(wanted, StoredEval)
        await start_execution(workspace, await request_for(workspace, wanted))
    return Trial(folder, config, runs)


async def torment(trial: Trial, rounds: int, disturb: Callable[[], None] | None = None) -> None:
    """Two workers; kill one at a random moment, start another, again and again; then let them finish."""
    pick = random.Random(11)
    trial.worker()
    trial.worker()
    for number in range(rounds):
        asked = len(calls(trial.folder))
        while len(calls(trial.folder)) == asked:
            await asyncio.sleep(0.02)
        await asyncio.sleep(pick.uniform(0.05, 1.2))
        if disturb is not None and number == rounds // 2:
            disturb()
        trial.kill_one(pick)
        finished = await trial.note()
        trial.worker()
        if finished == trial.runs:
            break
    deadline = time.monotonic() + 120
    while any(worker.poll() is None for worker in trial.workers) and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    await trial.note()


def check(trial: Trial, runs: list[RunSummary]) -> None:
    log = (trial.folder / "worker.log").read_text()
    assert len(runs) == trial.runs
    assert {run.status for run in runs} == {"completed"}, log[-2000:]
    assert "Traceback" not in log
    asked = calls(trial.folder)
    final = {run.id: run for run in runs}
    for seen in trial.seen:
        for run_id, before in seen.finished.items():
            after = final[run_id]
            assert after.completed_at == before.completed_at
            assert after.attempt == before.attempt
        again = {call["run"].partition("-")[0] for call in asked[seen.logged :]}
        assert not again & set(seen.finished), "a finished run was executed again"
    for run in runs:
        name = run.id if run.attempt == 1 else f"{run.id}-{run.attempt}"
        assert [call["turn"] for call in asked if call["run"] == name] == [1, 2]


async def killing(
    folder: Path,
    storage: dict[str, Any],
    runs: int,
    seconds: float,
    rounds: int,
    disturb: Callable[[], None] | None = None,
) -> None:
    trial = await begin(folder, runs, seconds, storage)
    try:
        await torment(trial, rounds, disturb)
        check(trial, await trial.look())
        attempts = sum(run.attempt for run in await trial.look())
        assert attempts > runs, "no kill interrupted anything"
        print(
            f"\n{rounds} kills over {runs} runs: all ended once, {attempts - runs} attempts were interrupted"
        )
    finally:
        for worker in trial.workers:
            worker.kill()
            worker.wait()


async def test_a_few_kills(tmp_path: Path, storage: Storage) -> None:
    await killing(tmp_path, storage(), runs=60, seconds=0.3, rounds=3)


@pytest.mark.soak
async def test_thirty_kills_over_two_hundred_runs(tmp_path: Path, storage: Storage) -> None:
    await killing(tmp_path, storage(), runs=200, seconds=0.5, rounds=30)


async def test_postgres_restarted_in_the_middle(tmp_path: Path, postgres: PostgresServer) -> None:
    storage = {"type": "postgres", "connectionString": postgres.new_database()}
    await killing(tmp_path, storage, runs=60, seconds=0.3, rounds=3, disturb=postgres.restart)


@pytest.mark.soak
async def test_postgres_restarted_among_thirty_kills(tmp_path: Path, postgres: PostgresServer) -> None:
    storage = {"type": "postgres", "connectionString": postgres.new_database()}
    await killing(tmp_path, storage, runs=200, seconds=0.5, rounds=30, disturb=postgres.restart)
