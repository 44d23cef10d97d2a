"""What is no longer kept: which executions, what belongs to none, and the space they took."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import takewhile
from typing import cast

from sqlalchemy import ColumnElement, and_, delete, false, func, or_, select, union_all

from ..project.entities import OVER
from .labels import labelled
from .run_controls import DELETE_BATCH
from .schema import (
    baselines,
    evaluations,
    events,
    executions,
    feedback,
    idempotency,
    monitored,
    runs,
    snapshots,
)
from .transaction import Transaction, now_ms

_DAY = 86_400_000
_PAGES_AT_ONCE = 2_000
_table = executions.c


def old_executions(unit: Transaction, before: int) -> list[str]:
    """Executions that ended before a moment, and those whose deletion was interrupted."""
    ended = and_(*_may_go(), _table.completed < before)
    query = select(_table.id).where(or_(ended, _table.deleting.is_(True)))
    return list(unit.connection.execute(query.order_by(_table.id)).scalars())


def surplus_executions(
    unit: Transaction, before: int | None, most: int | None, keep_labels: Sequence[str]
) -> list[str]:
    """The same by age and by number, without those that a label or a monitor keeps; the oldest first.

    Monitors say themselves how long they keep what they reviewed.
    """
    of_monitors = select(monitored.c.execution_id).where(monitored.c.execution_id.is_not(None))
    query = select(_table.id, _table.completed).where(*_may_go(keep_labels), _table.id.not_in(of_monitors))
    newest = unit.connection.execute(query.order_by(_table.completed.desc(), _table.id.desc())).all()
    surplus = [
        row.id
        for place, row in enumerate(newest)
        if (most is not None and place >= most) or (before is not None and row.completed < before)
    ]
    interrupted = unit.connection.execute(select(_table.id).where(_table.deleting.is_(True))).scalars()
    return [*interrupted, *reversed(surplus)]


def may_still_go(unit: Transaction, execution_id: str, keep_labels: Sequence[str]) -> bool:
    """Whether nobody has made an execution a baseline or labelled it since it was found to be old."""
    free = or_(and_(*_may_go(keep_labels)), _table.deleting.is_(True))
    query = select(_table.id).where(_table.id == execution_id, free)
    return unit.connection.execute(query).first() is not None


def _may_go(keep_labels: Sequence[str] = ()) -> list[ColumnElement[bool]]:
    """Finished, without these labels, and neither a baseline nor what a baseline was scored from."""
    of_baselines = select(baselines.c.execution_id)
    origins = select(_table.rescored_from).where(_table.id.in_(of_baselines))
    return [
        _table.deleting.is_(False),
        _table.completed.is_not(None),
        _table.status.in_(OVER),
        _table.id.not_in(of_baselines),
        _table.id.not_in(origins.where(_table.rescored_from.is_not(None))),
        # Without the label there is nothing to compare, which is no label too.
        *(~func.coalesce(labelled(label), false()) for label in keep_labels),
    ]


def delete_evaluations(unit: Transaction, before: int) -> int:
    query = select(evaluations.c.id).where(evaluations.c.created < before)
    ids = list(unit.connection.execute(query.order_by(evaluations.c.id).limit(DELETE_BATCH)).scalars())
    unit.connection.execute(delete(feedback).where(feedback.c.evaluation_id.in_(ids)))
    unit.connection.execute(delete(evaluations).where(evaluations.c.id.in_(ids)))
    return len(ids)


def delete_events(unit: Transaction, before: int) -> int:
    """Old events from the oldest on, up to the first that is not old."""
    query = select(events.c.id, events.c.at).order_by(events.c.id).limit(DELETE_BATCH * 4)
    ids = [row.id for row in takewhile(lambda row: row.at < before, unit.connection.execute(query).all())]
    if ids:
        unit.connection.execute(delete(events).where(events.c.id <= ids[-1]))
    return len(ids)


def delete_leftovers(unit: Transaction) -> None:
    """Idempotency keys of yesterday, and snapshots that no run or execution refers to."""
    yesterday = now_ms() - _DAY
    unit.connection.execute(delete(idempotency).where(idempotency.c.created < yesterday))
    of_runs = (runs.c.scenario_snapshot, runs.c.persona_snapshot, runs.c.connector_snapshot)
    columns = (*of_runs, executions.c.environment)
    needed = union_all(*(select(column).where(column.is_not(None)).distinct() for column in columns))
    unused = (snapshots.c.used < yesterday, snapshots.c.hash.not_in(needed))
    unit.connection.execute(delete(snapshots).where(*unused))


def give_back(unit: Transaction) -> int:
    """Some of the free pages of a SQLite file, to the disk; how many. PostgreSQL does that itself.

    A file made before files could shrink keeps its free pages and uses them for what comes.
    """
    if unit.is_postgres or not _pragma(unit, "auto_vacuum"):
        return 0
    before = _pragma(unit, "freelist_count")
    if before:
        # A page at each step, and no column that SQLAlchemy would see a row in.
        driver = cast(sqlite3.Connection, unit.connection.connection.dbapi_connection)
        driver.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
    return before - _pragma(unit, "freelist_count") if before else 0


def _pragma(unit: Transaction, name: str) -> int:
    return unit.connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
