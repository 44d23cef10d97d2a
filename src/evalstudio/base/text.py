"""Texts and shares as they are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cut(text: str, most: int) -> str:
    """The text, ending in an ellipsis where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def excerpt(text: str, most: int = 80) -> str:
    """The beginning of a text on one line."""
    # Blanks are folded, so a few times as much is looked at.
    line = " ".join(text[: most * 4].split())
    return cut(line, most) if len(text) <= most * 4 else line[: most - 1] + "…"


def percent(share: float) -> str:
    """A share in percent. Less than all is never shown as 100%, and more than nothing never as 0%."""
    value = share * 100
    if 99 < value < 100:
        return f"{math.floor(value * 10) / 10:.1f}%"
    if 0 < value < 1:
        return f"{math.ceil(value * 10) / 10:.1f}%"
    return f"{value:.0f}%"


def counted(number: int, noun: str) -> str:
    """``1 tool call``, ``1,200 tool calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def were(number: int) -> str:
    return "was" if number == 1 else "were"


def first_few(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, and that there are more."""
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")
