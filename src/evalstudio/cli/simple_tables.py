"""Tables that need no wrapping and hold plain text, line for line as rich writes them.

Importing rich takes longer than reading what most tables show; all that is not simple is left to it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TextIO

import typer

# Characters that take one cell in every terminal, and none that means something to rich in titles and heads.
_ONE_CELL = re.compile("[ -~·–—…×]*")
_ONE_CELL_NO_MARKUP = re.compile(r"[ -9;-Z^-~]*")
_NO_STYLES = ("dumb", "unknown")


def simple_table(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str] | None:
    """The lines of a table, or none where it is not a simple one."""
    widths = [max(map(len, texts)) for texts in zip(columns, *cells, strict=True)]
    whole = sum(widths) + 2 * len(widths) - 1
    if len(title) > whole or whole > _width() or not _is_simple(title, columns, cells):
        return None
    head = [*([f"{title:<{whole}}"] if title else []), _line(columns, widths)]
    lines = (_line(row, widths) for row in cells)
    return [*(typer.style(line, bold=True) for line in head), "─" * whole, *lines, ""]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) + " "


def _is_simple(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> bool:
    if not (sys.stdout.encoding or "").lower().startswith("utf") or _is_told_of_the_terminal():
        return False
    if sys.stdout.isatty() and os.environ.get("TERM", "").lower() in _NO_STYLES:
        return False
    return all(_ONE_CELL_NO_MARKUP.fullmatch(text) for text in (title, *columns)) and all(
        _ONE_CELL.fullmatch(cell) for row in cells for cell in row
    )


def may_be_terminal(stream: TextIO) -> bool:
    """Whether rich might take a stream for a terminal; where not, it need not be asked."""
    return stream.isatty() or _is_told_of_the_terminal()


def _is_told_of_the_terminal() -> bool:
    """Whether variables say what the terminal can do; what they mean is known to rich."""
    return any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"))


def _width() -> int:
    if (columns := os.environ.get("COLUMNS", "")).isdigit():
        return int(columns)
    for stream in (0, 1, 2):
        try:
            return os.get_terminal_size(stream).columns or 80
        except OSError:
            continue
    return 80
