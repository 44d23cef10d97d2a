"""A transaction: what an operation sees of the database, and what it leaves to be written at its end.

Operations are plain functions of a ``Transaction``. SQLite runs many of them in one database transaction.
Appended rows, changed counts and events are gathered and written together at the end: fewer statements, and
locks that everybody needs are held for the shortest time.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from typing import cast as cast_to

from sqlalchemy import (
    BigInteger,
    Connection,
    Table,
    bindparam,
    cast,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ColumnElement

from ..base.json_text import clean_text
from ..project.entities import OVER, UNFINISHED, reasons_of
from . import schema
from .contract import IdempotencyKey
from .errors import KeyReused, StorageError, StorageUnavailable
from .prepared import Prepared, insert_rows
from .schema import COUNTED, idempotency

CHANNEL = "evalstudio"
_EVENTS_LOCK = 0x65766C73
DATABASE_CLOCK = cast(func.extract("epoch", func.clock_timestamp()) * 1000, BigInteger)
_INSERT_ROWS = 5000


class _Counted(NamedTuple):
    """How an execution stands once its runs are counted."""

    status: str
    total: int
    queued: int
    running: int
    cancelled: int
    cancelling: bool
    partial: str | None
    until_decided: Any


_table = schema.executions.c
_added: dict[str, Any] = {name: _table[name] + bindparam(f"plus_{name}") for name in COUNTED}
# Built once: putting a statement together costs more than running it.
_COUNT = Prepared(
    update(schema.executions)
    .where(_table.id == bindparam("execution"))
    .values(_added | {"updated": bindparam("updated")})
    .returning(*(_table[name] for name in _Counted._fields))
)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def shared_now_ms(unit: Transaction) -> int:
    """The time of day for everybody who shares the database: of its server, or of the one machine."""
    if not unit.is_postgres:
        return now_ms()
    return unit.connection.execute(select(DATABASE_CLOCK)).scalar_one()


def steady_ms() -> int:
    """Time that only counts on, the same for every process of this machine since it was started."""
    return time.monotonic_ns() // 1_000_000


class Transaction:
    """One operation's view of the database. ``again`` says that an earlier try may have been committed."""

    def __init__(
        self, connection: Connection, *, again: bool = False, driver: sqlite3.Connection | None = None
    ) -> None:
        self.connection = connection
        self._driver = driver
        self.again = again
        self.rows: dict[Table, list[dict[str, Any]]] = defaultdict(list)
        self.counts: dict[str, dict[str, int]] = {}
        self.events: list[dict[str, Any]] = []
        self.event_queries: list[Any] = []
        self.new_work = False
        self.is_postgres = connection.dialect.name == "postgresql"

    @property
    def driver(self) -> sqlite3.Connection:
        """The driver's own connection, on SQLite."""
        if self._driver is None:
            self._driver = cast_to(sqlite3.Connection, self.connection.connection.dbapi_connection)
        return self._driver

    def insert_into(self, table: Table) -> Any:
        """An insert that can say what to do where the row is there already.

        Its dialect is imported where it is known which one: that takes as long as many a command.
        """
        if self.is_postgres:
            from sqlalchemy.dialects.postgresql import insert as insert_here
        else:
            from sqlalchemy.dialects.sqlite import insert as insert_here
        return insert_here(table)

    def add(self, table: Table, row: dict[str, Any]) -> None:
        """A row to be appended when the operation is over."""
        self.rows[table].append(row)

    def count(self, execution_id: str, **changes: int) -> None:
        """A change of an execution's counts."""
        known = self.counts.setdefault(execution_id, dict.fromkeys(COUNTED, 0))
        for name, change in changes.items():
            known[name] += change

    def add_event(
        self, kind: str, execution_id: str, run_id: str | None = None, body: Mapping[str, Any] | None = None
    ) -> None:
        """An event, made visible together with the change it tells of."""
        ids = {"execution_id": execution_id, "run_id": run_id}
        self.events.append({"kind": kind, **ids, "at": now_ms(), "body": dict(body or {})})

    def add_events_of_runs(self, kind: str, which: ColumnElement[bool]) -> None:
        """An event of each of these runs, however many there are: the database writes them itself."""
        runs = schema.runs.c
        columns = (literal(kind), runs.execution_id, runs.id, literal(now_ms()), literal("{}"))
        self.event_queries.append(select(*columns).where(which).order_by(runs.id))

    @property
    def has_events(self) -> bool:
        return bool(self.events or self.event_queries)

    def has(self, table: Table, row_id: str) -> bool:
        return self.connection.execute(select(table.c.id).where(table.c.id == row_id)).first() is not None

    def clock(self) -> ColumnElement[int] | int:
        """The time leases are measured by: one clock for everybody who shares the database.

        Who shares a SQLite file is on one machine, whose wall clock may be set at any moment.
        """
        return DATABASE_CLOCK if self.is_postgres else steady_ms()

    def take_over(self, other: Transaction) -> None:
        """Gather what another operation of the same transaction left to be written."""
        for table, rows in other.rows.items():
            self.rows[table] += rows
        for execution_id, changes in other.counts.items():
            self.count(execution_id, **changes)
        self.events += other.events
        self.event_queries += other.event_queries
        self.new_work = self.new_work or other.new_work

    def write(self) -> None:
        """Write what was gathered; the last statements before the commit."""
        for table, rows in self.rows.items():
            for start in range(0, len(rows), _INSERT_ROWS):
                insert_rows(self, table, rows[start : start + _INSERT_ROWS])
        # In one order everywhere, so that two transactions never wait for each other.
        for execution_id in sorted(self.counts):
            self._write_counts(execution_id, self.counts[execution_id])
        self._write_events()

    def _write_counts(self, execution_id: str, changes: dict[str, int]) -> None:
        values: dict[str, Any] = {f"plus_{name}": change for name, change in changes.items()}
        values |= {"execution": execution_id, "updated": now_ms()}
        counted = _COUNT.first_row(self, values)
        if counted is None:
            return
        row = _Counted(*counted)
        status = _status(row.total, row.queued, row.running, row.cancelled, row.cancelling)
        repeating = row.until_decided is not None and UNFINISHED in reasons_of(row.partial)
        if repeating and status == "completed" and not (row.cancelled or row.cancelling):
            # All runs are over, and nobody has said yet whether there are to be more.
            status = "running"
        over = status in OVER
        if over and (row.cancelled or (repeating and row.cancelling)):
            mark_partial(self, execution_id, "cancelled")
        if over and repeating:
            unmark_partial(self, execution_id, UNFINISHED)
        if status != row.status:
            self._write_status(execution_id, status)

    def _write_status(self, execution_id: str, status: str) -> None:
        table, moment = schema.executions.c, now_ms()
        over = status in OVER
        started = table.started if status == "queued" else func.coalesce(table.started, moment)
        row = self.connection.execute(
            update(schema.executions)
            .where(table.id == execution_id)
            .values(status=status, completed=moment if over else None, started=started)
            .returning(*(table[name] for name in COUNTED))
        ).one()
        counts = dict(zip(COUNTED, row, strict=True))
        self.add_event(f"execution.{status}", execution_id, body={"counts": counts})

    def _write_events(self) -> None:
        if self.is_postgres and (self.has_events or self.new_work):
            self._lock_events()
        for query in self.event_queries:
            names = ("kind", "execution_id", "run_id", "at", "body")
            self.connection.execute(insert(schema.events).from_select(names, query))
        if self.events:
            insert_rows(self, schema.events, self.events)

    def _lock_events(self) -> None:
        """Number events one transaction at a time, so that no smaller id appears after a larger one."""
        calls: list[ColumnElement[Any]] = [func.pg_notify(CHANNEL, "work")] if self.new_work else []
        if self.has_events:
            lock = func.pg_advisory_xact_lock(literal_column(str(_EVENTS_LOCK)))
            calls += [lock, func.pg_notify(CHANNEL, "events")]
        self.connection.execute(select(*calls))


