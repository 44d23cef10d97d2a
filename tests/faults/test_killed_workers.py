"""``kill -9`` at any moment: every run ends exactly once, nothing finished is lost or repeated."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.faults.ledger import compare
from tests.faults.trial import Trial, begin
from tests.support.postgres import PostgresServer
from tests.support.projects import calls

from evalstudio.project.entities import RunSummary

Storage = Callable[[], dict[str, Any]]


@dataclass
class Seen:
    """What was known to be finished after a kill, and how long the agent's log was then."""

    finished: dict[str, RunSummary]
    logged: int


@dataclass
class Killing:
    """A trial whose workers are killed, with what was known after each kill."""

    trial: Trial
    seen: list[Seen] = field(default_factory=list[Seen])

    def kill_one(self, pick: random.Random) -> None:
        """Kill the one that has been at work for longer, mostly; the other may still be starting."""
        workers = self.trial.workers
        self.trial.kill(workers[0] if pick.random() < 0.8 else pick.choice(workers))

    async def note(self) -> int:
        runs = await self.trial.look()
        # Read afterwards: by now the agent's log has every call of what is finished.
        logged = len(calls(self.trial.folder))
        finished = {run.id: run for run in runs if run.status in ("completed", "error")}
        self.seen.append(Seen(finished, logged))
        return len(finished)


async def torment(killing: Killing, rounds: int, disturb: Callable[[], None] | None = None) -> int:
    """Two workers; kill one at a random moment, start another, again and again; then let them finish."""
    pick, trial, kills = random.Random(11), killing.trial, 0
    trial.worker()
    trial.worker()
    for number in range(rounds):
        asked = len(calls(trial.folder))
        while len(calls(trial.folder)) == asked:
            await asyncio.sleep(0.02)
        await asyncio.sleep(pick.uniform(0.05, 1.2))
        if disturb is not None and number % 8 == min(4, rounds // 2):
            disturb()
        killing.kill_one(pick)
        kills += 1
        finished = await killing.note()
        trial.worker()
        if finished == trial.runs:
            break
    await trial.end()
    await killing.note()
    return kills


def check(killing: Killing, runs: list[RunSummary]) -> None:
    """Nothing that was finished was touched again."""
    trial = killing.trial
    assert {run.status for run in runs} == {"completed"}, trial.log[-2000:]
    assert "Traceback" not in trial.log
    asked = calls(trial.folder)
    final = {run.id: run for run in runs}
    for seen in killing.seen:
        for run_id, before in seen.finished.items():
            after = final[run_id]
            assert after.completed_at == before.completed_at
            assert after.attempt == before.attempt
        again = {call["run"].partition("-")[0] for call in asked[seen.logged :]}
        assert not again & set(seen.finished), "a finished run was executed again"


async def killed_again_and_again(
    folder: Path,
    storage: dict[str, Any],
    runs: int,
    seconds: float,
    rounds: int,
    disturb: Callable[[], None] | None = None,
) -> None:
    trial = await begin(folder, runs, seconds, storage)
    with trial.cleaned_up():
        killing = Killing(trial)
        kills = await torment(killing, rounds, disturb)
        check(killing, await trial.look())
        ledger = await compare(trial.config, runs)
        assert ledger.attempts > runs, "no kill interrupted anything"
        restarts = ", crashes of the server among them" if disturb else ""
        ledger.check(f"{kills} kills on {storage['type']}{restarts}")


async def test_a_few_kills(tmp_path: Path, storage: Storage) -> None:
    await killed_again_and_again(tmp_path, storage(), runs=40, seconds=0.3, rounds=2)


@pytest.mark.soak
async def test_forty_kills(tmp_path: Path, storage: Storage) -> None:
    await killed_again_and_again(tmp_path, storage(), runs=300, seconds=0.5, rounds=40)


async def test_postgres_restarted_in_the_middle(tmp_path: Path, postgres: PostgresServer) -> None:
    storage = {"type": "postgres", "connectionString": postgres.new_database()}
    await killed_again_and_again(tmp_path, storage, runs=40, seconds=0.3, rounds=2, disturb=postgres.restart)


@pytest.mark.soak
async def test_postgres_crashes_among_forty_kills(tmp_path: Path, postgres: PostgresServer) -> None:
    storage = {"type": "postgres", "connectionString": postgres.new_database()}
    await killed_again_and_again(
        tmp_path, storage, runs=300, seconds=0.5, rounds=40, disturb=postgres.restart
    )
