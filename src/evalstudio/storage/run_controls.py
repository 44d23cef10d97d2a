"""Cancelling, trying again and deleting runs, in few statements or a bounded number per transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, select, update

from ..project.entities import UNFINISHED
from .contract import COUNT_OF
from .errors import InUse, NotFound
from .rows import AnyRow
from .schema import (
    COUNTED,
    USED,
    VERDICT,
    baselines,
    executions,
    feedback,
    messages,
    outputs,
    runs,
    turns,
)
from .transaction import Transaction, mark_partial, now_ms, unmark_partial

BATCH = 1000
DELETE_BATCH = 500


def which_runs(execution_id: str | None, run_ids: Sequence[str] | None) -> ColumnElement[bool]:
    if (execution_id is None) == (run_ids is None):
        raise ValueError("name an execution or runs, one of the two")
    return runs.c.execution_id == execution_id if run_ids is None else runs.c.id.in_(run_ids)


def begin_cancelling(unit: Transaction, execution_id: str) -> None:
    """The execution as a whole is being cancelled, whatever becomes of single runs."""
    unit.connection.execute(update(executions).where(executions.c.id == execution_id).values(cancelling=True))


def _some_locked(unit: Transaction, which: ColumnElement[bool], *statuses: str) -> Sequence[AnyRow]:
    query = select(runs.c.id, runs.c.execution_id, runs.c.status, runs.c.attempt)
    query = query.where(which, runs.c.status.in_(statuses)).order_by(runs.c.id).limit(BATCH)
    return unit.connection.execute(query.with_for_update()).all()


def cancel_some(unit: Transaction, which: ColumnElement[bool]) -> int:
    """Cancel runs that wait or run. A worker learns of it from its next heartbeat or write."""
    rows = _some_locked(unit, which, "queued", "running")
    if not rows:
        return 0
    moment = now_ms()
    unit.connection.execute(
        update(runs)
        .where(runs.c.id.in_([row.id for row in rows]))
        .values(status="cancelled", lease_until=None, completed=moment, updated=moment)
    )
    for row in rows:
        unit.add_event("run.cancelled", row.execution_id, row.id)
    for (execution_id, status), number in Counter((row.execution_id, row.status) for row in rows).items():
        unit.count(execution_id, cancelled=number, **{status: -number})
    return len(rows)


def cancel_all(unit: Transaction, execution_id: str) -> int:
    """Cancel every run of an execution that waits or runs, a million of them like one."""
    moment = now_ms()
    of_execution = runs.c.execution_id == execution_id
    ended = {"status": "cancelled", "lease_until": None, "completed": moment, "updated": moment}
    cancelled = 0
    for status in ("queued", "running"):
        query = update(runs).where(of_execution, runs.c.status == status).values(**ended)
        number = unit.connection.execute(query).rowcount
        unit.count(execution_id, cancelled=number, **{status: -number})
        cancelled += number
    if cancelled:
        this_time = (runs.c.status == "cancelled") & (runs.c.completed == moment)
        unit.add_events_of_runs("run.cancelled", of_execution & this_time)
    return cancelled


def end_for_budget(unit: Transaction, execution_id: str) -> int:
    """Start no more runs of an execution: what waits is cancelled, what runs may finish."""
    moment = now_ms()
    waiting = (runs.c.execution_id == execution_id) & (runs.c.status == "queued")
    ended = {"status": "cancelled", "lease_until": None, "completed": moment, "updated": moment}
    number = unit.connection.execute(update(runs).where(waiting).values(**ended)).rowcount
    repeating = executions.c.partial.like(f"%{UNFINISHED}%") & (executions.c.id == execution_id)
    if number or unit.connection.execute(select(executions.c.id).where(repeating)).first() is not None:
        mark_partial(unit, execution_id, "budget")
        unmark_partial(unit, execution_id, UNFINISHED)
        unit.count(execution_id, cancelled=number, queued=-number)
    if number:
        cancelled = (runs.c.status == "cancelled") & (runs.c.completed == moment)
        unit.add_events_of_runs("run.cancelled", (runs.c.execution_id == execution_id) & cancelled)
    return number


def retry_some(unit: Transaction, which: ColumnElement[bool]) -> int:
    """Queue errored runs again under the next attempt; no others, and none whose agent was never called."""
    live = runs.c.execution_id.in_(select(executions.c.id).where(executions.c.source == "live"))
    rows = _some_locked(unit, which & live, "error")
    if not rows:
        return 0
    moment = now_ms()
    measured = (*VERDICT, *USED, "error", "latency_ms", "total_tokens", "thread_id", "answer_hash")
    reset = dict.fromkeys((*measured, "worker_id", "lease_until", "started", "completed"))
    unit.connection.execute(
        update(runs)
        .where(runs.c.id.in_([row.id for row in rows]))
        .values(
            **reset,
            status="queued",
            attempt=runs.c.attempt + 1,
            losses=0,
            turn_count=0,
            queued=moment,
            updated=moment,
        )
    )
    for row in rows:
        body = {"attempt": row.attempt + 1, "reason": "retried"}
        unit.add_event("run.queued", row.execution_id, row.id, body)
    affected = Counter(row.execution_id for row in rows)
    for execution_id, number in affected.items():
        unit.count(execution_id, errored=-number, queued=number)
    unit.connection.execute(update(executions).where(executions.c.id.in_(affected)).values(cancelling=False))
    unit.new_work = True
    return len(rows)


def hide_execution(unit: Transaction, execution_id: str) -> None:
    """The first step: nobody sees or works on it any more."""
    names = select(baselines.c.name).where(baselines.c.execution_id == execution_id)
    if baseline_names := list(unit.connection.execute(names.order_by(baselines.c.name_key)).scalars()):
        listed = ", ".join(f'"{name}"' for name in baseline_names)
        raise InUse(
            f"Execution {execution_id} is the baseline {listed}. "
            "Set another execution for it, or remove the baseline first."
        )
    hidden = update(executions).where(executions.c.id == execution_id).values(deleting=True, cancelling=True)
    row = unit.connection.execute(hidden.returning(executions.c.id)).first()
    if row is None and not unit.again:
        raise NotFound("execution", execution_id)


def delete_runs_of(unit: Transaction, execution_id: str) -> int:
    """Some of the runs of a hidden execution; none left, and the execution goes too."""
    query = select(runs.c.id).where(runs.c.execution_id == execution_id).limit(DELETE_BATCH)
    # Locked first, so that no worker adds a turn to a run that is going.
    ids = list(unit.connection.execute(query.with_for_update()).scalars())
    if ids:
        _delete_with_rows(unit, ids)
    else:
        unit.connection.execute(delete(executions).where(executions.c.id == execution_id))
        unit.add_event("execution.deleted", execution_id)
    return len(ids)


def delete_runs(unit: Transaction, run_ids: Sequence[str]) -> int:
    """Single runs, with the counts of their executions put right."""
    rows = take_out_runs(unit, run_ids)
    for execution_id in sorted({row.execution_id for row in rows}):
        mark_partial(unit, execution_id, "deleted")
    return len(rows)


def take_out_runs(unit: Transaction, run_ids: Sequence[str]) -> Sequence[AnyRow]:
    """The same where others take their place, so that their executions stay whole."""
    rows = unit.connection.execute(
        select(runs.c.id, runs.c.execution_id, runs.c.status, runs.c.outcome)
        .where(runs.c.id.in_(run_ids))
        .with_for_update()
    ).all()
    for row in rows:
        if row.status == "running":
            raise InUse(f"Run {row.id} is being worked on. Cancel it first.")
        counted_as = row.status if row.status in COUNTED else COUNT_OF[row.outcome]
        unit.count(row.execution_id, total=-1, **{counted_as: -1})
        unit.add_event("run.deleted", row.execution_id, row.id)
    _delete_with_rows(unit, [row.id for row in rows])
    return rows


def _delete_with_rows(unit: Transaction, ids: Sequence[str]) -> None:
    for table in (messages, turns, outputs, feedback):
        unit.connection.execute(delete(table).where(table.c.run_id.in_(ids)))
    unit.connection.execute(delete(runs).where(runs.c.id.in_(ids)))
