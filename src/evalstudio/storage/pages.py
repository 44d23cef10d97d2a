"""Reading rows: all of a query at once, and lists page by page.

Statements are put together once and kept, because that costs more than running them. On SQLite all rows of a
query come as one text of JSON: its driver lets other threads run at every row, which with several readers
costs many times what the rows do.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

import orjson
from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    FromClause,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.types import TypeEngine

from .columns import Json, Plain, read_document
from .contract import Page, cursor_after, read_cursor
from .prepared import Prepared
from .rows import AnyRow
from .transaction import Transaction

LARGEST_PAGE = 1000
LARGEST_PAGE_BYTES = 16_000_000
T = TypeVar("T")
Converters = Sequence[tuple[int, Callable[[Any], Any]]]
Order = Callable[[list[Any]], list[Any]]
# SQLite writes numbers into JSON with 15 digits; with these they come back as they were.
_ALL_DIGITS: ColumnElement[Any] = literal_column("'%!.20e'")
_NONE: Mapping[str, Any] = {}


def _as_it_is(row: AnyRow) -> AnyRow:
    return row


class RowsQuery:
    """A query whose rows are read together; made once, run with the values of its parameters.

    The order of the query is kept: SQLite does not drop that of what it joins to one text. Where ``bounded``,
    rows that would make a very long one come one by one.
    """

    def __init__(self, query: Select[Any], *, bounded: bool = False, often: bool = True) -> None:
        self._query, self._bounded, self._often = query, bounded, often

    # Each is made when it is needed first: of the queries that are kept most commands run none.
    @cached_property
    def _columns(self) -> FromClause:
        return self._query.subquery()

    @cached_property
    def _bytes(self) -> Select[Any]:
        sizes = self._query.with_only_columns(_size_of(self._query), maintain_column_froms=True).subquery()
        return select(func.sum(sizes.c.size))

    @cached_property
    def _row(self) -> Callable[[Iterable[Any]], AnyRow]:
        return namedtuple("Row", self._columns.c.keys())._make  # pyright: ignore[reportUntypedNamedTuple] - made of what is selected

    @cached_property
    def _reading(self) -> tuple[Order | None, Converters]:
        return _in_order(self._columns.c), _converters(self._columns.c, Boolean, Float)

    @cached_property
    def as_text(self) -> Select[Any]:
        return _joined(_document(self._columns.c), self._columns)

    @cached_property
    def _text(self) -> Prepared:
        return Prepared(self.as_text, often=self._often)

    @cached_property
    def _one_by_one(self) -> tuple[Select[Any], Converters]:
        """With a damaged document the text cannot be read; then each document is read by itself."""
        documents = func.json_array(*map(_in_json, self._columns.c))
        return _joined(documents, self._columns), _converters(self._columns.c, Boolean, Float, Json)

    def all(
        self, unit: Transaction, values: Mapping[str, Any] = _NONE, read: Callable[[AnyRow], Any] = _as_it_is
    ) -> Sequence[Any]:
        """The rows, or what ``read`` makes of each; the rest of a row is gone before the next is read."""
        if unit.is_postgres or (self._bounded and self._size(unit, values) > LARGEST_PAGE_BYTES):
            return [read(row) for row in unit.connection.execute(self._query, values)]
        row = self._text.first_row(unit, values)
        return self.in_text(row[0] if row else None, unit, values, read)

    def in_text(
        self, rows: str | None, unit: Transaction, values: Mapping[str, Any], read: Callable[[AnyRow], Any]
    ) -> Sequence[Any]:
        """The rows of the text that SQLite makes of them."""
        try:
            return self._read(rows, *self._reading, read)
        except (orjson.JSONDecodeError, TypeError):
            query, converters = self._one_by_one
            return self._read(unit.connection.execute(query, values).scalar(), None, converters, read)

    def _size(self, unit: Transaction, values: Mapping[str, Any]) -> int:
        return unit.connection.execute(self._bytes, values).scalar() or 0

    def _read(
        self, rows: str | None, in_order: Order | None, converters: Converters, read: Callable[[AnyRow], Any]
    ) -> Sequence[Any]:
        if not rows:
            return ()
        lines = rows.split("\n")
        if in_order is None:
            return [read(self._row(_converted(orjson.loads(line), converters))) for line in lines]
        return [read(self._row(_converted(in_order(orjson.loads(line)), converters))) for line in lines]


def _joined(document: ColumnElement[Any], columns: FromClause) -> Select[Any]:
    """One document a line: none has a line break of its own."""
    return select(func.group_concat(document, literal_column("char(10)"))).select_from(columns)


def _converted(row: list[Any], converters: Converters) -> list[Any]:
    for place, convert in converters:
        if row[place] is not None:
            row[place] = convert(row[place])
    return row


def _document(columns: Iterable[ColumnElement[Any]]) -> ColumnElement[Any]:
    """A row as JSON text: an array of its values; where it has documents, of the other values and of each."""
    others = func.json_array(*(_in_json(column) for column in columns if not isinstance(column.type, Json)))
    documents = [column for column in columns if isinstance(column.type, Json)]
    if not documents:
        return others
    places: ColumnElement[Any] = literal_column(f"'[%s{',%s' * len(documents)}]'")
    return func.printf(places, others, *map(_as_written, documents))


def _as_written(document: ColumnElement[Any]) -> ColumnElement[Any]:
    """A document is JSON text already."""
    return func.coalesce(type_coerce(document, Text), literal_column("'null'"))


def _in_order(columns: Iterable[ColumnElement[Any]]) -> Order | None:
    """What puts the values of such an array into the order of the columns; nothing where they are in it."""
    places = [place for place, column in enumerate(columns) if not isinstance(column.type, Json)]
    documents = [place for place, column in enumerate(columns) if isinstance(column.type, Json)]
    if not documents:
        return None
    by_place = {place: number for number, place in enumerate([*places, *documents])}
    order = [by_place[place] for place in range(len(by_place))]
    number = len(places) + len(documents)

    def in_order(row: list[Any]) -> list[Any]:
        values = [*row[0], *row[1:]]
        if len(values) != number:
            raise TypeError("a document is damaged")
        return [values[place] for place in order]

    return in_order


def _in_json(column: ColumnElement[Any]) -> ColumnElement[Any]:
    if isinstance(column.type, Float):
        return case((column.is_not(None), func.printf(_ALL_DIGITS, column)))
    return column


def _converters(columns: Iterable[ColumnElement[Any]], *kinds: type[TypeEngine[Any]]) -> Converters:
    """What makes of values in JSON the ones that were stored, by their places."""
    return [
        (place, _READ[kind])
        for place, column in enumerate(columns)
        for kind in kinds
        if isinstance(column.type, kind)
    ]


_READ: dict[type[TypeEngine[Any]], Callable[[Any], Any]] = {Boolean: bool, Float: float, Json: read_document}


class PageQuery:
    """A list, newest first, in pages that are bounded in rows and bytes."""

    def __init__(
        self, query: Select[Any], identity: ColumnElement[str], *, after: bool = False, often: bool = True
    ) -> None:
        if after:
            query = query.where(identity < bindparam("after", type_=identity.type))
        part = query.order_by(identity.desc()).limit(bindparam("most", type_=Integer))
        sizes = cast(Select[Any], part.with_only_columns(identity, _size_of(query)))
        self._sizes = RowsQuery(sizes, often=often)
        self._bytes = select(func.sum(sizes.subquery().c.size).label("bytes"))
        self._rows = RowsQuery(part, often=often)
        size = self._bytes.subquery().c.bytes
        text = self._rows.as_text.scalar_subquery()
        self._bounded = Prepared(select(size, case((size <= literal(LARGEST_PAGE_BYTES), text))), often=often)

    def read(
        self,
        unit: Transaction,
        values: Mapping[str, Any],
        cursor: str | None,
        limit: int,
        read: Callable[[AnyRow], Any] = _as_it_is,
    ) -> tuple[Sequence[Any], str | None]:
        """The rows of a page, or what is made of them with their ids, and the cursor of the next one."""
        if not 1 <= limit <= LARGEST_PAGE:
            raise ValueError(f"limit must be between 1 and {LARGEST_PAGE}, not {limit}")
        values = {**values, "most": limit + 1}
        if cursor is not None:
            values["after"] = read_cursor(cursor)
        rows = self._all(unit, values, read)
        if rows is None and (most := self._fitting(unit, values)) is not None:
            rows = self._rows.all(unit, {**values, "most": most}, read)
            # Without a transaction, all of them may have been deleted since.
            return rows, cursor_after(rows[-1].id) if rows else None
        rows = self._rows.all(unit, values, read) if rows is None else rows
        return rows[:limit], cursor_after(rows[limit - 1].id) if len(rows) > limit else None

    def _all(
        self, unit: Transaction, values: Mapping[str, Any], read: Callable[[AnyRow], Any]
    ) -> Sequence[Any] | None:
        """The rows, unless they are more bytes than a page may have; on SQLite by one statement."""
        if unit.is_postgres:
            size = unit.connection.execute(self._bytes, values).scalar()
            return None if (size or 0) > LARGEST_PAGE_BYTES else self._rows.all(unit, values, read)
        size, text = self._bounded.first_row(unit, values) or (None, None)
        return None if (size or 0) > LARGEST_PAGE_BYTES else self._rows.in_text(text, unit, values, read)

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
    pages = PageQuery(query, identity, after=cursor is not None, often=False)
    rows, following = pages.read(unit, _NONE, cursor, limit)
    return Page([read(row) for row in rows], following)
