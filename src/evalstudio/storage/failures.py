"""From what a database driver says to what a person can act on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from .errors import StorageError

_ROLLED_BACK = frozenset({"40001", "40P01"})
_GONE = frozenset({"57P01", "57P02", "57P03", "08000", "08003", "08006", "08001", "08004", "53300"})


def sqlite_failure(error: Exception, path: Path) -> StorageError:
    """What went wrong with a SQLite file, and what to do about it."""
    said = str(driver_error(error))
    low = said.lower()
    if "full" in low:
        advice = "The disk is full. Nothing was damaged: free some space and carry on."
    elif "readonly" in low or "read-only" in low or "unable to open" in low or "permission" in low:
        advice = f"The file cannot be opened for writing. Check the permissions of {path.parent}."
    elif "locked" in low or "busy" in low:
        advice = "Another program has held the database for too long. Close it and try again."
    elif "not a database" in low or "malformed" in low:
        advice = "The file is not a database, or is damaged. Restore it from a backup or choose another path."
    elif "disk i/o" in low:
        advice = "The disk could not be read or written. Check the disk and its free space."
    else:
        advice = "Nothing was changed."
    return StorageError(f"{path}: {said}. {advice}")


def postgres_failure(error: BaseException, place: str) -> StorageError:
    said = str(driver_error(error)).strip().splitlines()
    shown = said[0] if said else type(error).__name__
    if is_gone(error):
        return StorageError(
            f"The database at {place} cannot be reached: {shown}. Check that the server runs and try again."
        )
    return StorageError(f"The database at {place} refused: {shown}")


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
    found = driver_error(error)
    if isinstance(found, OSError | TimeoutError | EOFError):
        return True
    return sqlstate(error) in _GONE or "connection is closed" in str(found) or "was closed" in str(found)


def is_busy(error: BaseException) -> bool:
    found = driver_error(error)
    return isinstance(found, sqlite3.OperationalError) and ("locked" in str(found) or "busy" in str(found))
