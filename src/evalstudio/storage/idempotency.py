"""Idempotency keys: a request made twice is carried out once, and answered the same."""

from __future__ import annotations

import hashlib

from sqlalchemy import func, select

from .contract import Once
from .errors import KeyReused
from .json_text import clean_text
from .schema import idempotency
from .transaction import Unit, now_ms


def known_target(unit: Unit, once: Once | None) -> str | None:
    """What the same request made before, if it was made before."""
    if once is None:
        return None
    _take_turns(unit, once.key)
    row = unit.connection.execute(
        select(idempotency.c.fingerprint, idempotency.c.target).where(idempotency.c.key == _hashed(once.key))
    ).one_or_none()
    if row is None:
        return None
    if row.fingerprint != once.fingerprint:
        raise KeyReused("This idempotency key was used for another request; choose a new one.")
    return row.target


def remember(unit: Unit, once: Once | None, target: str) -> None:
    # Not gathered for the end: the next operation of the same transaction must find it.
    if once is not None:
        unit.connection.execute(
            idempotency.insert().values(
                key=_hashed(once.key), fingerprint=once.fingerprint, target=target, created=now_ms()
            )
        )


def _take_turns(unit: Unit, key: str) -> None:
    """The same request twice at the same moment: the second looks when the first is done."""
    if unit.is_postgres:
        number = int.from_bytes(bytes.fromhex(_hashed(key))[:8], signed=True)
        unit.connection.execute(select(func.pg_advisory_xact_lock(number)))


def _hashed(key: str) -> str:
    return hashlib.sha256(clean_text(key).encode()).hexdigest()
