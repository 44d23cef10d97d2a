"""A project in one SQLite file: one thread writes, others read.

The writer commits whatever is waiting in one transaction, so that a thousand small operations cost a few
commits, and an operation is over only when it is on the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from ..base.concurrency import settle
from ..base.lazy_dataclass import dataclass
from ..base.outages import OutagePolicy
from .errors import DatabaseReplaced, StorageError
from .events import ListenTask, WakeSignals
from .queue import has_work
from .readers import ReaderThreads
from .transaction import Transaction, is_busy, sqlite_failure

T = TypeVar("T")
Operation = Callable[[Transaction], T]

OLDEST = (3, 35)
PATIENCE_SECONDS = 60.0
_BUSY_SECONDS = 5.0
_POLL_SECONDS = 0.2
_LARGEST_BATCH = 500
_READERS = 4
# Of connections whose statements need no transaction around them.
_AT_ONCE = "evalstudio_at_once"
_LOOK_AT_FILE_SECONDS = 1.0


# What the database says of one operation alone; other errors are the whole transaction's.
_REFUSED = (IntegrityError, sqlite3.IntegrityError)


@dataclass(slots=True)
class _Job:
    operation: Operation[Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


def connect(path: Path, *, reading: bool = False, full_sync: bool = False) -> Engine:
    """An engine over the file; its transactions are ours to begin."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StorageError(
            f"SQLite {sqlite3.sqlite_version} is too old; {'.'.join(map(str, OLDEST))} or newer is needed."
        )
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False},
        pool_size=_READERS if reading else 1,
        max_overflow=0,
    )

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: object) -> None:  # pyright: ignore[reportUnusedFunction]
        set_up(cast(sqlite3.Connection, connection), reading=reading, full_sync=full_sync)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        driver = _driver(connection)
        if not reading:
            # The writer begins by itself, before it knows who will need this connection.
            if not driver.in_transaction:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
        elif not connection.get_execution_options().get(_AT_ONCE):
            # Waits for nobody, so that no error has to be translated; that would take longer than the query.
            driver.execute("BEGIN")

    return engine


def _driver(connection: Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection.connection.dbapi_connection)


def set_up(connection: sqlite3.Connection, *, reading: bool = False, full_sync: bool = False) -> None:
    """Settings every connection needs.

    With ``synchronous=NORMAL`` a commit survives the end of any process, ``kill -9`` included. After a power
    cut or a crash of the machine the file is whole, but the last commits before it may be gone; ``FULL``
    waits for the disk at every commit and keeps them too.
    """
    connection.isolation_level = None
    if not reading:
        # Of a new file, before anything is in it: what is deleted can be given back to the disk.
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        retry_while_busy(lambda: connection.execute("PRAGMA journal_mode=WAL"))
    connection.execute(f"PRAGMA synchronous={'FULL' if full_sync else 'NORMAL'}")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA query_only={'ON' if reading else 'OFF'}")


