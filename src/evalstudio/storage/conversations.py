"""Lists of production conversations, newest first, and one of them in short."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from ..project.entities import iso
from .contract import EVERYTHING, Filters, Page
from .lists import contains, equal, in_period, one_row
from .pages import paged
from .rows import AnyRow, moment_of
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
        text: Any = func.lower(_table.name)
        query = query.where(contains(text, filters.text))
    if failed is not None:
        has_error: ColumnElement[bool] = _table.error.is_not(None)
        query = query.where(has_error if failed else ~has_error)
    return paged(unit, query, _table.id, _summary, cursor, limit)


def get_conversation(unit: Transaction, conversation_id: str) -> dict[str, Any]:
    query = select(*_SHOWN).where(_table.id == conversation_id)
    return _summary(one_row(unit, query, "conversation", conversation_id))


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
