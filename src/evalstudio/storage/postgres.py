"""A project in a PostgreSQL database, through a pool that survives a restart of the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ..base.outages import OutagePolicy
from .errors import StorageError
from .events import ListenTask, WakeSignals
from .schema import for_postgres
from .transaction import CHANNEL, Transaction, postgres_failure

log = logging.getLogger("evalstudio")

T = TypeVar("T")
Operation = Callable[[Transaction], T]

PATIENCE_SECONDS = 30.0
_POOL_SIZE = 10
_POOL_SECONDS = 300.0
_CONNECT_SECONDS = 10.0
_LONGEST_PAUSE = 1.0
_ALIVE_SECONDS = 30.0
_DRIVER_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)


def shown_place(dsn: str) -> str:
    """Where a connection string leads, without user or password."""
    rest = dsn.partition("://")[2].partition("?")[0]
    return rest.rpartition("@")[2] or "localhost"


def plain_dsn(text: str) -> str:
    """The connection string as the driver takes it; the scheme of SQLAlchemy is accepted too."""
    scheme, _, rest = text.partition("://")
    if "://" not in text or scheme.partition("+")[0] not in ("postgres", "postgresql"):
        raise StorageError(
            "storage.connectionString must look like postgresql://user:password@host:5432/database."
        )
    return f"postgresql://{rest}"


def connect(dsn: str) -> AsyncEngine:
    for_postgres()

    async def opened(*_: object, **__: object) -> Any:
        return await asyncpg.connect(dsn, timeout=_CONNECT_SECONDS, command_timeout=120)

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=opened,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_timeout=_POOL_SECONDS,
    )


async def _connected(dsn: str) -> asyncpg.Connection:
    """A connection of its own. Giving up waits for it: the driver does not clean up half a connection."""
    connecting = asyncio.ensure_future(asyncpg.connect(dsn, timeout=_CONNECT_SECONDS))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        (connection,) = await asyncio.gather(connecting, return_exceptions=True)
        if isinstance(connection, asyncpg.Connection):
            await connection.close(timeout=1)
        raise


class PostgresDatabase:
    """Runs operations on the server."""

    on_one_machine = False

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.place = shown_place(dsn)
        self.signals = WakeSignals()
        self.engine = connect(dsn)
        self.listen_task = ListenTask(lambda: asyncio.get_running_loop().create_task(self._listen()))
        self.outages = OutagePolicy("database", PATIENCE_SECONDS)
        self._closed = False

    async def read(self, operation: Operation[T], *, at_once: bool = False) -> T:
        return await self._persist(lambda _: self._read(operation))

    async def write(self, operation: Operation[T]) -> T:
        """Run an operation in a transaction; a lost connection is tried again, telling the operation so."""
        return await self._persist(lambda again: self._write(operation, again))

    async def first(self, work: Callable[[Connection], T]) -> T:
        """Look at the database or change its schema, once: whoever opens it learns at once what is wrong."""
        try:
            async with self.engine.begin() as connection:
                return await connection.run_sync(work)
        except (SQLAlchemyError, ValueError, *_DRIVER_ERRORS) as error:
            raise postgres_failure(error, self.place) from None

    async def close(self) -> None:
        self._closed = True
        await self.listen_task.stop()
        await self.engine.dispose()

    async def _read(self, operation: Operation[T]) -> T:
        async with self.engine.connect() as connection:
            return await connection.run_sync(lambda sync: operation(Transaction(sync)))

    async def _write(self, operation: Operation[T], again: bool) -> T:
        def run(connection: Connection) -> tuple[Transaction, T]:
            unit = Transaction(connection, again=again)
            result = operation(unit)
            unit.write()
            return unit, result

        async with self.engine.begin() as connection:
            unit, result = await connection.run_sync(run)
        self.signals.notify(work=unit.new_work, events=unit.has_events)
        return result

    async def _persist(self, attempt: Callable[[bool], Awaitable[T]]) -> T:
        """Try until it works, for as long as the trouble is one that passes."""
        if self._closed:
            raise StorageError("The store is closed.")

        async def explained(again: bool) -> T:
            try:
                return await attempt(again)
            except (SQLAlchemyError, *_DRIVER_ERRORS) as error:
                raise postgres_failure(error, self.place) from None

        return await self.outages.persist(explained)

    async def _listen(self) -> None:
        """Listen to what other processes commit; after a lost connection anything may have been missed."""
        while True:
            try:
                connection = await _connected(self._dsn)
            except _DRIVER_ERRORS:
                await asyncio.sleep(_LONGEST_PAUSE)
                continue
            try:
                await connection.add_listener(CHANNEL, self._notified)
                self.signals.notify(work=True, events=True)
                while True:
                    await asyncio.sleep(_ALIVE_SECONDS)
                    await connection.execute("SELECT 1")
            except _DRIVER_ERRORS as error:
                log.info("listening to %s again after: %s", self.place, error)
            finally:
                await connection.close(timeout=1)

    def _notified(self, _connection: object, _process: int, _channel: str, message: object) -> None:
        self.signals.notify(work=message == "work", events=message == "events")
