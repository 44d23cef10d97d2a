"""Reading rows: all of a query at once, and lists page by page.

Statements are put together once and kept, because that costs more than running them. On SQLite all rows of a
query come as one text of JSON: its driver lets other threads run at every row, which with several readers
costs many times what the rows do.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import orjson
from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    Integer,
    Select,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    select,
)

from .columns import Json, Plain, read_document
from .contract import Page, cursor_after, read_cursor
from .rows import AnyRow
from .transaction import Transaction

LARGEST_PAGE = 1000
LARGEST_PAGE_BYTES = 16_000_000
T = TypeVar("T")
# SQLite writes numbers into JSON with 15 digits; with these they come back as they were.
_ALL_DIGITS: ColumnElement[Any] = literal_column("'%!.20e'")
_NONE: Mapping[str, Any] = {}


class RowsQuery:
    """A query whose rows are read together; made once, run with the values of its parameters.

    The order of the query is kept: SQLite does not drop that of what it joins to one text.
    """

    def __init__(self, query: Select[Any]) -> None:
        self._query = query
        columns = query.subquery()
        self._row = namedtuple("Row", columns.c.keys())._make  # pyright: ignore[reportUntypedNamedTuple] - made of what is selected
        self._converters = [
            (place, convert)
            for place, column in enumerate(columns.c)
            if (convert := _converter(column)) is not None
        ]
        document = func.json_array(*(_in_json(column) for column in columns.c))
        self.as_text = select(func.group_concat(document)).select_from(columns)

    def all(self, unit: Transaction, values: Mapping[str, Any] = _NONE) -> Sequence[AnyRow]:
        if unit.is_postgres:
            return unit.connection.execute(self._query, values).all()
        return self.in_text(unit.connection.execute(self.as_text, values).scalar())

    def in_text(self, rows: str | None) -> Sequence[AnyRow]:
        """The rows of the text that SQLite makes of them."""
        return [self._row(self._converted(row)) for row in orjson.loads(f"[{rows}]")] if rows else ()

    def _converted(self, row: list[Any]) -> list[Any]:
        for place, convert in self._converters:
            if row[place] is not None:
                row[place] = convert(row[place])
        return row


def _in_json(column: ColumnElement[Any]) -> ColumnElement[Any]:
    if isinstance(column.type, Float):
        return case((column.is_not(None), func.printf(_ALL_DIGITS, column)))
    return column


def _converter(column: ColumnElement[Any]) -> Callable[[Any], Any] | None:
    """What makes of a value in JSON the one that was stored."""
    kind = column.type
    if isinstance(kind, Json):
        return read_document
    if isinstance(kind, Float):
        return float
    return bool if isinstance(kind, Boolean) else None


class PageQuery:
    """A list, newest first, in pages that are bounded in rows and bytes."""

    def __init__(self, query: Select[Any], identity: ColumnElement[str], *, after: bool = False) -> None:
        if after:
            query = query.where(identity < bindparam("after", type_=identity.type))
        part = query.order_by(identity.desc()).limit(bindparam("most", type_=Integer))
        sizes = cast(Select[Any], part.with_only_columns(identity, _size_of(query)))
        self._sizes = RowsQuery(sizes)
        self._bytes = select(func.sum(sizes.subquery().c.size).label("bytes"))
        self._rows = RowsQuery(part)
        size = self._bytes.subquery().c.bytes
        text = self._rows.as_text.scalar_subquery()
        self._bounded = select(size, case((size <= literal(LARGEST_PAGE_BYTES), text)))

    def read(
        self, unit: Transaction, values: Mapping[str, Any], cursor: str | None, limit: int
    ) -> tuple[Sequence[AnyRow], str | None]:
        """The rows of a page, and the cursor of the next one."""
        if not 1 <= limit <= LARGEST_PAGE:
            raise ValueError(f"limit must be between 1 and {LARGEST_PAGE}, not {limit}")
        values = {**values, "most": limit + 1}
        if cursor is not None:
            values["after"] = read_cursor(cursor)
        rows = self._all(unit, values)
        if rows is None and (most := self._fitting(unit, values)) is not None:
            rows = self._rows.all(unit, {**values, "most": most})
            # Without a transaction, all of them may have been deleted since.
            return rows, cursor_after(rows[-1].id) if rows else None
        rows = self._rows.all(unit, values) if rows is None else rows
        return rows[:limit], cursor_after(rows[limit - 1].id) if len(rows) > limit else None

    def _all(self, unit: Transaction, values: Mapping[str, Any]) -> Sequence[AnyRow] | None:
        """The rows, unless they are more bytes than a page may have; on SQLite by one statement."""
        if unit.is_postgres:
            size = unit.connection.execute(self._bytes, values).scalar()
            return None if (size or 0) > LARGEST_PAGE_BYTES else self._rows.all(unit, values)
        size, text = unit.connection.execute(self._bounded, values).one()
        return None if (size or 0) > LARGEST_PAGE_BYTES else self._rows.in_text(text)

    def _fitting(self, unit: Transaction, values: Mapping[str, Any]) -> int | None:
        """How many rows make a page, at least one, where not all of them do."""
        total = 0
        for place, (_, size) in enumerate(self._sizes.all(unit, values)):
            total += size
            if total > LARGEST_PAGE_BYTES and place:
                return place
        return None


def _size_of(query: Select[Any]) -> ColumnElement[int]:
    """About how many bytes a row has: the length of its texts and documents."""
    texts = [column for column in query.selected_columns if isinstance(column.type, Plain | Json)]
    return sum((func.coalesce(func.length(text), 0) for text in texts), literal(0)).label("size")


def paged(
    unit: Transaction,
    query: Select[Any],
    identity: ColumnElement[str],
    read: Callable[[AnyRow], T],
    cursor: str | None,
    limit: int,
) -> Page[T]:
    """One page of a query, newest first."""
    rows, following = PageQuery(query, identity, after=cursor is not None).read(unit, _NONE, cursor, limit)
    return Page([read(row) for row in rows], following)
