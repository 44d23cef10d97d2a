"""What can go wrong with storage, each written for the person who reads it."""

from __future__ import annotations

from ..base.outages import Unavailable


class StorageError(RuntimeError):
    """Something could not be kept or read; the message says what, where and what to do."""


class StorageUnavailable(StorageError, Unavailable):
    """The database cannot be reached or written to at the moment."""

    def __init__(self, message: str, *, may_have_happened: bool = False) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class DatabaseReplaced(StorageError):
    """The database file that was opened is no longer the one at its path."""


class DamagedRow(StorageError):
    """A stored document cannot be read back."""


class SchemaMismatch(StorageError):
    """The database was made by another version."""


class NotFound(StorageError):
    """There is no such thing, or no longer."""

    def __init__(self, kind: str, entity_id: str) -> None:
        super().__init__(f'There is no {kind} "{entity_id}".')


class NameTaken(StorageError):
    """Names are unique per kind, whatever their case."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f'There is already a {kind} named "{name}"; names are unique, whatever their case.')


class VersionConflict(StorageError):
    """Somebody else changed it first."""

    def __init__(self, kind: str, name: str, expected: int, actual: int) -> None:
        super().__init__(
            f'The {kind} "{name}" was changed in the meantime (version {actual}, not {expected}). '
            "Read it again and repeat the change."
        )


class InUse(StorageError):
    """It cannot go while something else needs it."""


class UnknownReference(StorageError):
    """A definition names something that does not exist."""


class LeaseLost(StorageError):
    """The run is no longer this worker's to write to: it was taken away, ended or cancelled."""

    def __init__(self, run_id: str, reason: str) -> None:
        super().__init__(f"Run {run_id} is no longer held by this worker: {reason}.")


class InvalidCursor(ValueError):
    """A cursor that no list handed out."""


class KeyReused(StorageError):
    """An idempotency key that stood for another request."""
