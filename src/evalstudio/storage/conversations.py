"""Lists of production conversations, newest first, and one of them in short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select

from ..base.times import iso, moment_of
from .contract import EVERYTHING, Filters, Page
from .lists import contains, equal, in_period, one_row
from .monitoring import reviews_of
from .pages import paged
from .rows import AnyRow
from .schema import conversations
from .transaction import Transaction

_table = conversations.c
_SHOWN = [
    column
    for column in conversations.c
    if column.name not in {"key", "tail", "lease_until", "worker_id", "bytes", "attempts"}
]


def list_conversations(
    unit: Transaction,
    filters: Filters = EVERYTHING,
    *,
    failed: bool | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[dict[str, Any]]:
    """Conversations in short, newest first."""
    query: Select[Any] = select(*_SHOWN).where(*in_period(_table.id, filters))
    query = query.where(*equal(conversations, filters, "status"))
    if filters.agent_id is not None:
        query = query.where(_table.agent == filters.agent_id)
    if filters.text:
        columns: list[Any] = [func.lower(one) for one in (_table.name, _table.title, _table.agent)]
        query = query.where(or_(*(contains(one, filters.text) for one in columns)))
    if failed is not None:
        has_error: ColumnElement[bool] = _table.error.is_not(None)
        query = query.where(has_error if failed else ~has_error)
    page = paged(unit, query, _table.id, _summary, cursor, limit)
    return Page(_with_reviews(unit, page.items), page.cursor)


def get_conversation(unit: Transaction, conversation_id: str) -> dict[str, Any]:
    query = select(*_SHOWN).where(_table.id == conversation_id)
    (summary,) = _with_reviews(unit, [_summary(one_row(unit, query, "conversation", conversation_id))])
    return summary


def _with_reviews(unit: Transaction, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    reviews = reviews_of(unit, [item["id"] for item in items])
    return [item | {"reviews": reviews[item["id"]]} for item in items]


def _summary(row: AnyRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "revision": row.revision,
        "judged": row.handed >= row.revision,
        "problem": row.problem,
        "spans": row.spans,
        "lateSpans": row.late,
        "refusedSpans": row.refused,
        "createdAt": iso(moment_of(row.first)),
        "updatedAt": iso(moment_of(row.last)),
        "startedAt": iso(moment_of(row.started)) if row.started else None,
        "turnCount": row.turn_count,
        "totalTokens": row.total_tokens,
        "agent": row.agent,
        "title": row.title,
        "error": row.error,
        "attributes": row.attributes or {},
    }
