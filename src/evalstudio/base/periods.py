"""Periods as people write them: 90d, 12h, 8w."""

from __future__ import annotations

import re
from datetime import timedelta

_PERIOD = re.compile(r"(\d{1,6})\s*([hdw])\Z", re.IGNORECASE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def read_period(text: str) -> timedelta:
    match = _PERIOD.match(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a period; write 90d, 12h or 8w')
    return int(match[1]) * _UNITS[match[2].lower()]
