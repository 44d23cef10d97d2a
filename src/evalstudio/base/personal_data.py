"""Personal data in texts: known patterns, each replaced by what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, cast
from unicodedata import category, decimal, normalize

import orjson
import re2

from .json_text import json_text, whole_text
from .lazy_dataclass import dataclass

_DEEPEST = 100
# As JSON writes characters that a pattern would otherwise see: "\u0040" is "@".
_ESCAPE = "\\u"
_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
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
        r"[\p{L}\p{N}][\p{L}\p{N}._%+-]*(?:@|%40)[\p{L}\p{N}][\p{L}\p{N}-]*(?:\.[\p{L}\p{N}-]+)+"
    ),
    "card": _Known(r"\b\d(?:[ -]?\d){12,18}\b", _is_card),
    "iban": _Known(r"(?i:\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b)", _is_iban),
    "phone": _Known(r"\+\d{1,3}[ ().-]{0,2}\d(?:[ ().-]{0,2}\d){5,13}\b|\(?\b\d{3}\)?[ .-]\d{3}[ .-]\d{4}\b"),
    "ip": _Known(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
}
USUAL = ("email", "card", "iban", "phone")


class _Ascii(dict[int, int]):
    """Digits, blanks, dashes and signs of every script as those that patterns know, one for one."""

    def __missing__(self, code: int) -> int:
        char, plain = chr(code), normalize("NFKC", chr(code))
        if (digit := decimal(char, None)) is not None:
            self[code] = ord("0") + digit
        elif category(char) == "Pd":
            self[code] = ord("-")
        else:
            self[code] = ord(plain) if len(plain) == 1 and plain.isascii() else code
        return self[code]


_ASCII = _Ascii()


def _folded(text: str) -> str:
    """A text of the same length in which numbers and addresses are written as patterns know them."""
    return text if text.isascii() else text.translate(_ASCII)


def compile_redaction(pattern: str) -> Any:
    """A pattern on the linear-time engine; ``ValueError`` says what is wrong with it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"the pattern cannot be used here: {error}") from None


def _replaced(text: str, pattern: Any, name: str) -> str:
    """A text with what a pattern finds in it replaced by the pattern's name."""
    known, pieces, end = KNOWN.get(name), list[str](), 0
    check = known.is_one if known is not None else None
    # A project's own pattern is held against the text as it is written.
    for match in pattern.finditer(text if known is None else _folded(text)):
        if check is None or check(match[0]):
            pieces += [text[end : match.start()], f"[{name}]"]
            end = match.end()
    return "".join([*pieces, text[end:]])


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
        return self._any is not None and (_ESCAPE in text or self._finds(text))

    def _finds(self, text: str) -> bool:
        if self._any.search(text) is not None:
            return True
        return not text.isascii() and self._any.search(_folded(text)) is not None

    def text(self, text: str, depth: int = 0) -> str:
        if self._any is None:
            return text
        if _ESCAPE in text and (inner := self._unescaped(text, depth)) is not None:
            return inner
        if not self._finds(text):
            return text
        for name, pattern in self._compiled.items():
            text = _replaced(text, pattern, name)
        return text

    def _unescaped(self, text: str, depth: int) -> str | None:
        """A text that is JSON with escapes, redacted in what the escapes stand for."""
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            plain = whole_text(_ESCAPED.sub(lambda match: chr(int(match[1], 16)), text))
            if plain == text:
                return None
            # What is escaped again and again would go on for as long as the text.
            return "[too deep]" if depth > _DEEPEST else self._redacted_if_found(plain, depth)
        redacted = self.everywhere(value, depth + 1)
        return text if redacted == value else json_text(redacted)

    def _redacted_if_found(self, plain: str, depth: int) -> str | None:
        return self.text(plain, depth + 1) if _ESCAPE in plain or self._finds(plain) else None

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
