"""Texts and numbers as they are shown. The web UI writes the same ones the same way: ``numbers.ts``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal


def cut(text: str, most: int) -> str:
    """The text, ending in an ellipsis where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def excerpt(text: str, most: int = 80) -> str:
    """The beginning of a text on one line."""
    # Blanks are folded, so a few times as much is looked at.
    line = " ".join(text[: most * 4].split())
    return cut(line, most) if len(text) <= most * 4 else line[: most - 1] + "…"


def printable(text: str, kept: str = "\n\t", instead: str = "\ufffd") -> str:
    """Text without what would steer a terminal or a page: agents and files may hold anything."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else instead for c in text)


def percent(share: float, digits: Literal[0, 1] = 0) -> str:
    """A share in percent. Less than all is never shown as 100%, and more than nothing never as 0%."""
    value, steps = share * 100, 10**digits
    if 100 - 1 / steps < value < 100:
        return f"{math.floor(value * 10) / 10:.1f}%"
    if 0 < value < 1 / steps:
        return f"{math.ceil(value * 10) / 10:.1f}%"
    # Half a step goes up, as in JavaScript: an eighth is 13% in the terminal and on the page.
    return f"{math.floor(value * steps + 0.5) / steps:.{digits}f}%"


def percents(low: float, high: float) -> str:
    """The ends of an interval of shares."""
    return f"{percent(low)}–{percent(high)}"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    if difference is None:
        return "?"
    return f"{difference * 100:+.1f} points" if abs(difference) >= 0.0005 else "0 points"


def measure(value: float | None) -> str:
    """A measurement with four digits; an open end of an interval in words."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def milliseconds(value: float | None) -> str:
    """How long something took; seconds where there are many."""
    if value is None:
        return "-"
    if value < 1:
        return "<1 ms"
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"


def counted(number: int, noun: str) -> str:
    """``1 tool call``, ``1,200 tool calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def were(number: int) -> str:
    return "was" if number == 1 else "were"


def first_few(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, and that there are more."""
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")