def mark_partial(unit: Transaction, execution_id: str, reason: str) -> None:
    """Note why an execution is not whole; a reason is noted once."""
    partial = schema.executions.c.partial
    noted = func.coalesce(partial + literal(", "), "") + literal(reason)
    missing = or_(partial.is_(None), partial.not_like(f"%{reason}%"))
    of_execution = schema.executions.c.id == execution_id
    unit.connection.execute(update(schema.executions).where(of_execution, missing).values(partial=noted))


def unmark_partial(unit: Transaction, execution_id: str, reason: str) -> None:
    """Take back one reason why an execution is not whole."""
    of_execution = schema.executions.c.id == execution_id
    query = select(schema.executions.c.partial).where(of_execution).with_for_update()
    left = [one for one in reasons_of(unit.connection.execute(query).scalar()) if one != reason]
    values = {"partial": ", ".join(left) or None}
    unit.connection.execute(update(schema.executions).where(of_execution).values(values))


def _status(total: int, queued: int, running: int, cancelled: int, cancelling: bool) -> str:
    """What an execution's runs make of it."""
    if running or queued:
        return "queued" if queued == total else "running"
    return "cancelled" if cancelled and (cancelling or cancelled == total) else "completed"


def known_target(unit: Transaction, once: IdempotencyKey | None) -> str | None:
    """What the same request made before, if it was made before."""
    if once is None:
        return None
    key = _hashed(once.key)
    if unit.is_postgres:
        # The same request twice at the same moment: the second looks when the first is done.
        number = int.from_bytes(bytes.fromhex(key)[:8], signed=True)
        unit.connection.execute(select(func.pg_advisory_xact_lock(number)))
    row = unit.connection.execute(
        select(idempotency.c.fingerprint, idempotency.c.target).where(idempotency.c.key == key)
    ).one_or_none()
    if row is None:
        return None
    if row.fingerprint != once.fingerprint:
        raise KeyReused("This idempotency key was used for another request; choose a new one.")
    return row.target


