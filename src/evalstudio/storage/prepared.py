"""Statements that are run very often: compiled once, and on SQLite handed straight to the driver.

SQLAlchemy takes ten times as long to run a short statement as SQLite does. The statement is the same, and so
is what its columns make of the values; PostgreSQL's go through SQLAlchemy as all others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from sqlalchemy import Connection, Dialect, Table, insert
from sqlalchemy.types import TypeEngine

from ..base.json_text import clean_text, json_text
from .columns import Json, Plain

Values = Mapping[str, Any]
Bind = Callable[[Any], Any]


class Unit(Protocol):
    """A transaction, as far as running statements goes."""

    connection: Connection
    is_postgres: bool

    @property
    def driver(self) -> sqlite3.Connection: ...


class _Compiled:
    """A statement as text, and how its values become those of its question marks."""

    def __init__(self, statement: Any, dialect: Dialect, keys: Sequence[str] | None = None) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=keys)
        self.text = str(compiled)
        self.usual = not getattr(compiled, "insert_prefetch", None)
        binds = [(name, compiled.binds[name]) for name in compiled.positiontup]
        self._places: list[tuple[str, Bind | None]] = [
            (name, _bind(one.type, dialect)) for name, one in binds
        ]
        # What the statement says itself; all else must be given.
        self._own: Values = {name: one.value for name, one in binds if not one.required}

    def arguments(self, values: Values) -> list[Any]:
        if self._own:
            values = {**self._own, **values}
        return [
            value if (value := values[name]) is None or bind is None else bind(value)
            for name, bind in self._places
        ]


def _bind(kind: TypeEngine[Any], dialect: Dialect) -> Bind | None:
    """What a column makes of a value that is there; our own types without the calls in between."""
    if isinstance(kind, Plain):
        return clean_text
    if isinstance(kind, Json):
        return json_text
    return kind.dialect_impl(dialect).bind_processor(dialect)


class Prepared:
    """One statement with named parameters; one that is not run ``often`` is left to SQLAlchemy."""

    def __init__(self, statement: Any, *, often: bool = True) -> None:
        self._statement = statement
        self._often = often
        self._compiled: _Compiled | None = None

    def first_row(self, unit: Unit, values: Values) -> Sequence[Any] | None:
        """Run it; the first row that comes back, its columns in the statement's order."""
        rows = self.rows(unit, values)
        return rows[0] if rows else None

    def rows(self, unit: Unit, values: Values) -> Sequence[Sequence[Any]]:
        """Run it; all rows that come back, as the database has them."""
        if unit.is_postgres or not self._often:
            return unit.connection.execute(self._statement, values).all()
        if self._compiled is None:
            self._compiled = _Compiled(self._statement, unit.connection.dialect)
        return unit.driver.execute(self._compiled.text, self._compiled.arguments(values)).fetchall()


def insert_rows(unit: Unit, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows, all with the same columns."""
    if not unit.is_postgres:
        compiled = _inserting(table, tuple(rows[0]), unit.connection.dialect)
        if compiled.usual:
            unit.driver.executemany(compiled.text, map(compiled.arguments, rows))
            return
    unit.connection.execute(insert(table), rows)


@lru_cache(maxsize=64)
def _inserting(table: Table, columns: tuple[str, ...], dialect: Dialect) -> _Compiled:
    return _Compiled(insert(table), dialect, columns)
