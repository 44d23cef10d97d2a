"""Deleting, a bounded number of rows per transaction, so that nobody waits for long.

An execution being deleted is hidden at once; should the process die, the next pruning goes on with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, or_, select, union_all, update

from .errors import InUse, NotFound
from .rows import AnyRow
from .schema import (
    evaluations,
    events,
    executions,
    feedback,
    idempotency,
    messages,
    outputs,
    runs,
    snapshots,
    turns,
)
from .transaction import COUNTED, Unit, now_ms

BATCH = 500
_DAY = 86_400_000
_COUNT_OF = {"pass": "passed", "fail": "failed", "error": "errored"}


def hide_execution(unit: Unit, wanted: str) -> None:
    """The first step: nobody sees or works on it any more."""
    changed = unit.connection.execute(
        update(executions)
        .where(executions.c.id == wanted)
        .values(deleting=True, cancelling=True)
        .returning(executions.c.id)
    )
    if changed.first() is None and not unit.again:
        raise NotFound("execution", wanted)


def delete_runs_of(unit: Unit, execution_id: str) -> int:
    """Some of the runs of a hidden execution; none left, and the execution goes too."""
    query = select(runs.c.id).where(runs.c.execution_id == execution_id).limit(BATCH)
    # Locked first, so that no worker adds a turn to a run that is going.
    ids = list(unit.connection.execute(query.with_for_update()).scalars())
    if ids:
        _delete_with_rows(unit, ids)
    else:
        unit.connection.execute(delete(executions).where(executions.c.id == execution_id))
        unit.tell("execution.deleted", execution_id)
    return len(ids)


def delete_runs(unit: Unit, run_ids: Sequence[str]) -> int:
    """Single runs, with the counts of their executions put right."""
    rows = unit.connection.execute(
        select(runs.c.id, runs.c.execution_id, runs.c.status, runs.c.outcome, runs.c.asserted)
        .where(runs.c.id.in_(run_ids))
        .with_for_update()
    ).all()
    for row in rows:
        if row.status == "running":
            raise InUse(f"Run {row.id} is being worked on. Cancel it first.")
        unit.count(row.execution_id, total=-1, **{_counted_as(row): -1})
        if row.outcome == "pass" and not row.asserted:
            unit.count(row.execution_id, unasserted=-1)
        unit.tell("run.deleted", row.execution_id, row.id)
    _delete_with_rows(unit, [row.id for row in rows])
    return len(rows)


def _counted_as(row: AnyRow) -> str:
    status: str = row.status
    return status if status in COUNTED else _COUNT_OF[row.outcome]


def _delete_with_rows(unit: Unit, ids: Sequence[str]) -> None:
    for table in (messages, turns, outputs, feedback):
        unit.connection.execute(delete(table).where(table.c.run_id.in_(ids)))
    unit.connection.execute(delete(runs).where(runs.c.id.in_(ids)))


def old_executions(unit: Unit, before: int) -> list[str]:
    """Executions that ended before a moment, and those whose deletion was interrupted."""
    ended = executions.c.completed < before
    over = executions.c.status.in_(("completed", "cancelled"))
    query = select(executions.c.id).where(or_(ended & over, executions.c.deleting.is_(True)))
    return list(unit.connection.execute(query.order_by(executions.c.id)).scalars())


def delete_evaluations(unit: Unit, before: int) -> int:
    query = select(evaluations.c.id).where(evaluations.c.created < before)
    ids = list(unit.connection.execute(query.order_by(evaluations.c.id).limit(BATCH)).scalars())
    unit.connection.execute(delete(feedback).where(feedback.c.evaluation_id.in_(ids)))
    unit.connection.execute(delete(evaluations).where(evaluations.c.id.in_(ids)))
    return len(ids)


def delete_events(unit: Unit, before: int) -> int:
    """Old events from the oldest on, up to the first that is not old."""
    rows = unit.connection.execute(
        select(events.c.id, events.c.at).order_by(events.c.id).limit(BATCH * 4)
    ).all()
    ids: list[int] = []
    for row in rows:
        if row.at >= before:
            break
        ids.append(row.id)
    if ids:
        unit.connection.execute(delete(events).where(events.c.id <= ids[-1]))
    return len(ids)


def delete_leftovers(unit: Unit) -> None:
    """Idempotency keys of yesterday, and snapshots that no run refers to."""
    yesterday = now_ms() - _DAY
    unit.connection.execute(delete(idempotency).where(idempotency.c.created < yesterday))
    columns = (runs.c.scenario_snapshot, runs.c.persona_snapshot, runs.c.connector_snapshot)
    needed = union_all(*(select(column).where(column.is_not(None)).distinct() for column in columns))
    unit.connection.execute(
        delete(snapshots).where(snapshots.c.used < yesterday, snapshots.c.hash.not_in(needed))
    )