def remember(unit: Transaction, once: IdempotencyKey | None, target: str) -> None:
    # Not gathered for the end: the next operation of the same transaction must find it.
    if once is not None:
        unit.connection.execute(
            idempotency.insert().values(
                key=_hashed(once.key), fingerprint=once.fingerprint, target=target, created=now_ms()
            )
        )


def remember_once(unit: Transaction, once: IdempotencyKey | None, target: str) -> str:
    """Remember what a request made outside of the database; says what it stands for, if it came before."""
    if (known := known_target(unit, once)) is not None:
        return known
    remember(unit, once, target)
    return target


def _hashed(key: str) -> str:
    return hashlib.sha256(clean_text(key).encode()).hexdigest()


_ROLLED_BACK = frozenset({"40001", "40P01"})
# No room on the disk, or no memory: undone, and possible again once there is some.
_FULL = frozenset({"53100", "53200"})
_GONE = frozenset({"57P01", "57P02", "57P03", "08000", "08003", "08006", "08001", "08004", "53300"})


def sqlite_failure(error: Exception, path: Path) -> StorageError:
    """What went wrong with a SQLite file, and what to do about it."""
    message = str(driver_error(error))
    low = message.lower()
    passing = True
    if "full" in low:
        advice = "The disk is full. Nothing was damaged: free some space and carry on."
    elif "readonly" in low or "read-only" in low or "unable to open" in low or "permission" in low:
        advice = f"The file cannot be opened for writing. Check the permissions of {path.parent}."
        passing = False
    elif "locked" in low or "busy" in low:
        advice = "Another program has held the database for too long. Close it and try again."
    elif "not a database" in low or "malformed" in low:
        advice = "The file is not a database, or is damaged. Restore it from a backup or choose another path."
        passing = False
    elif "disk i/o" in low:
        advice = "The disk could not be read or written. Check the disk and its free space."
    else:
        advice = "Nothing was changed."
        passing = False
    return (StorageUnavailable if passing else StorageError)(f"{path}: {message}. {advice}")


def postgres_failure(error: BaseException, place: str) -> StorageError:
    lines = str(driver_error(error)).strip().splitlines()
    message = lines[0] if lines else type(error).__name__
    if is_gone(error):
        text = f"The database at {place} cannot be reached: {message}. Check that the server runs."
        return StorageUnavailable(text, may_have_happened=True)
    if is_rolled_back(error):
        return StorageUnavailable(f"The database at {place} gave way to another transaction: {message}")
    if sqlstate(error) in _FULL:
        advice = "Its disk or memory is full. Nothing was damaged: free some and carry on."
        return StorageUnavailable(f"The database at {place} has no room: {message}. {advice}")
    return StorageError(f"The database at {place} refused: {message}")


def driver_error(error: BaseException) -> BaseException:
    """The driver's own error inside SQLAlchemy's."""
    while isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    cause = error.__cause__
    return cause if cause is not None and type(cause).__module__.startswith("asyncpg") else error


def sqlstate(error: BaseException) -> str:
    return str(getattr(driver_error(error), "sqlstate", None) or "")


def is_rolled_back(error: BaseException) -> bool:
    """Whether the server gave way to another transaction: nothing of this one happened."""
    return sqlstate(error) in _ROLLED_BACK


def is_gone(error: BaseException) -> bool:
    """Whether the connection or the server went away."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    cause = driver_error(error)
    if isinstance(cause, OSError | EOFError) or sqlstate(error) in _GONE:
        return True
    return "connection is closed" in str(cause) or "was closed" in str(cause)


def is_busy(error: BaseException) -> bool:
    cause = driver_error(error)
    return isinstance(cause, sqlite3.OperationalError) and ("locked" in str(cause) or "busy" in str(cause))
