"""Bringing a database to this version's schema: never down, never past what this version knows.

The migrations are in ``versions``. Alembic is imported only when there is something to do.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, inspect, text

from ...base.private_files import make_private_file
from ..errors import SchemaMismatch
from ..schema import HEAD, metadata

_FOLDER = Path(__file__).parent
_MIGRATING_LOCK = 0x65766C6D
# As Alembic makes it.
_VERSION_TABLE = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
_one_at_a_time = threading.Lock()

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
    known = {script.revision for script in _script().walk_revisions()}
    return SchemaStatus("older" if revision in known else "newer", revision)


def check_not_newer(status: SchemaStatus, where: str) -> None:
    if status.state == "newer":
        raise SchemaMismatch(
            f"{where} was made by a newer version of evalstudio (schema {status.found}; this version knows "
            f"{status.wanted}). Update evalstudio and try again."
        )


def upgrade(connection: Connection, to: str = HEAD) -> None:
    """Apply the migrations that are missing, inside the caller's transaction."""
    from alembic.runtime.environment import EnvironmentContext

    script = _script()

    def steps(revision: Any, _context: Any) -> Any:
        return script._upgrade_revs(to, revision)  # pyright: ignore[reportPrivateUsage]

    settings = EnvironmentContext(_config(), script, fn=steps, destination_rev=to)
    # Alembic knows one migration per process: two threads would write into each other's databases.
    with _one_at_a_time, settings as environment:
        environment.configure(connection=connection, transactional_ddl=True)
        with environment.begin_transaction():
            environment.run_migrations()


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
        _VERSION_TABLE,
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


def _config() -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def _script() -> Any:
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(_config())
