"""``{{name}}`` in a text, filled in one pass: values are never looked at for placeholders again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .json_text import json_text

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")


def names_in(text: str) -> list[str]:
    """The names of the placeholders, in order."""
    return [name.strip() for name in _PLACEHOLDER.findall(text)]


def fill(text: str, value_of: Callable[[str], str | None]) -> str:
    """The text with its placeholders replaced; those without a value stay as they are written."""

    def replacement(match: re.Match[str]) -> str:
        value = value_of(match[1].strip())
        return match[0] if value is None else value

    return _PLACEHOLDER.sub(replacement, text)


def only_placeholder(text: str) -> str | None:
    """The name of the placeholder that is the whole text."""
    match = _PLACEHOLDER.fullmatch(text)
    return match[1].strip() if match else None


def written(value: Any) -> str:
    """A value inside a text: itself if it is text, else its JSON."""
    return value if isinstance(value, str) else json_text(value)
