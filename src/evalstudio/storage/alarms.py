"""Alarms of monitors: raised and ended with the reviews that cause it, delivered afterwards, acknowledged."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select, update

from ..base.times import milliseconds_of, moment_of
from ..project.alarms import Alarm, AlarmKind
from .contract import Page
from .lists import one_row
from .pages import paged
from .rows import AnyRow
from .schema import PENDING, alarms
from .transaction import Transaction, now_ms

_COLUMNS = {"id", "monitor_id", "kind", "created_at", "ended_at", "acknowledged_at"}
_DELIVERY = {"delivery", "tries", "delivery_error"}


def raise_alarm(unit: Transaction, alarm: Alarm, *, to_deliver: bool) -> None:
    created = milliseconds_of(alarm.created_at)
    row: dict[str, Any] = {
        "id": alarm.id,
        "monitor_id": alarm.monitor_id,
        "kind": alarm.kind,
        "created": created,
        "body": alarm.model_dump(mode="json", by_alias=True, exclude=_COLUMNS | _DELIVERY),
        "delivery": "pending" if to_deliver else "none",
        "tries": 0,
        "next_try": created if to_deliver else None,
    }
    unit.connection.execute(insert(alarms), row)


def end_alarms(unit: Transaction, monitor_id: str, kind: AlarmKind | None = None) -> None:
    """The alarms of a monitor, or of one kind, are over."""
    which = [alarms.c.monitor_id == monitor_id, alarms.c.ended.is_(None)]
    if kind is not None:
        which.append(alarms.c.kind == kind)
    unit.connection.execute(update(alarms).where(*which).values(ended=now_ms()))


def list_alarms(
    unit: Transaction, monitor_id: str, *, cursor: str | None = None, limit: int = 50
) -> Page[Alarm]:
    query = select(alarms).where(alarms.c.monitor_id == monitor_id)
    return paged(unit, query, alarms.c.id, _alarm, cursor, limit)


def get_alarm(unit: Transaction, alarm_id: str) -> Alarm:
    return _alarm(one_row(unit, select(alarms).where(alarms.c.id == alarm_id), "alarm", alarm_id))


def open_alarms(unit: Transaction) -> list[Alarm]:
    """The newest alarms of all monitors that are not over."""
    query = select(alarms).where(alarms.c.ended.is_(None)).order_by(alarms.c.id.desc()).limit(200)
    return [_alarm(row) for row in unit.connection.execute(query)]


def acknowledge_alarm(unit: Transaction, alarm_id: str) -> Alarm:
    """Note that somebody has seen an alarm; the first time counts."""
    alarm = get_alarm(unit, alarm_id)
    if alarm.acknowledged_at is None:
        seen = update(alarms).where(alarms.c.id == alarm_id, alarms.c.acknowledged.is_(None))
        unit.connection.execute(seen.values(acknowledged=now_ms()))
    return get_alarm(unit, alarm_id)


def claim_alarms(unit: Transaction, lease_ms: int, limit: int) -> list[Alarm]:
    """Alarms whose webhook is due, for one process to send; left to others again when the time is over."""
    moment = now_ms()
    due = select(alarms).where(PENDING, alarms.c.next_try <= moment).order_by(alarms.c.next_try).limit(limit)
    rows = unit.connection.execute(due.with_for_update(skip_locked=True)).all()
    claimed = update(alarms).where(alarms.c.id.in_([row.id for row in rows]))
    unit.connection.execute(claimed.values(next_try=moment + lease_ms, tries=alarms.c.tries + 1))
    return [_alarm(row).model_copy(update={"tries": row.tries + 1}) for row in rows]


def note_delivery(unit: Transaction, alarm_id: str, error: str | None, again_in_ms: int | None) -> None:
    """What became of a try: delivered without an error, to be tried again, or given up."""
    pending = error is not None and again_in_ms is not None
    values = {
        "delivery": "delivered" if error is None else "pending" if pending else "failed",
        "delivery_error": error,
        "next_try": now_ms() + (again_in_ms or 0) if pending else None,
    }
    unit.connection.execute(update(alarms).where(alarms.c.id == alarm_id).values(values))


def _alarm(row: AnyRow) -> Alarm:
    times = {
        "createdAt": moment_of(row.created),
        "endedAt": None if row.ended is None else moment_of(row.ended),
        "acknowledgedAt": None if row.acknowledged is None else moment_of(row.acknowledged),
    }
    same = {"id": row.id, "monitorId": row.monitor_id, "kind": row.kind}
    delivery = {"delivery": row.delivery, "tries": row.tries, "deliveryError": row.delivery_error}
    return Alarm.model_validate({**row.body, **times, **same, **delivery})
