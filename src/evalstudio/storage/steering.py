"""Cancelling runs and trying errored ones again, a bounded number per transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, select, update

from .schema import executions, runs
from .transaction import Unit, now_ms

BATCH = 1000


def which_runs(execution_id: str | None, run_ids: Sequence[str] | None) -> ColumnElement[bool]:
    if (execution_id is None) == (run_ids is None):
        raise ValueError("name an execution or runs, one of the two")
    return runs.c.execution_id == execution_id if run_ids is None else runs.c.id.in_(run_ids)


def begin_cancelling(unit: Unit, execution_id: str) -> None:
    """The execution as a whole is being cancelled, whatever becomes of single runs."""
    unit.connection.execute(update(executions).where(executions.c.id == execution_id).values(cancelling=True))


def cancel_some(unit: Unit, which: ColumnElement[bool]) -> int:
    """Cancel runs that wait or run. A worker learns of it from its next heartbeat or write."""
    rows = unit.connection.execute(
        select(runs.c.id, runs.c.execution_id, runs.c.status)
        .where(which, runs.c.status.in_(("queued", "running")))
        .order_by(runs.c.id)
        .limit(BATCH)
        .with_for_update()
    ).all()
    if not rows:
        return 0
    moment = now_ms()
    unit.connection.execute(
        update(runs)
        .where(runs.c.id.in_([row.id for row in rows]))
        .values(status="cancelled", lease_until=None, completed=moment, updated=moment)
    )
    for row in rows:
        unit.tell("run.cancelled", row.execution_id, row.id)
    for (execution_id, status), number in Counter((row.execution_id, row.status) for row in rows).items():
        unit.count(execution_id, cancelled=number, **{status: -number})
    return len(rows)


def retry_some(unit: Unit, which: ColumnElement[bool]) -> int:
    """Queue errored runs again under the next attempt; no others."""
    rows = unit.connection.execute(
        select(runs.c.id, runs.c.execution_id, runs.c.attempt)
        .where(which, runs.c.status == "error")
        .order_by(runs.c.id)
        .limit(BATCH)
        .with_for_update()
    ).all()
    if not rows:
        return 0
    moment = now_ms()
    forgotten = ("outcome", "fault", "score", "overall_score", "asserted", "reason", "error", "latency_ms")
    reset = dict.fromkeys(
        (*forgotten, "total_tokens", "thread_id", "worker_id", "lease_until", "started", "completed")
    )
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
        unit.tell("run.queued", row.execution_id, row.id, {"attempt": row.attempt + 1, "reason": "retried"})
    affected = Counter(row.execution_id for row in rows)
    for execution_id, number in affected.items():
        unit.count(execution_id, errored=-number, queued=number)
    unit.connection.execute(update(executions).where(executions.c.id.in_(affected)).values(cancelling=False))
    unit.new_work = True
    return len(rows)
