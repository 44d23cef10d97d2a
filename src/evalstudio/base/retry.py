"""How long to wait before trying again: what the server asks for, else a wait that doubles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

# Of our own: agents and evaluators that seed the module's must get the numbers they expect.
spread = Random().random
"""A number from 0 to 1, by which waits differ so that not all who wait come back at once."""


def backoff(retry: int, first: float, longest: float) -> float:
    """Seconds before a retry (from 1) that nobody has asked for."""
    return min(longest, first * 2 ** min(retry - 1, 16))


def retry_after(headers: Mapping[str, str] | None, now: datetime | None = None) -> float | None:
    """The seconds a server asks to wait: ``Retry-After`` as a number or an HTTP date, or in milliseconds."""
    values = {name.lower(): value for name, value in (headers or {}).items()}
    milliseconds = _number(values.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = values.get("retry-after", "")
    seconds = _number(text)
    return _until(text, now or datetime.now(UTC)) if seconds is None else seconds


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
