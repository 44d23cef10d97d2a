"""Texts short enough to be shown."""

from __future__ import annotations


def cut(text: str, most: int) -> str:
    """The text, ending in an ellipsis where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def excerpt(text: str, most: int = 80) -> str:
    """The beginning of a text on one line."""
    # Blanks are folded, so a few times as much is looked at.
    line = " ".join(text[: most * 4].split())
    return cut(line, most) if len(text) <= most * 4 else line[: most - 1] + "…"