def retry_while_busy(call: Callable[[], T]) -> T:
    """Call again while other processes are in the way, which SQLite itself does not always wait for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except (sqlite3.OperationalError, DBAPIError) as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies at a path, if any."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _data_version(connection: sqlite3.Connection) -> int:
    try:
        return connection.execute("PRAGMA data_version").fetchone()[0]
    except sqlite3.OperationalError:
        return -1


class _Writer:
    """The connection that writes, kept from one transaction to the next: to open one takes longer than most
    transactions."""

    def __init__(self, path: Path, *, full_sync: bool) -> None:
        self._engine = connect(path, full_sync=full_sync)
        self._open: Connection | None = None

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Everything or nothing."""
        try:
            connection = self._open = self._open or retry_while_busy(self._engine.connect)
            driver = _driver(connection)
            retry_while_busy(lambda: driver.execute("BEGIN IMMEDIATE"))
            yield Transaction(connection, driver=driver)
            # Statements of the library have begun something there too.
            connection.commit() if connection.in_transaction() else driver.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        """Take back what was begun; a connection that cannot do even that is replaced by another."""
        if (connection := self._open) is None:
            return
        try:
            connection.rollback()
            _driver(connection).rollback()
        except (SQLAlchemyError, sqlite3.Error):
            self._discard()

    def _discard(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            with suppress(SQLAlchemyError, sqlite3.Error):
                connection.invalidate()
                connection.close()

    def close(self) -> None:
        self._discard()
        self._engine.dispose()


class SqliteDatabase:
    """Runs operations on the file."""

    on_one_machine = True

    def __init__(self, path: Path, *, full_sync: bool = False) -> None:
        self.path = path
        self._full_sync = full_sync
        self.signals = WakeSignals()
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._reading = connect(path, reading=True)
        self._reading_at_once = self._reading.execution_options(**{_AT_ONCE: True})
        self._readers = ReaderThreads(_READERS)
        self.outages = OutagePolicy("database")
        self._file = _identity(path)
        self._looked_at_file = time.monotonic()
        self._closed = False
        self.listen_task = ListenTask(lambda: self._loop.create_task(self._listen()))
        self._writer = Thread(target=self._write_all, name="evalstudio-writer", daemon=True)
        self._writer.start()

    async def read(self, operation: Operation[T], *, at_once: bool = False) -> T:
        self._check_open()
        engine = self._reading_at_once if at_once else self._reading
        return await self.outages.persist(lambda _: self._readers.run(self._read, operation, engine))

    def _read(self, operation: Operation[T], engine: Engine) -> T:
        self._check_file()
        try:
            with engine.connect() as connection:
                if engine is self._reading:
                    # Statements that go straight to the driver begin no transaction by themselves.
                    connection.begin()
                return operation(Transaction(connection))
        except (DBAPIError, sqlite3.Error) as error:
            raise sqlite_failure(error, self.path) from None

    async def write(self, operation: Operation[T]) -> T:
        """Run an operation and come back when it is committed."""
        self._check_open()

        def submit(_: bool) -> asyncio.Future[T]:
            job = _Job(operation, self._loop.create_future())
            self._jobs.put(job)
            return job.future

        # What failed was rolled back, so it may be tried again as it is.
        return await self.outages.persist(submit)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self.listen_task.stop()
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        await self._readers.close()
        self._reading.dispose()

    async def _listen(self) -> None:
        """Notice what other processes commit: one number to read, five times a second."""
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            known = _data_version(connection)
            while True:
                await asyncio.sleep(_POLL_SECONDS)
                if (version := _data_version(connection)) != known:
                    known = version
                    self.signals.notify(work=await self._has_work(), events=True)
        finally:
            connection.close()

    async def _has_work(self) -> bool:
        try:
            return await self.read(has_work)
        except StorageError:
            return True

    def _check_file(self) -> None:
        """Refuse to go on with a file that is no longer at its path: what is written there nobody will find.

        The first look at a new file may come before SQLite has made it.
        """
        moment = time.monotonic()
        if moment - self._looked_at_file < _LOOK_AT_FILE_SECONDS:
            return
        self._looked_at_file = moment
        identity = _identity(self.path)
        if self._file is None:
            self._file = identity
        elif identity != self._file:
            what = "was deleted" if identity is None else "was replaced by another file"
            self._looked_at_file = 0.0
            raise DatabaseReplaced(
                f"{self.path}: the database {what} while it was in use. Nothing more is stored: put the file "
                "back, or start again with the new one."
            )

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.path}: the store is closed.")

    def _write_all(self) -> None:
        """The writer thread: take what is waiting, commit it, resolve the futures."""
        writer = _Writer(self.path, full_sync=self._full_sync)
        try:
            going = True
            while going:
                jobs, going = self._waiting()
                if jobs:
                    self._write_batch(writer, jobs)
        finally:
            writer.close()

    def _waiting(self) -> tuple[list[_Job], bool]:
        jobs = [first] if (first := self._jobs.get()) is not None else []
        while jobs and len(jobs) < _LARGEST_BATCH and not self._jobs.empty():
            if (job := self._jobs.get()) is None:
                return jobs, False
            jobs.append(job)
        return jobs, bool(jobs)

    def _write_batch(self, writer: _Writer, jobs: list[_Job]) -> None:
        # Whoever was cancelled while waiting no longer wants it done.
        pending = [job for job in jobs if not job.future.cancelled()]
        changes = self._commit(writer, pending) if pending else (False, False)
        work, events = changes if changes is not None else self._one_by_one(writer, pending)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve, jobs, work, events)

    def _one_by_one(self, writer: _Writer, jobs: list[_Job]) -> tuple[bool, bool]:
        """After a failed commit: each alone, so that only those fail that cannot be done."""
        work = events = False
        for job in jobs:
            job.error = None
            new_work, new_events = self._commit(writer, [job]) or (False, False)
            work, events = work or new_work, events or new_events
        return work, events

    def _commit(self, writer: _Writer, jobs: list[_Job]) -> tuple[bool, bool] | None:
        """Run the jobs in one transaction; none when it failed as a whole."""
        try:
            self._check_file()
            with writer.transaction() as unit:
                for job in jobs:
                    self._run(unit, job)
                unit.write()
            return unit.new_work, unit.has_events
        except Exception as error:
            if len(jobs) > 1 and not is_busy(error):
                return None
            for job in jobs:
                job.error = self._readable(error)
            return False, False

    def _run(self, whole: Transaction, job: _Job) -> None:
        """One job within the transaction; what it refuses undoes that job alone."""
        connection = whole.driver
        unit = Transaction(whole.connection, driver=connection)
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.operation(unit)
        except Exception as error:
            if isinstance(error, DBAPIError | sqlite3.Error) and not isinstance(error, _REFUSED):
                raise
            job.error = self._readable(error)
        if job.error is not None:
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        if job.error is None:
            whole.take_over(unit)

    def _readable(self, error: Exception) -> Exception:
        if isinstance(error, DBAPIError | sqlite3.Error):
            return sqlite_failure(error, self.path)
        return error

    def _resolve(self, jobs: list[_Job], work: bool, events: bool) -> None:
        for job in jobs:
            settle(job.future, job.result, job.error)
        self.signals.notify(work=work, events=events)
