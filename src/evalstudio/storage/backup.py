"""Copies of a whole project: definitions, runs, results and events in one SQLite file.

The file is the same whichever database it was made from, so that it also moves a project from SQLite to
PostgreSQL. It is written beside its name and renamed when it is whole: a partial one never has its name.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, Text, TypeDecorator, column, func, insert, select, table, text

from ..project.config import StorageSettings
from . import migrations, schema
from .errors import StorageError
from .opening import disposing, explained, open_store, postgres_of, sqlite_path
from .sqlite import connect

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

_ROWS = 1000
# Which tables say that a project is in use already.
_CONTENT = ("personas", "scenarios", "connectors", "evals", "monitors", "executions", "evaluations")


async def back_up(settings: StorageSettings, base: Path, target: Path) -> int:
    """Write a consistent copy while others go on working; says how many bytes it has."""
    _check_free(target)
    with _partial(target) as partial:
        if settings.type == "sqlite":
            await asyncio.to_thread(_copy_file, sqlite_path(settings, base), partial)
        else:
            await _from_postgres(settings, partial)
        return await asyncio.to_thread(_put_in_place, partial, target)


async def restore(settings: StorageSettings, base: Path, source: Path) -> dict[str, int]:
    """Put a copy into a database that holds nothing yet; says how many rows of what there are."""
    _check_file(source)
    # The copy may be of an older version: a copy of it is brought up to date, not the file itself.
    with _partial(source) as partial:
        await asyncio.to_thread(_copy_file, source, partial)
        await asyncio.to_thread(_upgraded, partial, source)
        async with await open_store(settings, base) as store:
            await store.close()
        if settings.type == "sqlite":
            return await asyncio.to_thread(_into_sqlite, partial, sqlite_path(settings, base))
        return await _into_postgres(settings, partial)


def _check_free(target: Path) -> None:
    if target.exists():
        raise StorageError(f"{target}: there is a file of this name already; choose another or delete it.")


def _check_file(source: Path) -> None:
    if not source.is_file():
        raise StorageError(f"{source}: there is no such file.")


@contextmanager
def _partial(target: Path) -> Generator[Path]:
    path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield path
    except OSError as error:
        raise StorageError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
            name.unlink(missing_ok=True)


def _copy_file(source: Path, target: Path) -> None:
    """SQLite's own copying: consistent, with other processes reading and writing."""
    if not source.exists():
        raise StorageError(f"{source}: there is no database yet, so there is nothing to copy.")
    with (
        explained(source),
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing, pages=10_000)
        writing.execute("PRAGMA journal_mode=DELETE")


def _put_in_place(partial: Path, target: Path) -> int:
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    # A link refuses a name that was taken in the meantime, which a rename would not.
    os.link(partial, target)
    return target.stat().st_size


def _upgraded(path: Path, source: Path) -> None:
    with explained(source), disposing(connect(path)) as engine, engine.begin() as connection:
        (problem,) = connection.execute(text("PRAGMA quick_check(1)")).one()
        status = migrations.schema_status(connection)
        if problem != "ok" or status.state == "empty":
            raise StorageError(f"{source}: this is not a copy made by evalstudio, or it is damaged.")
        migrations.check_not_newer(status, str(source))
        if status.state == "older":
            migrations.upgrade(connection)


async def _from_postgres(settings: StorageSettings, target: Path) -> None:
    def copy(connection: Connection) -> None:
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        with disposing(connect(target)) as engine, engine.begin() as writing:
            migrations.upgrade(writing)
            _copy_tables(connection, writing)

    database = postgres_of(settings)
    try:
        await database.first(copy)
    finally:
        await database.close()
    await asyncio.to_thread(_closed, target)


def _closed(path: Path) -> None:
    """Without a write-ahead log the file is whole by itself."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def _into_sqlite(source: Path, target: Path) -> dict[str, int]:
    with (
        explained(target),
        _reading(source) as reading,
        disposing(connect(target)) as engine,
        engine.begin() as writing,
    ):
        return _fill(reading, writing, str(target))


async def _into_postgres(settings: StorageSettings, source: Path) -> dict[str, int]:
    database = postgres_of(settings)

    def fill(writing: Connection) -> dict[str, int]:
        with _reading(source) as reading:
            counts = _fill(reading, writing, database.place)
        # Rows were written with their own numbers; the next event continues them.
        last = select(func.max(schema.events.c.id)).scalar_subquery()
        sequence = func.pg_get_serial_sequence("events", "id")
        writing.execute(select(func.setval(sequence, func.coalesce(last, 0) + 1, False)))
        return counts

    try:
        return await database.first(fill)
    finally:
        await database.close()


@contextmanager
def _reading(path: Path) -> Generator[Connection]:
    engine: Engine
    with disposing(connect(path, reading=True)) as engine, engine.connect() as connection:
        yield connection


def _fill(reading: Connection, writing: Connection, place: str) -> dict[str, int]:
    for name in _CONTENT:
        if writing.execute(select(schema.metadata.tables[name].c.id).limit(1)).first() is not None:
            raise StorageError(f"{place}: the database holds {name} already; restore into an empty one.")
    return _copy_tables(reading, writing)


def _copy_tables(reading: Connection, writing: Connection) -> dict[str, int]:
    return {one.name: _copy_table(one, reading, writing) for one in schema.metadata.sorted_tables}


def _copy_table(one: Table, reading: Connection, writing: Connection) -> int:
    """Rows as they are stored: a damaged document is copied, not read."""
    raw = table(
        one.name,
        *(column(c.name, Text() if isinstance(c.type, TypeDecorator) else c.type) for c in one.c),
    )
    count = 0
    rows = reading.execution_options(yield_per=_ROWS).execute(select(*raw.c)).mappings()
    for part in rows.partitions():
        values: list[dict[str, Any]] = [dict(row) for row in part]
        writing.execute(insert(raw), values)
        count += len(values)
    return count
