"""Moments as exports write them: ISO text, or seconds, milliseconds, micro- or nanoseconds since 1970."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..base.times import in_utc

_EARLIEST, _LATEST = 1e8, 1e10
_NAMES = (
    "timestamp",
    "createdAt",
    "created_at",
    "created",
    "createTime",
    "create_time",
    "startedAt",
    "started_at",
    "start_time",
    "startTime",
    "time",
    "ts",
)


def read_time(value: object) -> datetime | None:
    """A moment in UTC; nothing where the value is none."""
    if isinstance(value, datetime):
        return in_utc(value)
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _from_number(float(value))


def _from_text(text: str) -> datetime | None:
    try:
        return _from_number(float(text))
    except ValueError:
        pass
    try:
        return in_utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def _from_number(number: float) -> datetime | None:
    """Seconds, or the thousandth, millionth or billionth of them: only one of these is in our century."""
    if not math.isfinite(number):
        return None
    for unit in (1, 1e3, 1e6, 1e9):
        if _EARLIEST < number / unit < _LATEST:
            return datetime.fromtimestamp(number / unit, UTC)
    return None


def time_in(fields: Mapping[str, Any], *names: str) -> datetime | None:
    """The first moment that stands under one of these names, or under one that is usual."""
    return next((at for name in names or _NAMES if (at := read_time(fields.get(name))) is not None), None)
