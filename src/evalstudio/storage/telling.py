"""Reading events back, in the order in which they became visible."""

from __future__ import annotations

from sqlalchemy import func, select

from .contract import Event
from .rows import moment_of
from .schema import events
from .transaction import Unit


def read_events(
    unit: Unit, after_id: int, execution_id: str | None, run_id: str | None, limit: int
) -> list[Event]:
    query = select(events).where(events.c.id > after_id).order_by(events.c.id).limit(limit)
    if execution_id is not None:
        query = query.where(events.c.execution_id == execution_id)
    if run_id is not None:
        query = query.where(events.c.run_id == run_id)
    return [
        Event(row.id, row.kind, row.execution_id, row.run_id, row.body, moment_of(row.at))
        for row in unit.connection.execute(query)
    ]


def last_event_id(unit: Unit) -> int:
    return unit.connection.execute(select(func.max(events.c.id))).scalar() or 0
