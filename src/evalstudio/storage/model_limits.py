"""What all processes of a project keep together about calls of one model with one key.

A row is a moment by the database's clock: until when the provider asked for a pause, when the next call may
be made, and how long a process counts as one of those that make calls.
"""

from __future__ import annotations

from sqlalchemy import delete, select, update

from ..llm.quota import CallStanding
from .schema import model_limits
from .transaction import Transaction, shared_now_ms

_PAUSE, _NEXT, _MEMBER = "pause", "next", "member:"
_table = model_limits.c


def reserve_call(unit: Transaction, key: str, spacing_ms: int, longest_ms: int) -> int | None:
    """Milliseconds until a call may be made, which nobody else makes then; none where that is too long."""
    moment = shared_now_ms(unit)
    planned = max(_locked(unit, key, _NEXT), moment)
    if planned - moment > longest_ms:
        return None
    _set(unit, key, _NEXT, planned + spacing_ms)
    return planned - moment


def pause_calls(unit: Transaction, key: str, pause_ms: int) -> None:
    """Nobody makes a call for so long."""
    until = shared_now_ms(unit) + pause_ms
    if _locked(unit, key, _PAUSE) < until:
        _set(unit, key, _PAUSE, until)


def join_callers(unit: Transaction, key: str, role: str, member: str, lease_ms: int) -> CallStanding:
    """Count this process in for a while among those that call in this role, and say how things stand."""
    moment, group = shared_now_ms(unit), f"{_MEMBER}{role}:"
    name = group + member
    # One at a time: two that clear away rows of a third would wait for each other.
    paused_until = _locked(unit, key, _PAUSE)
    _locked(unit, key, name)
    _set(unit, key, name, moment + lease_ms)
    gone = delete(model_limits).where(
        _table.key == key, _table.name.startswith(_MEMBER), _table.until < moment
    )
    unit.connection.execute(gone)
    callers = select(_table.name).where(_table.key == key, _table.name.startswith(group))
    members = sorted(unit.connection.execute(callers).scalars())
    return CallStanding(max(0, paused_until - moment), members.index(name), len(members))


def _locked(unit: Transaction, key: str, name: str) -> int:
    """The moment of a row, made where it is missing and held until the end of the transaction."""
    row = {"key": key, "name": name, "until": 0}
    unit.connection.execute(unit.insert_into(model_limits).values(row).on_conflict_do_nothing())
    query = select(_table.until).where(_table.key == key, _table.name == name).with_for_update()
    return unit.connection.execute(query).scalar_one()


def _set(unit: Transaction, key: str, name: str, until: int) -> None:
    query = update(model_limits).where(_table.key == key, _table.name == name)
    unit.connection.execute(query.values(until=until))
