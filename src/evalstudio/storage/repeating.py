"""Executions that are repeated until they are decided: one repetition after the other, then the end.

Such an execution is marked as unfinished while another repetition may come, and runs that long.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, insert, select

from ..project.entities import UNFINISHED, new_id
from .schema import executions, runs
from .transaction import Transaction, now_ms, unmark_partial

SubjectKey = tuple[str | None, str | None, str | None, str | None]
"""Scenario, persona, case (by name) and connector."""

_SAME = (
    *("execution_id", "eval_id", "scenario_id", "persona_id", "connector_id", "case_name", "name_key"),
    *("scenario_name", "persona_name", "connector_name", "case", "case_hash"),
    *("scenario_snapshot", "persona_snapshot", "connector_snapshot"),
)


def _awaits_decision() -> ColumnElement[bool]:
    table = executions.c
    over = (table.queued == 0) & (table.running == 0) & (table.status == "running")
    return over & table.until_decided.is_not(None) & table.partial.like(f"%{UNFINISHED}%")


def awaiting_decision(unit: Transaction, execution_id: str | None = None) -> list[str]:
    """The executions all of whose runs are over, while nobody has said whether there are to be more."""
    query = select(executions.c.id).where(_awaits_decision())
    if execution_id is not None:
        query = query.where(executions.c.id == execution_id)
    return list(unit.connection.execute(query.order_by(executions.c.id)).scalars())


def add_repetition(
    unit: Transaction, execution_id: str, subjects: Collection[SubjectKey], repetition: int
) -> int:
    """Queue these subjects once more, as they were the first time; says how many runs that are.

    Of two workers that ask for the same repetition, the second finds it queued.
    """
    of_execution = runs.c.execution_id == execution_id
    known = select(runs.c.id).where(of_execution, runs.c.repetition >= repetition).limit(1)
    if not _locked_if_awaiting(unit, execution_id) or unit.connection.execute(known).first() is not None:
        return 0
    first = select(runs).where(of_execution, runs.c.repetition == 1)
    keys = (runs.c.scenario_id, runs.c.persona_id, runs.c.case_name, runs.c.connector_id)
    rows = [
        _repeated(row._mapping, repetition)  # pyright: ignore[reportPrivateUsage] - how SQLAlchemy names it
        for row in unit.connection.execute(first.order_by(runs.c.id))
        if tuple(row._mapping[key] for key in keys) in subjects  # pyright: ignore[reportPrivateUsage]
    ]
    if rows:
        unit.connection.execute(insert(runs), rows)
        unit.count(execution_id, total=len(rows), queued=len(rows))
        body = {"repetition": repetition, "runs": len(rows)}
        unit.add_event("execution.running", execution_id, body=body)
        unit.new_work = True
    return len(rows)


def _locked_if_awaiting(unit: Transaction, execution_id: str) -> bool:
    which = (executions.c.id == execution_id) & _awaits_decision()
    query = select(executions.c.id).where(which).with_for_update()
    return unit.connection.execute(query).first() is not None


def _repeated(row: Any, repetition: int) -> dict[str, Any]:
    moment = now_ms()
    return {name: row[name] for name in _SAME} | {
        "id": new_id(),
        "repetition": repetition,
        "status": "queued",
        "attempt": 1,
        "losses": 0,
        "turn_count": 0,
        **dict.fromkeys(("queued", "created", "updated"), moment),
    }


def finish_repeating(unit: Transaction, execution_id: str) -> None:
    """Note that no further repetition is to come, unless another worker has just queued one."""
    if _locked_if_awaiting(unit, execution_id):
        unmark_partial(unit, execution_id, UNFINISHED)
        unit.count(execution_id)
