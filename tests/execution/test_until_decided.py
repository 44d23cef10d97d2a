"""Repeating until decided is kept in the database: any worker goes on, and none repeats anything twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.execution.test_executing import runs_of
from tests.support.projects import apply_project, make_project, scripted

from evalstudio.execution import until_decided
from evalstudio.execution.processor import Processor, work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.until_decided import RepetitionKeeper
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.project.entities import Execution


@asynccontextmanager
async def started(folder: Path, *, repetitions: int = 3) -> AsyncIterator[tuple[Workspace, Execution]]:
    """An execution of two scenarios, one of which fails, that is to be repeated until it is decided."""
    path = make_project(folder, [scripted("good", "x"), scripted("bad", "y", pattern="zzz")])
    apply_project(path)
    async with open_workspace(path) as workspace:
        stored = await workspace.store.find("eval", "all")
        assert stored is not None
        request = await request_for(workspace, stored, repetitions=repetitions)
        yield workspace, await start_execution(workspace, replace(request, until_decided=True))


async def without_looking(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on what is queued with a processor that dies before it decides about more."""

    async def die(keeper: RepetitionKeeper, execution_id: str | None = None) -> None:
        return None

    async def nothing_queued() -> bool:
        return True

    with monkeypatch.context() as patched:
        patched.setattr(RepetitionKeeper, "look", die)
        await Processor(workspace).run(stop=asyncio.Event(), until=nothing_queued)


async def repetitions_of(workspace: Workspace, execution: Execution) -> list[tuple[str, int]]:
    return sorted((run.scenario_name, run.repetition) for run in await runs_of(workspace, execution))


async def test_another_worker_goes_on_where_one_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Once at the start and after each run: nobody waits until the dead are looked for again.
    monkeypatch.setattr("evalstudio.execution.processor._TAKE_OVER_SECONDS", 600)
    async with started(tmp_path) as (workspace, execution):
        await without_looking(workspace, monkeypatch)
        waiting = await workspace.store.execution(execution.id)
        assert (waiting.status, waiting.counts.finished, waiting.partial) == ("running", 2, "unfinished")
        done = await asyncio.wait_for(work_off(workspace, execution, stop=asyncio.Event()), 30)
        assert (done.status, done.partial) == ("completed", None)
        assert await repetitions_of(workspace, execution) == [("bad", 1), *(("good", n) for n in (1, 2, 3))]


async def test_two_workers_that_look_at_once_queue_one_repetition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(tmp_path) as (workspace, execution):
        await without_looking(workspace, monkeypatch)
        keepers = [RepetitionKeeper(workspace.store) for _ in range(4)]
        await asyncio.gather(*(keeper.look() for keeper in keepers))
        again = await workspace.store.execution(execution.id)
        assert (again.counts.queued, again.partial) == (1, "unfinished")
        assert await repetitions_of(workspace, execution) == [("bad", 1), ("good", 1), ("good", 2)]


async def test_it_can_be_cancelled_while_it_waits_for_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(tmp_path) as (workspace, execution):
        await without_looking(workspace, monkeypatch)
        await workspace.store.cancel(execution_id=execution.id)
        over = await workspace.store.execution(execution.id)
        assert (over.status, over.partial) == ("completed", "cancelled")
        await RepetitionKeeper(workspace.store).look()
        assert len(await runs_of(workspace, execution)) == 2


async def test_what_cannot_be_judged_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: object, **__: object) -> None:
        raise ValueError("a damaged row")

    async with started(tmp_path) as (workspace, execution):
        monkeypatch.setattr(until_decided, "early_decisions", unreadable)
        done = await asyncio.wait_for(work_off(workspace, execution, stop=asyncio.Event()), 30)
        assert (done.status, done.partial) == ("completed", "unreadable")
