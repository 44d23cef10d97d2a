"""Bringing a database to this version's schema: never down, never past what this version knows.

The migrations are in ``versions``, one module each, named by their number; one is imported when it is due.
The table that says which have been applied has the name and form that Alembic gave it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, inspect, text

from ...base.lazy_dataclass import dataclass
from ...base.private_files import make_private_file
from ..errors import SchemaMismatch
from ..schema import HEAD, metadata

_MIGRATING_LOCK = 0x65766C6D
_VERSIONS = """CREATE TABLE IF NOT EXISTS alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""
_MOVE = "UPDATE alembic_version SET version_num = :to"

State = Literal["empty", "older", "current", "newer"]


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """Where a database stands against this version of the program."""

    state: State
    found: str | None
    wanted: str = HEAD


def schema_status(connection: Connection) -> SchemaStatus:
    if not inspect(connection).has_table("alembic_version"):
        return SchemaStatus("empty", None)
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision is None:
        return SchemaStatus("empty", None)
    if revision == HEAD:
        return SchemaStatus("current", revision)
    return SchemaStatus("older" if revision in revisions() else "newer", revision)


def check_not_newer(status: SchemaStatus, where: str) -> None:
    if status.state == "newer":
        raise SchemaMismatch(
            f"{where} was made by a newer version of evalstudio (schema {status.found}; this version knows "
            f"{status.wanted}). Update evalstudio and try again."
        )


def upgrade(connection: Connection, to: str = HEAD) -> None:
    """Apply the migrations that are missing, inside the caller's transaction."""
    from .operations import migrating

    done = _applied(connection)
    due = [revision for revision in revisions() if (done or "") < revision <= to]
    with migrating(connection):
        for revision in due:
            import_module(f"{__name__}.versions.{revisions()[revision]}").upgrade()
    if due:
        statement = "INSERT INTO alembic_version VALUES (:to)" if done is None else _MOVE
        connection.execute(text(statement), {"to": due[-1]})


def _applied(connection: Connection) -> str | None:
    connection.execute(text(_VERSIONS))
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


@cache
def revisions() -> dict[str, str]:
    """The modules of the migrations by their numbers, in order."""
    modules = sorted(file.stem for file in (Path(__file__).parent / "versions").glob("v*.py"))
    return {module[1:5]: module for module in modules}


def create_sqlite(connection: Connection) -> None:
    """Make this version's schema in an empty SQLite database, in one step instead of every migration."""
    for statement in _sqlite_statements():
        connection.exec_driver_sql(statement)


@cache
def _sqlite_statements() -> list[str]:
    from sqlalchemy.dialects.sqlite import dialect
    from sqlalchemy.schema import CreateIndex, CreateTable

    tables = metadata.sorted_tables
    indexes = [index for table in tables for index in sorted(table.indexes, key=lambda one: str(one.name))]
    made = [*map(CreateTable, tables), *map(CreateIndex, indexes)]
    return [
        *(str(statement.compile(dialect=dialect())) for statement in made),
        _VERSIONS,
        f"INSERT INTO alembic_version (version_num) VALUES ('{HEAD}')",
    ]


def lock(connection: Connection) -> None:
    """One process migrates at a time; on SQLite the transaction itself is the lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING_LOCK})


def back_up(path: Path, revision: str) -> Path:
    """A whole copy of a SQLite file beside it, made while others may be using it."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    copy = path.with_name(f"{path.name}.backup-{revision}-{stamp}")
    make_private_file(copy)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy
