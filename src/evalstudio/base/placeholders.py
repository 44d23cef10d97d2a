"""``{{name}}`` in a text, filled in one pass: values are never looked at for placeholders again.

``\\{{name}}`` stands for the braces themselves, and a second backslash for the backslash. Braces around what
is no name, such as JSON or another template language, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .json_text import json_text

# The run of backslashes is matched whole: looking back keeps a long run from being tried at every place.
_PLACEHOLDER = re.compile(r"(?<!\\)(\\*)\{\{([^{}]*)\}\}")
_NAME = re.compile(r"""\w(?:[\w .\[\]-]|"[^"]*"|'[^']*')*""")


def is_name(name: str) -> bool:
    """Whether braces around this make a placeholder: words and paths, not code."""
    return _NAME.fullmatch(name) is not None


def names_in(text: str) -> list[str]:
    """What stands between the braces, in order; what is escaped is left out."""
    matches = [(slashes, name.strip()) for slashes, name in _PLACEHOLDER.findall(text)]
    return [name for slashes, name in matches if len(slashes) % 2 == 0]


def fill(text: str, value_of: Callable[[str], str | None]) -> str:
    """The text with its placeholders replaced; those without a value stay as they are written."""

    def replacement(match: re.Match[str]) -> str:
        slashes, name = match[1], match[2].strip()
        if len(slashes) % 2:
            return slashes[: len(slashes) // 2] + match[0][len(slashes) :] if is_name(name) else match[0]
        value = value_of(name)
        return match[0] if value is None else slashes[: len(slashes) // 2] + value

    return _PLACEHOLDER.sub(replacement, text) if "{{" in text else text


def fill_outer(text: str, value_of: Callable[[str], str | None]) -> str:
    """``fill`` for a text that is filled once more later: what is left to that, escapes included, stays."""

    def replacement(match: re.Match[str]) -> str:
        slashes = match[1]
        value = None if len(slashes) % 2 else value_of(match[2].strip())
        return match[0] if value is None else _escaped(slashes[: len(slashes) // 2] + value)

    return _PLACEHOLDER.sub(replacement, text)


def _escaped(text: str) -> str:
    """The text as it must be written to come out as it is where placeholders are filled."""

    def replacement(match: re.Match[str]) -> str:
        return f"\\{match[1]}{match[0]}" if is_name(match[2].strip()) else match[0]

    return _PLACEHOLDER.sub(replacement, text)


def only_placeholder(text: str) -> str | None:
    """The name of the placeholder that is the whole text."""
    match = _PLACEHOLDER.fullmatch(text)
    return match[2].strip() if match and not match[1] else None


def written(value: Any) -> str:
    """A value inside a text: itself if it is text, else its JSON."""
    return value if isinstance(value, str) else json_text(value)
