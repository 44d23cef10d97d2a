"""Opening a project's store: finding it, checking its schema, bringing it up to date."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.extras import needs_extra
from ..base.lazy_dataclass import dataclass
from ..base.private_files import keep_private, make_private_file
from ..base.references import UnsetVariable, resolve
from ..project.config import StorageSettings
from .errors import SchemaMismatch, StorageError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from .migrations import SchemaStatus
    from .postgres import PostgresDatabase
    from .store import SqlStore

DEFAULT_PATH = "data/evalstudio.db"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Migrated:
    """What bringing a database up to date did."""

    before: SchemaStatus
    backup: Path | None = None


async def open_store(settings: StorageSettings, base: Path) -> SqlStore:
    """The store of a project whose config file is in ``base``; made if there is none yet."""
    from .store import SqlStore

    if settings.type == "sqlite":
        from .sqlite import SqliteDatabase

        path = sqlite_path(settings, base)
        await asyncio.to_thread(_migrate_sqlite, path)
        return SqlStore(SqliteDatabase(path, full_sync=settings.synchronous == "full"))
    database = postgres_of(settings)
    try:
        await _prepare_postgres(database)
    except BaseException:
        await database.close()
        raise
    return SqlStore(database)


async def migrate(settings: StorageSettings, base: Path) -> Migrated:
    """Bring the database to this version's schema, after a backup copy of a SQLite file."""
    if settings.type == "sqlite":
        return await asyncio.to_thread(_migrate_sqlite, sqlite_path(settings, base))
    return Migrated(await _on_postgres(settings, _upgrade))


async def status(settings: StorageSettings, base: Path) -> SchemaStatus:
    """Where the database stands; nothing is changed or made."""
    if settings.type == "postgres":
        from .migrations import schema_status

        return await _on_postgres(settings, schema_status)
    return await asyncio.to_thread(_sqlite_status, sqlite_path(settings, base))


def sqlite_path(settings: StorageSettings, base: Path) -> Path:
    path = _resolved(settings.path or DEFAULT_PATH, "storage.path")
    return (base / Path(path).expanduser()).resolve()


def dsn_of(settings: StorageSettings) -> str:
    from .postgres import plain_dsn

    return plain_dsn(_resolved(settings.connection_string or "", "storage.connectionString"))


def postgres_of(settings: StorageSettings) -> PostgresDatabase:
    with needs_extra("postgres", 'storage of the type "postgres"', StorageError):
        from .postgres import PostgresDatabase
    return PostgresDatabase(dsn_of(settings))


def _resolved(text: str, field: str) -> str:
    try:
        return resolve(text, field)
    except UnsetVariable as error:
        raise StorageError(str(error)) from None


def _sqlite_status(path: Path) -> SchemaStatus:
    from .migrations import SchemaStatus, schema_status
    from .sqlite import connect

    with explained(path):
        if not path.exists():
            return SchemaStatus("empty", None)
        with disposing(connect(path, reading=True)) as engine, engine.connect() as connection:
            return schema_status(connection)


def _migrate_sqlite(path: Path) -> Migrated:
    from . import migrations
    from .sqlite import connect, retry_while_busy

    before = _sqlite_status(path)
    migrations.check_not_newer(before, str(path))
    for ending in ("", "-wal", "-shm"):
        keep_private(path.with_name(path.name + ending))
    if before.state == "current":
        return Migrated(before)
    with explained(path):
        make_private_file(path)
        with (
            disposing(connect(path)) as engine,
            retry_while_busy(engine.connect) as connection,
            connection.begin(),
        ):
            # Looked at again: another process may have been faster.
            before = migrations.schema_status(connection)
            migrations.check_not_newer(before, str(path))
            backup = migrations.back_up(path, before.found or "0") if before.state == "older" else None
            if before.state == "empty":
                migrations.create_sqlite(connection)
            elif before.state == "older":
                migrations.upgrade(connection)
        return Migrated(before, backup)


@contextmanager
def disposing(engine: Engine) -> Generator[Engine]:
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def explained(path: Path) -> Generator[None]:
    """What goes wrong with the file is raised with what to do about it."""
    from sqlalchemy.exc import DBAPIError

    from .transaction import sqlite_failure

    try:
        yield
    except (DBAPIError, sqlite3.Error, OSError) as error:
        raise sqlite_failure(error, path) from None


def _upgrade(connection: Connection) -> SchemaStatus:
    from . import migrations

    migrations.lock(connection)
    before = migrations.schema_status(connection)
    migrations.check_not_newer(before, "The database")
    if before.state != "current":
        migrations.upgrade(connection)
    return before


async def _prepare_postgres(database: Any) -> None:
    """Make the schema in an empty database; leave an older one to whoever looks after it."""
    from .migrations import check_not_newer

    before: SchemaStatus = await database.first(_look_or_make)
    check_not_newer(before, f"The database at {database.place}")
    if before.state == "older":
        raise SchemaMismatch(
            f"The database at {database.place} has an older schema ({before.found}; this version needs "
            f"{before.wanted}). Back it up and run: evalstudio db migrate"
        )


def _look_or_make(connection: Connection) -> SchemaStatus:
    from .migrations import schema_status

    current = schema_status(connection)
    return _upgrade(connection) if current.state == "empty" else current


async def _on_postgres(settings: StorageSettings, work: Callable[[Connection], T]) -> T:
    database = postgres_of(settings)
    try:
        return await database.first(work)
    finally:
        await database.close()
