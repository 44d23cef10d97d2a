"""JSON as plain data that knows the line of every part: a mistake is named by file and line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, NoReturn

from .lazy_dataclass import dataclass
from .problems import FieldPath, InvalidInput, Problem

MOST_PARTS = 500_000
DEEPEST = 100
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Located:
    """Plain data from a file, with the line each part of the file stands on."""

    path: str
    data: Any
    lines: Mapping[FieldPath, int] = field(default_factory=dict[FieldPath, int], repr=False)
    root: FieldPath = ()

    def at(self, path: FieldPath = ()) -> str:
        """``file:line`` of a part, or of the nearest part around it."""
        whole = self.root + path
        while whole and whole not in self.lines:
            whole = whole[:-1]
        line = self.lines.get(whole)
        return f"{self.path}:{line}" if line else self.path

    def part(self, path: FieldPath) -> Located:
        """One part of the data, its paths counted from there."""
        data = self.data
        for step in path:
            data = data[step]
        return replace(self, data=data, root=self.root + path)

    def placed(self, problem: Problem) -> Problem:
        """A problem with the line its path stands on."""
        return problem if problem.place else replace(problem, place=self.at(problem.path))


def checked(value: Any, where: str) -> Any:
    """A plain value, if it is one that can be kept as it is."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput.at(where, "a number must be finite")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise InvalidInput.at(where, "this number is too large to be kept exactly", "put it in quotes")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidInput.at(where, "holds half of a surrogate pair, which is not text") from None
    return value


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s,:\[\]{}"]+')


def parse_json(text: str, path: str, *, first_line: int = 1) -> Located:
    """The data of a JSON text. ``first_line`` is where the text begins in its file."""
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        message = "the file is empty" if not text.strip() else error.msg
        place = f"{path}:{error.lineno + first_line - 1}:{error.colno}"
        raise InvalidInput.at(place, f"not valid JSON: {message}") from None
    except RecursionError:
        raise InvalidInput.at(path, "nested too deeply") from None
    except ValueError as error:
        raise InvalidInput.at(f"{path}:{first_line}", f"not valid JSON: {error}") from None
    reader = _JsonReader(text, path, first_line)
    return Located(path, reader.value(reader.next(), ()), reader.lines)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")


class _JsonReader:
    """Builds the data of a text that is known to be JSON and notes the line of every part."""

    def __init__(self, text: str, path: str, first_line: int) -> None:
        self.lines: dict[FieldPath, int] = {}
        self._text, self._path, self._line, self._at = text, path, first_line, 0
        self._tokens = _TOKEN.finditer(text)

    def next(self) -> str:
        token = next(self._tokens)
        self._line += self._text.count("\n", self._at, token.start())
        self._at = token.start()
        return token[0]

    def value(self, token: str, path: FieldPath) -> Any:
        """The value that begins with the token, which was read last."""
        if len(path) > DEEPEST:
            raise InvalidInput.at(self._where, "nested too deeply")
        # A field's line is that of its key.
        self.lines.setdefault(path, self._line)
        if len(self.lines) > MOST_PARTS:
            raise InvalidInput.at(self._path, f"holds more than {MOST_PARTS:,} values")
        if token == "{":
            return self._fields(path)
        if token != "[":
            return checked(json.loads(token), self._where)
        items: list[Any] = []
        while (token := self.next()) != "]":
            items.append(self.value(token, (*path, len(items))))
        return items

    def _fields(self, path: FieldPath) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while (token := self.next()) != "}":
            key: str = checked(json.loads(token), self._where)
            if key in fields:
                raise InvalidInput.at(self._where, f'the key "{key}" is given twice')
            self.lines[*path, key] = self._line
            fields[key] = self.value(self.next(), (*path, key))
        return fields

    @property
    def _where(self) -> str:
        return f"{self._path}:{self._line}"


# What YAML takes for something else than text.
PLAIN: dict[str, re.Pattern[str]] = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z|0x[0-9a-fA-F]+\Z|0o[0-7]+\Z"),
    "float": re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z"),
}
