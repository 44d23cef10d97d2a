"""The store over SQLite or PostgreSQL: every method is one operation, or a row of small ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from sqlalchemy import ColumnElement

from ..base.json_text import HasJson
from ..evaluators.results import Turn
from ..project.documents import AnyStored, DefinitionKind
from ..project.entities import Execution, Run, RunSummary, new_id
from . import attempts, definitions, lists, queue, run_controls
from . import evaluations as recorded
from . import events as event_log
from .contract import (
    ClaimedRun,
    DefinitionWrite,
    Event,
    Filters,
    GroupedBy,
    Heartbeat,
    IdempotencyKey,
    Lease,
    NewRun,
    Page,
    Pruned,
    RunEnding,
    RunGroup,
    Store,
    Tally,
)
from .events import ListenTask, WakeSignals
from .rows import SnapshotCache
from .transaction import Transaction, known_target, now_ms

T = TypeVar("T")
_ALL = Filters()
_EVENTS_KEPT = timedelta(days=7)


class Database(Protocol):
    """What runs operations: a SQLite file or a PostgreSQL server."""

    signals: WakeSignals
    listen_task: ListenTask

    async def read(self, operation: Callable[[Transaction], T]) -> T: ...
    async def write(self, operation: Callable[[Transaction], T]) -> T: ...
    async def close(self) -> None: ...


class SqlStore(Store):
    """Everything a project keeps, in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._read = database.read
        self._write = database.write
        self._bodies = SnapshotCache()
        self._work_known: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.database.close()

    async def create(self, entity: AnyStored, *, once: IdempotencyKey | None = None) -> AnyStored:
        return await self._write(lambda unit: definitions.create(unit, entity, once))

    async def update(self, entity: AnyStored, *, expected: int | None = None) -> AnyStored:
        return await self._write(lambda unit: definitions.change(unit, entity, expected))

    async def delete(self, kind: DefinitionKind, definition_id: str, *, expected: int | None = None) -> None:
        await self._write(lambda unit: definitions.remove(unit, kind, definition_id, expected))

    async def apply(self, changes: Sequence[DefinitionWrite]) -> None:
        await self._write(lambda unit: definitions.apply(unit, changes))

    # The contract says what type each kind has.
    async def get(self, kind: DefinitionKind, definition_id: str) -> Any:
        return await self._read(lambda unit: definitions.get(unit, kind, definition_id))

    async def find(self, kind: DefinitionKind, name: str) -> Any:
        return await self._read(lambda unit: definitions.find(unit, kind, name))

    async def list_of(
        self, kind: DefinitionKind, filters: Filters = _ALL, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AnyStored]:
        return await self._read(lambda unit: definitions.list_of(unit, kind, filters, cursor, limit))

    async def enqueue(
        self, execution: Execution, runs: Sequence[NewRun], *, once: IdempotencyKey | None = None
    ) -> Execution:
        return await self._write(lambda unit: queue.enqueue(unit, execution, runs, once))

    async def claim(
        self,
        worker_id: str,
        limit: int,
        lease_seconds: float,
        *,
        room: Mapping[str, int] | None = None,
        execution_id: str | None = None,
    ) -> list[ClaimedRun]:
        self._work_known[worker_id] = self.database.signals.work.count
        if limit <= 0:
            return []
        work = partial(
            queue.claim,
            worker_id=worker_id,
            limit=limit,
            lease_seconds=lease_seconds,
            room=room or {},
            execution_id=execution_id,
            bodies=self._bodies,
        )
        claiming = asyncio.ensure_future(self._write(work))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await self._give_back(claiming)
            raise

    async def _give_back(self, claiming: asyncio.Future[list[ClaimedRun]]) -> None:
        """Nobody will work on what was claimed for somebody who has gone."""
        (found,) = await asyncio.gather(claiming, return_exceptions=True)
        if not isinstance(found, BaseException):
            await self.release([claim.lease for claim in found])

    async def wait_for_work(self, worker_id: str, timeout: float) -> bool:
        """Wait until work may have been queued since this worker's last claim; false when time is over."""
        self.database.listen_task.start()
        signal = self.database.signals.work
        return await signal.wait(self._work_known.get(worker_id, signal.count), timeout)

    async def heartbeat(self, leases: Collection[Lease], lease_seconds: float) -> Heartbeat:
        return await self._write(lambda unit: queue.heartbeat(unit, leases, lease_seconds))

    async def append_turn(self, lease: Lease, turn: Turn) -> None:
        await self._write(lambda unit: attempts.append_turn(unit, lease, turn))

    async def finish(self, lease: Lease, ending: RunEnding) -> None:
        await self._write(lambda unit: attempts.finish(unit, lease, ending))

    async def release(self, leases: Collection[Lease]) -> None:
        if leases:
            await self._in_batches(lambda unit: queue.release(unit, leases))

    async def abandon(self, worker_ids: Collection[str]) -> int:
        return await self._in_batches(lambda unit: queue.abandon(unit, worker_ids)) if worker_ids else 0

    async def workers(self) -> list[str]:
        return await self._read(queue.workers)

    async def cancel(self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None) -> int:
        which = run_controls.which_runs(execution_id, run_ids)
        if execution_id is not None:
            await self.execution(execution_id)
            await self._write(lambda unit: run_controls.begin_cancelling(unit, execution_id))
        return await self._cancel_all(which)

    async def _cancel_all(self, which: ColumnElement[bool]) -> int:
        return await self._in_batches(lambda unit: run_controls.cancel_some(unit, which))

    async def retry(self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None) -> int:
        which = run_controls.which_runs(execution_id, run_ids)
        if execution_id is not None:
            await self.execution(execution_id)
        return await self._in_batches(lambda unit: run_controls.retry_some(unit, which))

    async def execution(self, wanted: str) -> Execution:
        return await self._read(lambda unit: lists.get_execution(unit, wanted))

    async def executions(
        self, filters: Filters = _ALL, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Execution]:
        return await self._read(lambda unit: lists.list_executions(unit, filters, cursor, limit))

    async def run(self, wanted: str, *, attempt: int | None = None) -> Run:
        return await self._read(lambda unit: lists.get_run(unit, wanted, attempt))

    async def runs(
        self, filters: Filters = _ALL, *, cursor: str | None = None, limit: int = 50
    ) -> Page[RunSummary]:
        return await self._read(lambda unit: lists.list_runs(unit, filters, cursor, limit))

    async def snapshots(self, run_id: str) -> Mapping[str, Mapping[str, Any] | None]:
        return await self._read(lambda unit: lists.get_snapshots(unit, run_id, SnapshotCache()))

    async def delete_execution(self, wanted: str) -> int:
        """Delete an execution with all that belongs to it; it is out of sight at once."""
        await self._write(lambda unit: run_controls.hide_execution(unit, wanted))
        await self._cancel_all(run_controls.which_runs(wanted, None))
        return await self._in_batches(lambda unit: run_controls.delete_runs_of(unit, wanted))

    async def delete_runs(self, run_ids: Sequence[str]) -> int:
        deleted = 0
        for start in range(0, len(run_ids), run_controls.DELETE_BATCH):
            batch = run_ids[start : start + run_controls.DELETE_BATCH]
            deleted += await self._write(partial(run_controls.delete_runs, run_ids=batch))
        return deleted

    async def prune(self, keep: timedelta) -> Pruned:
        """Delete what ended longer ago than this, and what nothing refers to any more."""
        before = now_ms() - keep // timedelta(milliseconds=1)
        old = await self._read(lambda unit: run_controls.old_executions(unit, before))
        runs = sum([await self.delete_execution(wanted) for wanted in old])
        evaluations = await self._in_batches(lambda unit: run_controls.delete_evaluations(unit, before))
        stale = max(before, now_ms() - _EVENTS_KEPT // timedelta(milliseconds=1))
        events = await self._in_batches(lambda unit: run_controls.delete_events(unit, stale))
        await self._write(run_controls.delete_leftovers)
        return Pruned(len(old), runs, evaluations, events)

    async def events(
        self,
        after_id: int = 0,
        *,
        execution_id: str | None = None,
        run_id: str | None = None,
        limit: int = 500,
    ) -> list[Event]:
        return await self._read(
            lambda unit: event_log.read_events(unit, after_id, execution_id, run_id, limit)
        )

    async def last_event_id(self) -> int:
        return await self._read(event_log.last_event_id)

    async def wait_for_events(self, after_id: int, timeout: float) -> bool:
        """Wait until there is an event after this one; false when the time is over."""
        self.database.listen_task.start()
        signal, clock = self.database.signals.events, asyncio.get_running_loop().time
        deadline = clock() + timeout
        while True:
            known = signal.count
            if await self.last_event_id() > after_id:
                return True
            if not await signal.wait(known, max(0.0, deadline - clock())):
                return False

    async def save_result(self, result: HasJson | Mapping[str, Any]) -> None:
        await self.save_evaluation(result)

    async def save_evaluation(
        self, result: HasJson | Mapping[str, Any], *, once: IdempotencyKey | None = None
    ) -> str:
        row = recorded.evaluation_row(result)
        return await self._write(lambda unit: recorded.keep_evaluation(unit, row, once))

    async def made_by(self, once: IdempotencyKey) -> str | None:
        """The id of what the same request made before."""
        return await self._read(lambda unit: known_target(unit, once))

    async def evaluation(self, wanted: str) -> dict[str, Any]:
        return await self._read(lambda unit: recorded.get_evaluation(unit, wanted))

    async def evaluations(
        self, filters: Filters = _ALL, *, cursor: str | None = None, limit: int = 50
    ) -> Page[dict[str, Any]]:
        return await self._read(lambda unit: recorded.list_evaluations(unit, filters, cursor, limit))

    async def add_feedback(
        self,
        body: Mapping[str, Any],
        *,
        run_id: str | None = None,
        evaluation_id: str | None = None,
        once: IdempotencyKey | None = None,
    ) -> dict[str, Any]:
        identity = new_id()
        return await self._write(
            lambda unit: recorded.add_feedback(unit, identity, body, run_id, evaluation_id, once)
        )

    async def feedback(
        self,
        *,
        run_id: str | None = None,
        evaluation_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[dict[str, Any]]:
        return await self._read(
            lambda unit: recorded.list_feedback(unit, run_id, evaluation_id, cursor, limit)
        )

    async def tally_executions(self, filters: Filters = _ALL, *, limit: int = 50) -> list[Tally]:
        return await self._read(lambda unit: lists.tally_executions(unit, filters, limit))

    async def tally(self, by: GroupedBy, filters: Filters = _ALL) -> list[Tally]:
        return await self._read(lambda unit: lists.tally(unit, by, filters))

    async def run_groups(self, filters: Filters = _ALL) -> list[RunGroup]:
        return await self._read(lambda unit: lists.run_groups(unit, filters))

    async def _in_batches(self, operation: Callable[[Transaction], int]) -> int:
        """Repeat a bounded operation until it finds nothing more to do."""
        done = 0
        while found := await self._write(operation):
            done += found
        return done
