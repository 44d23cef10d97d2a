"""What migrations do to a schema, as statements of SQLAlchemy's own.

A migration imports this module as ``op``. Its statements go to the connection that is being migrated.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Column, Connection, Executable, Index, MetaData, Table, text
from sqlalchemy.schema import CreateColumn

_connection: ContextVar[Connection] = ContextVar("evalstudio_migrated_connection")


@contextmanager
def migrating(connection: Connection) -> Generator[None]:
    """Everything below works on this connection."""
    token = _connection.set(connection)
    try:
        yield
    finally:
        _connection.reset(token)


def get_bind() -> Connection:
    return _connection.get()


def execute(statement: str | Executable) -> None:
    get_bind().execute(text(statement) if isinstance(statement, str) else statement)


def create_table(name: str, *columns: Column[Any], **options: Any) -> None:
    table = Table(name, MetaData(), *columns, **options)
    for key in table.foreign_keys:
        # The table that is referred to may be from an earlier migration; its name is all that is written.
        target, column = key.target_fullname.split(".")
        if target not in table.metadata.tables:
            Table(target, table.metadata, Column(column, key.parent.type))
    table.create(get_bind())


def add_column(table: str, column: Column[Any]) -> None:
    Table(table, MetaData(), column)
    specification = CreateColumn(column).compile(dialect=get_bind().dialect)
    get_bind().exec_driver_sql(f"ALTER TABLE {_quoted(table)} ADD COLUMN {specification}")


def drop_column(table: str, column: str) -> None:
    get_bind().exec_driver_sql(f"ALTER TABLE {_quoted(table)} DROP COLUMN {_quoted(column)}")


def create_index(name: str, table: str, columns: Sequence[str], **options: Any) -> None:
    """An index; ``sqlite_where`` and ``postgresql_where`` limit it to some rows."""
    own: list[Column[Any]] = [Column(column) for column in columns]
    Table(table, MetaData(), *own)
    Index(name, *own, **options).create(get_bind())


def _quoted(name: str) -> str:
    return get_bind().dialect.identifier_preparer.quote(name)
