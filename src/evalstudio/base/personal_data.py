"""Personal data in texts: known patterns, each replaced by what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
import re2

from .json_text import json_text

_DEEPEST = 100
# As JSON writes characters that a pattern would otherwise see: "\u0040" is "@".
_ESCAPE = "\\u00"
_SHORTEST_NUMBER = 10


def _is_card(text: str) -> bool:
    digits = [int(char) for char in text if char.isdecimal()]
    doubled = [digit if place % 2 == 0 else digit * 2 for place, digit in enumerate(reversed(digits))]
    return sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    plain = text.replace(" ", "")
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


@dataclass(frozen=True, slots=True)
class _Known:
    pattern: str
    is_one: Callable[[str], bool] | None = None


KNOWN: Mapping[str, _Known] = {
    "email": _Known(
        r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){1,8}"
    ),
    "card": _Known(r"\b\d(?:[ -]?\d){12,18}\b", _is_card),
    "iban": _Known(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", _is_iban),
    "phone": _Known(r"\+\d{1,3}[ ().-]{0,2}\d(?:[ ().-]{0,2}\d){5,13}\b|\(?\b\d{3}\)?[ .-]\d{3}[ .-]\d{4}\b"),
    "ip": _Known(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
}
USUAL = ("email", "card", "iban", "phone")


def compile_redaction(pattern: str) -> Any:
    """A pattern on the linear-time engine; ``ValueError`` says what is wrong with it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"the pattern cannot be used here: {error}") from None


@dataclass(slots=True)
class PersonalData:
    """Replaces what the patterns find in texts, names and numbers of plain data."""

    patterns: Mapping[str, str]
    _compiled: dict[str, Any] = field(init=False)
    _any: Any = field(init=False)

    def __post_init__(self) -> None:
        self._compiled = {name: compile_redaction(pattern) for name, pattern in self.patterns.items()}
        joined = "|".join(f"(?:{pattern})" for pattern in self.patterns.values())
        self._any = compile_redaction(joined) if self.patterns else None

    @classmethod
    def of(cls, names: Iterable[str], more: Mapping[str, str] | None = None) -> PersonalData:
        return cls({name: KNOWN[name].pattern for name in names} | dict(more or {}))

    def may_be_in(self, text: str) -> bool:
        """Whether a JSON text is worth a closer look; most are not, and looking takes time."""
        return self._any is not None and (_ESCAPE in text or self._any.search(text) is not None)

    def text(self, text: str, depth: int = 0) -> str:
        if self._any is None:
            return text
        if _ESCAPE in text and (inner := self._unescaped(text, depth)) is not None:
            return inner
        if self._any.search(text) is None:
            return text
        for name, pattern in self._compiled.items():
            text = pattern.sub(self._replacement(name), text)
        return text

    def _replacement(self, name: str) -> Callable[[re.Match[str]], str]:
        known = KNOWN.get(name)
        check = known.is_one if known is not None else None
        return lambda match: match[0] if check is not None and not check(match[0]) else f"[{name}]"

    def _unescaped(self, text: str, depth: int) -> str | None:
        """A text that is JSON with escapes, redacted in what the escapes stand for."""
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
        redacted = self.everywhere(value, depth + 1)
        return text if redacted == value else json_text(redacted)

    def everywhere(self, value: Any, depth: int = 0) -> Any:
        """A copy of plain data without personal data."""
        if depth > _DEEPEST:
            return "[too deep]"
        if isinstance(value, str):
            return self.text(value, depth)
        if isinstance(value, dict):
            fields = cast(dict[str, Any], value)
            return {self.text(name): self.everywhere(item, depth + 1) for name, item in fields.items()}
        if isinstance(value, list):
            return [self.everywhere(item, depth + 1) for item in cast(list[Any], value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            written = repr(value)
            redacted = self.text(written) if len(written) >= _SHORTEST_NUMBER else written
            return value if redacted == written else redacted
        return value
