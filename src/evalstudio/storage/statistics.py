"""Figures for dashboards, computed where the rows are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, case, func, select

from ..project.entities import Counts
from .contract import Filters, GroupedBy, Tally
from .lists import execution_conditions, run_conditions
from .rows import AnyRow
from .schema import executions, runs
from .transaction import COUNTED, Unit


def tally_executions(unit: Unit, filters: Filters, limit: int) -> list[Tally]:
    """The newest executions with their counts, latency, score and tokens."""
    shown = (
        select(executions).where(*execution_conditions(filters)).order_by(executions.c.id.desc()).limit(limit)
    )
    rows = unit.connection.execute(shown).all()
    ids = [row.id for row in rows]
    query = select(runs.c.execution_id, *_figures()).where(runs.c.execution_id.in_(ids))
    measured = {row.execution_id: row for row in unit.connection.execute(query.group_by(runs.c.execution_id))}
    return [_tally(row.id, row.eval_name, row, measured.get(row.id)) for row in rows]


def tally(unit: Unit, by: GroupedBy, filters: Filters) -> list[Tally]:
    """Runs by scenario, persona or connector."""
    identity = runs.c[f"{by}_id"]
    name = func.max(runs.c[f"{by}_name"]).label("name")
    query = select(identity.label("id"), name, *_counts(), *_figures()).where(*run_conditions(filters))
    rows = unit.connection.execute(query.group_by(identity).order_by(identity)).all()
    return [_tally(row.id, row.name, row, row) for row in rows]


def _counts() -> list[ColumnElement[Any]]:
    conditions = {
        "queued": runs.c.status == "queued",
        "running": runs.c.status == "running",
        "passed": runs.c.outcome == "pass",
        "failed": runs.c.outcome == "fail",
        "errored": runs.c.outcome == "error",
        "cancelled": runs.c.status == "cancelled",
        "unasserted": (runs.c.outcome == "pass") & runs.c.asserted.is_(False),
    }
    counted = [func.sum(case((condition, 1), else_=0)).label(name) for name, condition in conditions.items()]
    return [func.count().label("total"), *counted]


def _figures() -> list[ColumnElement[Any]]:
    return [
        func.avg(runs.c.latency_ms).label("mean_latency"),
        func.max(runs.c.latency_ms).label("max_latency"),
        func.avg(runs.c.score).label("mean_score"),
        func.sum(runs.c.total_tokens).label("tokens"),
    ]


def _tally(identity: str | None, name: str | None, counts: AnyRow, found: AnyRow | None) -> Tally:
    return Tally(
        id=identity,
        name=name,
        counts=Counts(**{key: int(getattr(counts, key)) for key in COUNTED}),
        mean_latency_ms=found.mean_latency if found else None,
        max_latency_ms=found.max_latency if found else None,
        mean_score=found.mean_score if found else None,
        total_tokens=int(found.tokens) if found and found.tokens is not None else None,
    )
