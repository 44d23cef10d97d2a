"""Finding runs by what they hold: what was said, what an evaluator found, the value of a metric.

No index answers these, so a page looks at a bounded number of runs and its cursor goes on behind the last one
looked at: a page may be short, or empty, although more follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Text, cast, func, or_, select

from ..base.json_text import json_text
from ..evaluators.results import Finding
from ..project.entities import RunSummary
from .contract import Filters, Page, cursor_after, read_cursor
from .rows import RUN_COLUMNS, summary_of
from .schema import messages, outputs, runs
from .transaction import Transaction

LOOKED_AT = 500
_FINDING = TypeAdapter(Finding)


def looks_inside(filters: Filters) -> bool:
    return any((filters.said, filters.evaluator, filters.metric))


def search_runs(
    unit: Transaction, filters: Filters, conditions: Sequence[Any], cursor: str | None, limit: int
) -> Page[RunSummary]:
    """One page of the runs that match, newest first, of a bounded number that is looked at."""
    query = select(runs.c.id).where(*conditions)
    if cursor is not None:
        query = query.where(runs.c.id < read_cursor(cursor))
    newest_first = query.order_by(runs.c.id.desc()).limit(LOOKED_AT + 1)
    ids = [row.id for row in unit.connection.execute(newest_first)]
    looked_at = ids[:LOOKED_AT]
    matching = set(looked_at)
    if filters.said:
        matching &= _saying(unit, looked_at, filters.said)
    if filters.evaluator or filters.metric:
        matching &= _measured(unit, sorted(matching), filters)
    chosen = [one for one in looked_at if one in matching]
    page = chosen[:limit]
    last = page[-1] if len(chosen) > limit else looked_at[-1] if len(ids) > LOOKED_AT else None
    return Page(_summaries(unit, page), None if last is None else cursor_after(last))


def _summaries(unit: Transaction, ids: Sequence[str]) -> list[RunSummary]:
    if not ids:
        return []
    query = select(*RUN_COLUMNS).where(runs.c.id.in_(ids)).order_by(runs.c.id.desc())
    return [summary_of(row) for row in unit.connection.execute(query)]


def _saying(unit: Transaction, ids: Sequence[str], text: str) -> set[str]:
    """Those in whose last attempt somebody said this, whatever the case of its letters."""
    body = cast(messages.c.body, Text)
    # Messages are kept as JSON, which escapes quotation marks and line breaks. SQLite lowers ASCII alone.
    part = json_text(text)[1:-1]
    said = or_(func.lower(body).contains(part.lower(), autoescape=True), body.contains(part, autoescape=True))
    query = (
        select(messages.c.run_id)
        .join(runs, (runs.c.id == messages.c.run_id) & (runs.c.attempt == messages.c.attempt))
        .where(messages.c.run_id.in_(ids), said)
        .distinct()
    )
    return {row.run_id for row in unit.connection.execute(query)}


def _measured(unit: Transaction, ids: Sequence[str], filters: Filters) -> set[str]:
    """Those whose output has the verdict or the value that is looked for."""
    query = (
        select(outputs.c.run_id, outputs.c.output)
        .join(runs, (runs.c.id == outputs.c.run_id) & (runs.c.attempt == outputs.c.attempt))
        .where(outputs.c.run_id.in_(ids))
    )
    return {row.run_id for row in unit.connection.execute(query) if _matches(row.output, filters)}


def _matches(output: Mapping[str, Any], filters: Filters) -> bool:
    results: Sequence[Any] = output.get("evaluatorResults") or ()
    if filters.evaluator and not any(_is_finding(one, filters) for one in results):
        return False
    if not filters.metric:
        return True
    metrics: Mapping[str, Any] = output.get("metrics") or {}
    value = metrics.get(filters.metric)
    if not isinstance(value, int | float):
        return False
    low, high = filters.metric_min, filters.metric_max
    return (low is None or value >= low) and (high is None or value <= high)


def _is_finding(result: Mapping[str, Any], filters: Filters) -> bool:
    if filters.evaluator not in (result.get("name"), result.get("type")):
        return False
    return filters.verdict is None or _word(result) == filters.verdict


def _word(result: Mapping[str, Any]) -> str:
    return _FINDING.validate_python(dict(result)).word
