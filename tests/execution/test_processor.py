"""The processor keeps its leases, stops what it has lost, takes over from the dead, gives back at the end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select, text
from tests.execution.test_executing import runs_of, start
from tests.support.projects import calls, make_project, scripted

from evalstudio.execution.processor import GRACE_SECONDS, LEASE_SECONDS, Processor
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.run_worker import AttemptInterrupted, RunWorker
from evalstudio.execution.workers import new_worker_id
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.messages import TokensUsage
from evalstudio.project.entities import Execution, RunSummary, reasons_of
from evalstudio.project.requirements import Budget
from evalstudio.storage import queue
from evalstudio.storage.contract import ClaimedRun
from evalstudio.storage.errors import StorageError, StorageUnavailable
from evalstudio.storage.rows import SnapshotCache
from evalstudio.storage.schema import runs
from evalstudio.storage.transaction import Transaction


class Project:
    """A project with one execution waiting, and its only or first run."""

    def __init__(self, workspace: Workspace, execution: Execution, folder: Path) -> None:
        self.workspace, self.execution, self.folder = workspace, execution, folder
        self.store: Any = workspace.store

    async def runs(self) -> list[RunSummary]:
        return await runs_of(self.workspace, self.execution)

    async def row(self) -> Any:
        return await self.store.database.read(lambda unit: unit.connection.execute(select(runs)).first())

    async def asked(self, count: int) -> None:
        """Wait until the agent was asked so many times."""
        async with asyncio.timeout(60):
            while len(calls(self.folder)) < count:
                await asyncio.sleep(0.02)

    async def stolen(self, worker_id: str) -> list[ClaimedRun]:
        """What a worker held, claimed by another in the same moment."""

        def steal(unit: Transaction) -> list[ClaimedRun]:
            queue.abandon(unit, [worker_id])
            return queue.claim(unit, "other", 1, 60, None, None, SnapshotCache())

        return await self.store.database.write(steal)

    async def done(self) -> bool:
        return (await self.store.execution(self.execution.id)).status == "completed"

    async def idle(self) -> bool:
        return True


@pytest.fixture
def prepared(tmp_path: Path) -> Callable[..., Any]:
    """Opens a project whose agent waits so long, and queues so many runs.

    On SQLite only: what leases mean to each database is tested in tests/storage/test_leases.py.
    """

    @asynccontextmanager
    async def opened(wait: float = 0.0, count: int = 1, **config: Any) -> AsyncIterator[Project]:
        path = make_project(tmp_path, [scripted("s", f"wait={wait} x")], repetitions=count, **config)
        async with open_workspace(path) as workspace:
            yield Project(workspace, await start(workspace, tmp_path), tmp_path)

    return opened


@asynccontextmanager
async def working(processor: Processor, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
    """A processor at work; it does not outlive the block."""
    work = asyncio.create_task(processor.run(**{"stop": asyncio.Event(), **options}))
    try:
        yield work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


class TestLeases:
    async def test_a_lease_is_renewed_well_before_it_ends(self, prepared: Any) -> None:
        # Long enough for a machine that lets this process wait for seconds.
        async with prepared(wait=7.0) as project:
            beats: list[float] = []
            renew = project.store.heartbeat

            async def noted(leases: Any, seconds: float) -> Any:
                beats.append(time.monotonic())
                assert seconds == 6.0
                return await renew(leases, seconds)

            project.store.heartbeat = noted
            processor = Processor(project.workspace, lease_seconds=6.0)
            async with working(processor, until=project.done) as work:
                await project.asked(1)
                while not work.done():
                    assert await project.store.claim("thief", 1, 60) == []
                    await asyncio.sleep(0.05)
                await work
            (run,) = await project.runs()
            assert (run.status, run.attempt) == ("completed", 1)
            # Every third of the lease: one that comes late or fails leaves time for another.
            assert 1.6 < median(later - earlier for earlier, later in pairwise(beats)) < 2.8

    async def test_a_run_is_claimed_for_thirty_seconds(self, prepared: Any) -> None:
        assert (LEASE_SECONDS, GRACE_SECONDS) == (30.0, 5.0)
        async with prepared(wait=20) as project, working(Processor(project.workspace, grace_seconds=0)):
            await project.asked(1)
            left = (await project.row()).lease_until / 1000 - time.monotonic()
            assert 25 < left < 31

    async def test_a_lost_lease_stops_the_work(self, prepared: Any) -> None:
        async with prepared(wait=30) as project:
            processor = Processor(project.workspace, lease_seconds=0.6)
            async with working(processor, until=project.idle) as work:
                await project.asked(1)
                (theirs,) = await project.stolen(processor.worker_id)
                await asyncio.wait_for(work, 5)
            row = await project.row()
            assert (row.worker_id, row.attempt, row.status) == ("other", theirs.lease.attempt, "running")

    async def test_a_cancelled_run_stops_the_work_and_its_neighbour_goes_on(self, prepared: Any) -> None:
        async with prepared(wait=1.5, count=2) as project:
            processor = Processor(project.workspace, lease_seconds=0.6)
            async with working(processor, until=project.done) as work:
                await project.asked(2)
                one, two = await project.runs()
                await project.store.cancel(run_ids=[one.id])
                await asyncio.wait_for(work, 10)
            statuses = {run.id: run.status for run in await project.runs()}
            assert statuses == {one.id: "cancelled", two.id: "completed"}

    async def test_what_is_finished_too_late_is_dropped_and_the_processor_goes_on(
        self, prepared: Any
    ) -> None:
        async with prepared(wait=0.5) as project:
            processor = Processor(project.workspace)
            async with working(processor, until=project.idle) as work:
                await project.asked(1)
                await project.stolen(processor.worker_id)
                await asyncio.wait_for(work, 5)
            assert (await project.row()).worker_id == "other"
            assert len(calls(project.folder)) == 1

    async def test_a_heartbeat_that_failed_is_tried_again(self, prepared: Any) -> None:
        async with prepared(wait=2.5) as project:
            tries: list[int] = []
            renew = project.store.heartbeat

            async def broken_at_first(leases: Any, seconds: float) -> Any:
                tries.append(len(leases))
                if len(tries) == 1:
                    raise StorageError("out of reach")
                return await renew(leases, seconds)

            project.store.heartbeat = broken_at_first
            await asyncio.wait_for(
                Processor(project.workspace, lease_seconds=3).run(stop=asyncio.Event(), until=project.done),
                30,
            )
            assert len(tries) >= 2
            assert set(tries) == {1}
            assert [run.attempt for run in await project.runs()] == [1]

    async def test_without_work_there_is_no_heartbeat(self, prepared: Any) -> None:
        async with prepared() as project:
            await project.store.cancel(execution_id=project.execution.id)

            beats: list[Any] = []

            async def noted(leases: Any, seconds: float) -> Any:
                beats.append(leases)

            project.store.heartbeat = noted
            processor = Processor(project.workspace, lease_seconds=0.09)
            async with working(processor) as work:
                await asyncio.sleep(0.3)
                assert not work.done()
            assert beats == []


class TestTakingOver:
    async def test_runs_of_a_dead_process_are_taken_at_once(self, prepared: Any) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        dead = f"{new_worker_id().partition(':')[0]}:{ended.pid}-0:0000"
        async with prepared() as project:
            assert len(await project.store.claim(dead, 1, 600)) == 1
            await asyncio.wait_for(
                Processor(project.workspace).run(stop=asyncio.Event(), until=project.done), 10
            )
            (run,) = await project.runs()
            assert (run.status, run.attempt) == ("completed", 2)

    async def test_runs_from_before_the_machine_was_started_anew_are_taken_at_once(
        self, prepared: Any
    ) -> None:
        machine, _, rest = new_worker_id().split("/")
        async with prepared() as project:
            assert len(await project.store.claim(f"{machine}/00000000/{rest}", 1, 600)) == 1
            await Processor(project.workspace).run(stop=asyncio.Event(), until=project.idle)
            assert [(run.status, run.attempt) for run in await project.runs()] == [("completed", 2)]

    async def test_runs_of_the_living_are_left_alone(self, prepared: Any) -> None:
        async def unexpected(workers: Any) -> int:
            raise AssertionError("nobody has died, and writing holds up the others")

        async with prepared() as project:
            project.store.abandon = unexpected
            living = new_worker_id()
            assert len(await project.store.claim(living, 1, 600)) == 1
            await Processor(project.workspace).run(stop=asyncio.Event(), until=project.idle)
            assert (await project.row()).worker_id == living


class TestHowMuchAtOnce:
    async def most_running(self, project: Project, processor: Processor) -> int:
        running, most, execute = 0, 0, RunWorker.execute

        async def counted(worker: RunWorker, claimed: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await execute(worker, claimed)
            finally:
                running -= 1

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunWorker, "execute", counted)
            await processor.run(stop=asyncio.Event(), until=project.done)
        return most

    async def test_the_caller_says_how_many(self, prepared: Any) -> None:
        async with prepared(wait=0.15, count=5, maxConcurrency=4) as project:
            assert await self.most_running(project, Processor(project.workspace, concurrency=2)) == 2

    async def test_else_the_project_says_it(self, prepared: Any) -> None:
        async with prepared(wait=0.15, count=5, maxConcurrency=3) as project:
            assert await self.most_running(project, Processor(project.workspace)) == 3

    async def test_a_free_place_is_filled_before_the_others_are_done(self, prepared: Any) -> None:
        async with prepared(wait=0.1, count=4) as project:
            (slow, *_) = await project.runs()
            execute = RunWorker.execute

            async def uneven(worker: RunWorker, claimed: Any) -> Any:
                if claimed.lease.run_id == slow.id:
                    await asyncio.sleep(3)
                return await execute(worker, claimed)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(RunWorker, "execute", uneven)
                processor = Processor(project.workspace, concurrency=2, grace_seconds=0)
                async with working(processor, until=project.done):
                    async with asyncio.timeout(2.5):
                        while sum(run.status == "completed" for run in await project.runs()) < 3:
                            await asyncio.sleep(0.05)

    async def test_it_asks_for_work_when_something_ended_not_all_the_time(self, prepared: Any) -> None:
        async with prepared(wait=0.6, count=2) as project:
            asked: list[int] = []
            claim = project.store.claim

            async def noted(worker: str, limit: int, seconds: float, **more: Any) -> Any:
                asked.append(limit)
                assert limit > 0
                return await claim(worker, limit, seconds, **more)

            project.store.claim = noted
            await Processor(project.workspace, concurrency=4).run(stop=asyncio.Event(), until=project.done)
            assert asked[0] == 4
            assert len(asked) <= 6

    async def test_it_keeps_to_its_execution(self, prepared: Any) -> None:
        async with prepared() as project:
            other = await start(project.workspace, project.folder)
            await Processor(project.workspace, execution_id=other.id).run(
                stop=asyncio.Event(), until=project.idle
            )
            assert (await project.store.execution(other.id)).status == "completed"
            assert (await project.store.execution(project.execution.id)).status == "queued"

    async def test_each_connector_has_its_own_bound(self, prepared: Any) -> None:
        async with prepared(wait=0.1, count=4, maxPerConnector=1) as project:
            begun = time.monotonic()
            most = await self.most_running(project, Processor(project.workspace))
            assert most == 1
            assert time.monotonic() - begun >= 0.4


class TestFailures:
    async def test_an_unexpected_failure_ends_its_run_only(self, prepared: Any) -> None:
        async with prepared(count=2) as project:
            (first, _) = await project.runs()
            execute = RunWorker.execute

            async def broken(worker: RunWorker, claimed: Any) -> Any:
                if claimed.lease.run_id == first.id:
                    raise RuntimeError("boom")
                return await execute(worker, claimed)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(RunWorker, "execute", broken)
                await Processor(project.workspace).run(stop=asyncio.Event(), until=project.done)
            by_id = {run.id: run for run in await project.runs()}
            result = by_id.pop(first.id).result
            assert result is not None
            assert (result.outcome, result.fault) == ("error", "system")
            assert result.reason.startswith("RuntimeError: boom (")
            assert [run.status for run in by_id.values()] == ["completed"]

    async def test_an_interrupted_attempt_is_tried_again_and_says_why(self, prepared: Any) -> None:
        async with prepared() as project:
            execute = RunWorker.execute

            async def interrupted_at_first(worker: RunWorker, claimed: Any) -> Any:
                if claimed.lease.attempt == 1:
                    raise AttemptInterrupted("the process was stopped")
                return await execute(worker, claimed)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(RunWorker, "execute", interrupted_at_first)
                await Processor(project.workspace).run(stop=asyncio.Event(), until=project.idle)
            (run,) = await project.runs()
            assert (run.status, run.attempt) == ("completed", 2)
            first = (await project.store.run(run.id, attempt=1)).result
            assert first.outcome == "error"
            assert first.reason.startswith("Interrupted: the process was stopped.")

    @pytest.mark.parametrize("operation", ["append_turn", "finish", "wait_for_work"])
    async def test_a_database_that_stays_away_stops_the_processor(
        self, prepared: Any, operation: str
    ) -> None:
        async with prepared() as project:

            async def broken(*_: Any, **__: Any) -> Any:
                raise StorageUnavailable("out of reach")

            with pytest.MonkeyPatch.context() as patch:
                # A conversation fails with the database when a turn of it cannot be kept.
                owner = RunWorker if operation == "append_turn" else project.store
                patch.setattr(owner, "execute" if owner is RunWorker else operation, broken)
                with pytest.raises(StorageError, match="out of reach"):
                    await asyncio.wait_for(Processor(project.workspace).run(stop=asyncio.Event()), 10)

    async def test_what_cannot_be_stored_ends_its_own_run_in_an_error(self, prepared: Any) -> None:
        async with prepared(count=3) as project:
            first, *_ = await project.runs()
            finish = project.store.finish

            async def broken(lease: Any, ending: Any) -> None:
                if lease.run_id == first.id and ending.verdict.outcome != "error":
                    raise OverflowError("int too large")
                await finish(lease, ending)

            project.store.finish = broken
            await Processor(project.workspace).run(stop=asyncio.Event(), until=project.done)
            by_id = {run.id: run for run in await project.runs()}
            run = by_id.pop(first.id)
            assert (run.status, run.attempt) == ("error", 1)
            assert run.result is not None
            assert run.result.fault == "system"
            assert "could not be stored: OverflowError: int too large" in run.result.reason
            assert [run.status for run in by_id.values()] == ["completed", "completed"]

    async def test_a_run_whose_end_can_never_be_stored_is_given_up_after_three_attempts(
        self, prepared: Any
    ) -> None:
        async with prepared(count=2) as project:
            first, second = await project.runs()
            finish = project.store.finish

            async def broken(lease: Any, ending: Any) -> None:
                if lease.run_id == first.id:
                    raise StorageError("refused")
                await finish(lease, ending)

            project.store.finish = broken
            await Processor(project.workspace).run(stop=asyncio.Event(), until=project.done)
            by_id = {run.id: run for run in await project.runs()}
            assert (by_id[first.id].status, by_id[first.id].attempt) == ("error", 3)
            result = by_id[first.id].result
            assert result is not None
            assert "after 3 attempts" in result.reason
            assert "StorageError: refused" in result.reason
            assert (by_id[second.id].status, by_id[second.id].attempt) == ("completed", 1)

    @pytest.mark.parametrize("damage", ["case", "snapshot"])
    async def test_a_damaged_row_ends_its_own_run(self, prepared: Any, damage: str) -> None:
        async with prepared(count=3) as project:
            first, *_ = await project.runs()

            def spoil(unit: Transaction) -> int:
                column = '"case"' if damage == "case" else "scenario_snapshot"
                statement = text(f"UPDATE runs SET {column} = '{{\"a' WHERE id = '{first.id}'")
                return unit.connection.execute(statement).rowcount

            await project.store.database.write(spoil)
            await Processor(project.workspace).run(stop=asyncio.Event(), until=project.done)
            row = await project.store.database.read(
                lambda unit: unit.connection.execute(
                    select(runs.c.status, runs.c.fault, runs.c.reason).where(runs.c.id == first.id)
                ).one()
            )
            assert (row.status, row.fault) == ("error", "system")
            assert "cannot be read" in row.reason
            counts = (await project.store.execution(project.execution.id)).counts
            assert (counts.passed, counts.errored, counts.running) == (2, 1, 0)


class TestWorkConservation:
    async def test_new_work_starts_while_a_long_run_is_under_way(self, prepared: Any, tmp_path: Path) -> None:
        async with prepared(wait=30) as project:
            processor = Processor(project.workspace, concurrency=4, grace_seconds=0)
            async with working(processor):
                await project.asked(1)
                await start(project.workspace, tmp_path)
                await project.asked(2)

    async def test_runs_waiting_for_a_full_connector_hold_no_place(self, prepared: Any) -> None:
        async with prepared(wait=0.3, count=6, maxPerConnector=2) as project:
            processor = Processor(project.workspace, concurrency=4)
            async with working(processor, until=project.done) as work:
                while not work.done():
                    row = await project.store.execution(project.execution.id)
                    assert row.counts.running <= 2
                    await asyncio.sleep(0.02)

    async def test_a_connector_limit_holds_over_two_processors(self, prepared: Any) -> None:
        async with prepared(wait=0.2, count=8, maxPerConnector=2) as project:
            first, second = Processor(project.workspace), Processor(project.workspace)
            async with working(first, until=project.done) as one, working(second, until=project.done) as two:
                while not (one.done() and two.done()):
                    row = await project.store.execution(project.execution.id)
                    assert row.counts.running <= 2
                    await asyncio.sleep(0.02)
            assert (await project.store.execution(project.execution.id)).counts.passed == 8


class TestStopping:
    async def test_what_is_nearly_done_may_finish(self, prepared: Any) -> None:
        async with prepared(wait=0.5) as project:
            stop = asyncio.Event()
            async with working(Processor(project.workspace), stop=stop) as work:
                await project.asked(1)
                stop.set()
                await asyncio.wait_for(work, 10)
            assert [run.status for run in await project.runs()] == ["completed"]

    async def test_the_rest_is_released_and_is_no_loss(self, prepared: Any) -> None:
        async with prepared(wait=30) as project:
            stop = asyncio.Event()
            async with working(Processor(project.workspace, grace_seconds=0.2), stop=stop) as work:
                await project.asked(1)
                stop.set()
                await asyncio.wait_for(work, 5)
            row = await project.row()
            assert (row.status, row.attempt, row.losses, row.worker_id) == ("queued", 2, 0, None)

    async def test_what_is_stopped_has_ended_before_another_may_take_it(self, prepared: Any) -> None:
        async with prepared() as project:
            order: list[str] = []
            begun, stop = asyncio.Event(), asyncio.Event()
            release = project.store.release

            async def slow_to_end(worker: RunWorker, claimed: Any) -> Any:
                begun.set()
                try:
                    await asyncio.sleep(600)
                finally:
                    await asyncio.sleep(0.1)
                    order.append("ended")

            async def noted(leases: Any) -> int:
                order.append("released")
                return await release(leases)

            project.store.release = noted
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(RunWorker, "execute", slow_to_end)
                async with working(Processor(project.workspace, grace_seconds=0), stop=stop) as work:
                    await begun.wait()
                    stop.set()
                    await work
            assert order == ["ended", "released"]

    async def test_leases_are_kept_while_the_last_runs_finish(self, prepared: Any) -> None:
        async with prepared(wait=4) as project:
            stop = asyncio.Event()
            processor = Processor(project.workspace, lease_seconds=3)
            async with working(processor, stop=stop) as work:
                await project.asked(1)
                stop.set()
                while not work.done():
                    assert await project.store.claim("thief", 1, 60) == []
                    await asyncio.sleep(0.05)
            assert [(run.status, run.attempt) for run in await project.runs()] == [("completed", 1)]

    async def test_an_idle_processor_stops_at_once(
        self, prepared: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("evalstudio.execution.processor._IDLE_SECONDS", 600)
        async with prepared() as project:
            await project.store.cancel(execution_id=project.execution.id)
            stop = asyncio.Event()
            async with working(Processor(project.workspace), stop=stop) as work:
                await asyncio.sleep(0.2)
                assert not work.done()
                stop.set()
                await asyncio.wait_for(work, 30)

    async def test_a_busy_processor_stops_at_once(self, prepared: Any) -> None:
        async with prepared(wait=30, count=3) as project:
            stop = asyncio.Event()
            processor = Processor(project.workspace, concurrency=1, grace_seconds=0)
            async with working(processor, stop=stop) as work:
                await project.asked(1)
                stop.set()
                await asyncio.wait_for(work, 3)
            assert {run.status for run in await project.runs()} == {"queued"}
            assert len(calls(project.folder)) == 1

    async def test_nothing_outlives_a_processor(self, prepared: Any) -> None:
        async with prepared() as project:
            before = asyncio.all_tasks()
            await Processor(project.workspace).run(stop=asyncio.Event(), until=project.done)
            await asyncio.sleep(0)
            left = {task for task in asyncio.all_tasks() - before if "_keep_leases" in repr(task)}
            assert left == set()

    async def test_new_work_is_found_by_a_processor_that_waits(self, prepared: Any) -> None:
        async with prepared() as project, working(Processor(project.workspace)):
            await project.asked(1)
            while not await project.done():
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.1)
            await start(project.workspace, project.folder)
            await project.asked(2)


async def test_telemetry_is_told_of_an_execution_once_its_last_run_has_ended(prepared: Any) -> None:
    told: list[Any] = []
    async with prepared(count=2) as project:
        processor: Any = Processor(project.workspace, concurrency=1)
        processor._telemetry = SimpleNamespace(execution_ended=told.append)
        await processor.run(stop=asyncio.Event(), until=project.done)
        assert [(one.id, one.status, one.runs["passed"]) for one in told] == [
            (project.execution.id, "completed", 2)
        ]


async def test_a_budget_is_looked_at_after_each_run(prepared: Any) -> None:
    async with prepared(count=5) as project:
        stored = await project.store.find("eval", "all")
        request = replace(await request_for(project.workspace, stored), budget=Budget(max_tokens=10))
        execution = await start_execution(project.workspace, request)
        execute = RunWorker.execute

        async def with_tokens(worker: RunWorker, claimed: Any) -> Any:
            return replace(await execute(worker, claimed), tokens_usage=TokensUsage(total_tokens=6))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunWorker, "execute", with_tokens)
            processor = Processor(project.workspace, concurrency=1, execution_id=execution.id)
            await processor.run(stop=asyncio.Event(), until=project.idle)
        spent = await project.store.execution(execution.id)
        assert spent.counts.passed == 2
        assert "budget" in reasons_of(spent.partial)
