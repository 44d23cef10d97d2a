"""The store over SQLite or PostgreSQL: every method is one operation, or a row of small ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import wraps
from types import CoroutineType, TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from ..base.json_text import HasJson
from ..base.outages import OutagePolicy
from ..project.documents import DefinitionKind
from ..project.entities import (
    StoredConnector,
    StoredEval,
    StoredMonitor,
    StoredPersona,
    StoredScenario,
    new_id,
)
from . import alarms as raised
from . import (
    attempts,
    comparing,
    definitions,
    lists,
    model_limits,
    monitoring,
    production,
    queue,
    recording,
    repeating,
    retention,
    run_controls,
    tallies,
)
from . import conversations as production_lists
from . import ended_sessions as logouts
from . import evaluations as recorded
from . import events as event_log
from .contract import ClaimedRun, IdempotencyKey, Lease, Pruned
from .errors import InUse, NotFound
from .events import ListenTask, WakeSignals
from .rows import SnapshotCache
from .transaction import Transaction, known_target, mark_partial, now_ms, remember_once

P = ParamSpec("P")
T = TypeVar("T")
_EVENTS_KEPT = timedelta(days=7)


class Database(Protocol):
    """What runs operations: a SQLite file or a PostgreSQL server."""

    signals: WakeSignals
    outages: OutagePolicy
    listen_task: ListenTask

    @property
    def on_one_machine(self) -> bool: ...
    async def read(self, operation: Callable[[Transaction], T], *, at_once: bool = False) -> T: ...
    async def write(self, operation: Callable[[Transaction], T]) -> T: ...
    async def close(self) -> None: ...


Operation = Callable[Concatenate[Transaction, P], T]
Method = Callable[Concatenate["SqlStore", P], "CoroutineType[Any, Any, T]"]


def _reading(operation: Operation[P, T]) -> Method[P, T]:
    """The method that runs an operation which only reads."""

    @wraps(operation)
    async def method(store: SqlStore, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.database.read(lambda unit: operation(unit, *args, **kwargs))

    return method


def _reading_at_once(operation: Operation[P, T]) -> Method[P, T]:
    """The same of one whose statements are right by themselves: SQLite needs no transaction around them."""

    @wraps(operation)
    async def method(store: SqlStore, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.database.read(lambda unit: operation(unit, *args, **kwargs), at_once=True)

    return method


def _writing(operation: Operation[P, T]) -> Method[P, T]:
    """The method that runs an operation in a transaction of its own."""

    @wraps(operation)
    async def method(store: SqlStore, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.database.write(lambda unit: operation(unit, *args, **kwargs))

    return method


class SqlStore:
    """Everything a project keeps, in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
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

    create = _writing(definitions.create)
    update = _writing(definitions.change)
    delete = _writing(definitions.remove)
    apply = _writing(definitions.apply)
    list_of = _reading(definitions.list_of)

    @overload
    async def get(self, kind: Literal["persona"], definition_id: str) -> StoredPersona: ...
    @overload
    async def get(self, kind: Literal["scenario"], definition_id: str) -> StoredScenario: ...
    @overload
    async def get(self, kind: Literal["connector"], definition_id: str) -> StoredConnector: ...
    @overload
    async def get(self, kind: Literal["eval"], definition_id: str) -> StoredEval: ...
    @overload
    async def get(self, kind: Literal["monitor"], definition_id: str) -> StoredMonitor: ...
    async def get(self, kind: DefinitionKind, definition_id: str) -> Any:
        return await self.database.read(lambda unit: definitions.get(unit, kind, definition_id))

    @overload
    async def find(self, kind: Literal["persona"], name: str) -> StoredPersona | None: ...
    @overload
    async def find(self, kind: Literal["scenario"], name: str) -> StoredScenario | None: ...
    @overload
    async def find(self, kind: Literal["connector"], name: str) -> StoredConnector | None: ...
    @overload
    async def find(self, kind: Literal["eval"], name: str) -> StoredEval | None: ...
    @overload
    async def find(self, kind: Literal["monitor"], name: str) -> StoredMonitor | None: ...
    async def find(self, kind: DefinitionKind, name: str) -> Any:
        return await self.database.read(lambda unit: definitions.find(unit, kind, name))

    enqueue = _writing(queue.enqueue)
    record = _writing(recording.record)
    known_runs = _reading(recording.known_runs)
    finish_recording = _writing(recording.finish_recording)
    heartbeat = _writing(queue.heartbeat)
    workers = _reading(queue.workers)
    append_turn = _writing(attempts.append_turn)
    finish = _writing(attempts.finish)
    fail_attempt = _writing(queue.fail_attempt)
    reserve_call = _writing(model_limits.reserve_call)
    pause_calls = _writing(model_limits.pause_calls)
    join_callers = _writing(model_limits.join_callers)

    async def claim(
        self,
        worker_id: str,
        limit: int,
        lease_seconds: float,
        *,
        per_connector: int | None = None,
        execution_id: str | None = None,
    ) -> list[ClaimedRun]:
        """Runs for a worker, with at most so many under way at one connector."""
        self._work_known[worker_id] = self.database.signals.work.count
        if limit <= 0:
            return []
        claiming = asyncio.ensure_future(
            self.database.write(
                lambda unit: queue.claim(
                    unit, worker_id, limit, lease_seconds, per_connector, execution_id, self._bodies
                )
            )
        )
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # Nobody will work on what was claimed for somebody who has gone.
            (claimed,) = await asyncio.gather(claiming, return_exceptions=True)
            if not isinstance(claimed, BaseException):
                await self.release([claim.lease for claim in claimed])
            raise

    async def wait_for_work(self, worker_id: str, timeout: float) -> bool:
        """Wait until work may have been queued since this worker's last claim; false when time is over."""
        self.database.listen_task.start()
        signal = self.database.signals.work
        return await signal.wait(self._work_known.get(worker_id, signal.count), timeout)

    async def release(self, leases: Collection[Lease]) -> None:
        if leases:
            await self._in_batches(queue.release, leases)

    async def abandon(self, worker_ids: Collection[str]) -> int:
        return await self._in_batches(queue.abandon, worker_ids) if worker_ids else 0

    execution = _reading(lists.get_execution)
    executions = _reading(lists.list_executions)
    run = _reading(lists.get_run)
    runs = _reading(lists.list_runs)
    snapshots = _reading(lists.get_snapshots)
    run_json = _reading(lists.run_json)
    run_page_json = _reading_at_once(lists.run_page_json)
    execution_page_json = _reading_at_once(lists.execution_page_json)
    tally_executions = _reading(tallies.tally_executions)
    tally = _reading(tallies.tally)
    run_groups = _reading(tallies.run_groups)
    spent = _reading(tallies.spent)
    results_of = _reading(comparing.results_of)
    earlier_runs = _reading(comparing.earlier_runs)
    connectors_of = _reading(comparing.connectors_of)
    environment_of = _reading(comparing.environment_of)
    snapshot_bodies = _reading(comparing.snapshot_bodies)
    baselines = _reading(comparing.list_baselines)
    baseline = _reading(comparing.get_baseline)
    set_baseline = _writing(comparing.set_baseline)
    remove_baseline = _writing(comparing.remove_baseline)
    mark_partial = _writing(mark_partial)
    awaiting_decision = _reading(repeating.awaiting_decision)
    add_repetition = _writing(repeating.add_repetition)
    finish_repeating = _writing(repeating.finish_repeating)
    end_for_budget = _writing(run_controls.end_for_budget)
    runs_with_outputs = _reading(lists.runs_with_outputs)

    async def cancel(self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None) -> int:
        which = run_controls.which_runs(execution_id, run_ids)
        if execution_id is not None:
            await self.execution(execution_id)
            await self.database.write(lambda unit: run_controls.begin_cancelling(unit, execution_id))
            return await self.database.write(lambda unit: run_controls.cancel_all(unit, execution_id))
        return await self._in_batches(run_controls.cancel_some, which)

    async def retry(self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None) -> int:
        which = run_controls.which_runs(execution_id, run_ids)
        if execution_id is not None:
            await self.execution(execution_id)
        return await self._in_batches(run_controls.retry_some, which)

    async def delete_execution(self, execution_id: str) -> int:
        """Delete an execution with all that belongs to it; it is out of sight at once."""
        await self.database.write(lambda unit: run_controls.hide_execution(unit, execution_id))
        await self.database.write(lambda unit: run_controls.cancel_all(unit, execution_id))
        return await self._in_batches(run_controls.delete_runs_of, execution_id)

    _delete_runs = _writing(run_controls.delete_runs)

    async def delete_runs(self, run_ids: Sequence[str]) -> int:
        size = run_controls.DELETE_BATCH
        starts = range(0, len(run_ids), size)
        return sum([await self._delete_runs(run_ids[start : start + size]) for start in starts])

    async def prune(self, keep: timedelta) -> Pruned:
        """Delete what ended longer ago than this, and what nothing refers to any more."""
        before = now_ms() - keep // timedelta(milliseconds=1)
        old = await self.database.read(lambda unit: retention.old_executions(unit, before))
        return await self._prune(old, before)

    async def retain(
        self, max_age: timedelta | None, max_executions: int | None, keep_labels: Sequence[str] = ()
    ) -> Pruned:
        """Keep what the project's rules say; delete the rest some rows at a time, and give back the space."""
        before = None if max_age is None else now_ms() - max_age // timedelta(milliseconds=1)
        old = await self.database.read(
            lambda unit: retention.surplus_executions(unit, before, max_executions, keep_labels)
        )
        return await self._prune(old, before, keep_labels)

    async def _prune(self, old: Sequence[str], before: int | None, keep_labels: Sequence[str] = ()) -> Pruned:
        runs = [await self._delete_surplus(execution_id, keep_labels) for execution_id in old]
        evaluations = 0
        if before is not None:
            evaluations = await self._in_batches(retention.delete_evaluations, before)
        stale = max(before or 0, now_ms() - _EVENTS_KEPT // timedelta(milliseconds=1))
        events = await self._in_batches(retention.delete_events, stale)
        await self.database.write(retention.delete_leftovers)
        await self._in_batches(retention.give_back)
        deleted = [number for number in runs if number is not None]
        return Pruned(len(deleted), sum(deleted), evaluations, events)

    async def _delete_surplus(self, execution_id: str, keep_labels: Sequence[str]) -> int | None:
        """How many runs it had; nothing where it stays. A long pruning looks again before each."""
        free = await self.database.read(lambda unit: retention.may_still_go(unit, execution_id, keep_labels))
        return await self._delete_old(execution_id) if free else None

    async def _delete_old(self, execution_id: str) -> int | None:
        try:
            return await self.delete_execution(execution_id)
        except (InUse, NotFound):
            # It has become a baseline in the meantime, or another process was faster.
            return None

    async def _in_batches(self, operation: Operation[P, int], *args: P.args, **kwargs: P.kwargs) -> int:
        """Repeat a bounded operation until there is nothing more to do."""
        done = 0
        while count := await self.database.write(lambda unit: operation(unit, *args, **kwargs)):
            done += count
        return done

    events = _reading(event_log.read_events)
    last_event_id = _reading(event_log.last_event_id)

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

    add_spans = _writing(production.add_spans)
    claim_conversations = _writing(production.claim_conversations)
    conversation_holders = _reading(production.holders)
    release_conversations = _writing(production.release_held)
    bodies_of = _reading(production.bodies_of)
    describe_conversation = _writing(production.describe_conversation)
    continue_conversation = _writing(production.continue_conversation)
    hand_over = _writing(production.hand_over)
    put_off = _writing(production.put_off)
    conversation = _reading(production_lists.get_conversation)
    conversations = _reading(production_lists.list_conversations)

    async def prune_conversations(self, keep: timedelta) -> int:
        """Delete the conversations to which nothing has come for so long; how many."""
        before = now_ms() - keep // timedelta(milliseconds=1)
        return await self._in_batches(production.delete_old_conversations, before)

    reviewed_revision = _reading(monitoring.reviewed_revision)
    reserve_judge_calls = _writing(monitoring.reserve_judge_calls)
    settle_judge_calls = _writing(monitoring.settle_judge_calls)
    judge_calls = _reading(monitoring.judge_calls)
    keep_review = _writing(monitoring.keep_review)
    monitor_test = _reading(monitoring.monitor_test)
    restart_monitor = _writing(monitoring.restart_monitor)
    monitored_counts = _reading(monitoring.monitored_counts)
    alarms = _reading(raised.list_alarms)
    alarm = _reading(raised.get_alarm)
    open_alarms = _reading(raised.open_alarms)
    acknowledge_alarm = _writing(raised.acknowledge_alarm)
    claim_alarms = _writing(raised.claim_alarms)
    note_delivery = _writing(raised.note_delivery)

    async def prune_monitor(self, monitor_id: str, keep: timedelta) -> int:
        """Delete what a monitor reviewed longer ago than this, with its runs; says how many reviews."""
        before = now_ms() - keep // timedelta(milliseconds=1)
        old = await self.database.read(lambda unit: monitoring.old_executions(unit, monitor_id, before))
        for execution_id in old:
            await self._delete_old(execution_id)
        return await self._in_batches(monitoring.delete_reviews, monitor_id, before)

    end_session = _writing(logouts.end_session)
    read_ended_sessions = _reading(logouts.read_ended_sessions)
    evaluation = _reading(recorded.get_evaluation)
    evaluations = _reading(recorded.list_evaluations)
    feedback = _reading(recorded.list_feedback)
    made_by = _reading(known_target)
    remember_once = _writing(remember_once)

    async def save_result(self, result: HasJson | Mapping[str, Any]) -> None:
        await self.save_evaluation(result)

    async def save_evaluation(
        self, result: HasJson | Mapping[str, Any], *, once: IdempotencyKey | None = None
    ) -> str:
        row = recorded.evaluation_row(result)
        return await self.database.write(lambda unit: recorded.keep_evaluation(unit, row, once))

    async def add_feedback(
        self,
        body: Mapping[str, Any],
        *,
        run_id: str | None = None,
        evaluation_id: str | None = None,
        once: IdempotencyKey | None = None,
    ) -> dict[str, Any]:
        identity = new_id()
        return await self.database.write(
            lambda unit: recorded.add_feedback(unit, identity, body, run_id, evaluation_id, once)
        )
