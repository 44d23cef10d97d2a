"""Moments in UTC, to the millisecond that is kept, and periods as people write them: 90d, 12h, 8w."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PERIOD = re.compile(r"(\d{1,6})\s*([hdw])\Z", re.IGNORECASE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def now() -> datetime:
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a time zone is taken for UTC."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is too far away") from None


def iso(moment: datetime) -> str:
    utc = moment if moment.tzinfo is UTC else in_utc(moment)
    return utc.isoformat(timespec="milliseconds")[:-6] + "Z"


def moment_of(milliseconds: int) -> datetime:
    """The moment so many milliseconds after 1970."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds_of(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def milliseconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """How long it took; nothing where one of the two is not known, or the end comes first."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds() * 1000


def read_period(text: str) -> timedelta:
    match = _PERIOD.match(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a period; write 90d, 12h or 8w')
    return int(match[1]) * _UNITS[match[2].lower()]
