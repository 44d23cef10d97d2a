"""JSON with the line of every part: read by the standard parser, then walked once more for the lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn, cast

from ..files import ConfigError
from .marked import DEEPEST, MOST_PARTS, Marked, Place, checked

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN = re.compile(r"[-+0-9.eE]+|true|false|null")


def parse_json(text: str, path: str, *, first_line: int = 1) -> Marked:
    """The data of a JSON text. ``first_line`` is where the text begins in its file."""
    try:
        data: Any = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        message = "the file is empty" if not text.strip() else error.msg
        place = f"{path}:{error.lineno + first_line - 1}:{error.colno}"
        raise ConfigError(f"{place}: not valid JSON: {message}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise ConfigError(f"{path}:{first_line}: not valid JSON: {error}") from None
    walk = _Walk(text, path, first_line)
    walk.value(walk.after_space(0), data, ())
    return Marked(path, data, walk.lines)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")


class _Walk:
    """Goes through a text that is known to be JSON and notes the line of every part."""

    def __init__(self, text: str, path: str, first_line: int) -> None:
        self.lines: dict[Place, int] = {}
        self._text, self._path, self._first = text, path, first_line
        self._breaks = [found.start() for found in re.finditer("\n", text)]

    def value(self, at: int, data: Any, place: Place) -> int:
        """Note the value that begins here; answers where it ends."""
        if len(place) > DEEPEST:
            raise ConfigError(f"{self._where(at)}: nested too deeply")
        self.lines[place] = self._line(at)
        if len(self.lines) > MOST_PARTS:
            raise ConfigError(f"{self._path}: holds more than {MOST_PARTS:,} values")
        if isinstance(data, dict):
            fields = cast(dict[str, Any], data)
            seen: set[str] = set()
            return self._items(at, "}", lambda at: self._field(at, fields, place, seen))
        if isinstance(data, list):
            items = cast(list[Any], data)
            count = iter(range(len(items)))
            return self._items(at, "]", lambda at: self._item(at, items, place, next(count)))
        checked(data, self._where(at))
        return self._end(_STRING if isinstance(data, str) else _PLAIN, at)

    def _items(self, at: int, end: str, one: Callable[[int], int]) -> int:
        at = self.after_space(at + 1)
        while self._text[at] != end:
            at = self.after_space(one(at))
            if self._text[at] == ",":
                at = self.after_space(at + 1)
        return at + 1

    def _field(self, at: int, fields: dict[str, Any], place: Place, seen: set[str]) -> int:
        line, end = self._line(at), self._end(_STRING, at)
        key: str = json.loads(self._text[at:end])
        if key in seen:
            raise ConfigError(f'{self._where(at)}: the key "{key}" is given twice')
        seen.add(checked(key, self._where(at)))
        colon = self.after_space(end)
        end = self.value(self.after_space(colon + 1), fields[key], (*place, key))
        self.lines[*place, key] = line
        return end

    def _item(self, at: int, items: list[Any], place: Place, number: int) -> int:
        return self.value(at, items[number], (*place, number))

    def after_space(self, at: int) -> int:
        return self._end(_SPACE, at)

    def _end(self, pattern: re.Pattern[str], at: int) -> int:
        found = pattern.match(self._text, at)
        assert found is not None, "the text was read as JSON before"
        return found.end()

    def _line(self, at: int) -> int:
        return self._first + bisect_right(self._breaks, at - 1)

    def _where(self, at: int) -> str:
        return f"{self._path}:{self._line(at)}"
