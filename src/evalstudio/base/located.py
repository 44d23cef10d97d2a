"""YAML and JSON as plain data that knows the line of every part: a mistake is named by file and line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, cast

import yaml

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


# PyYAML says little of its own types. The parser in C is used where it is installed.
_yaml: Any = yaml
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
PLAIN: dict[str, re.Pattern[str]] = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z|0x[0-9a-fA-F]+\Z|0o[0-7]+\Z"),
    "float": re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z"),
}


def parse_yaml(text: str, path: str) -> list[Located]:
    """The documents of a YAML text; empty ones are left out."""
    if character := _FORBIDDEN.search(text):
        line = text.count("\n", 0, character.start()) + 1
        code = f"{ord(character[0]):04x}"
        message, hint = f"holds the character U+{code.upper()}", f'write it as "\\u{code}"'
        raise InvalidInput.at(f"{path}:{line}", message, hint)
    try:
        documents = list(_Builder(path, _yaml.parse(text, _PARSER)).documents())
    except InvalidInput:
        raise
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text, path) from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInput.at(path, f"not valid YAML: {error}") from None
    return [located for located in documents if located.data is not None]


def _explained(error: yaml.MarkedYAMLError, text: str, path: str) -> InvalidInput:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return InvalidInput.at(path, f"not valid YAML: {error.problem or error.context}")
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    message = "indent with spaces, not with tabs" if "\t" in indent else error.problem or error.context
    return InvalidInput.at(f"{path}:{mark.line + 1}:{mark.column + 1}", f"not valid YAML: {message}")


@dataclass(slots=True)
class _Builder:
    """Turns events into plain data, a document at a time."""

    path: str
    events: Iterator[Any]
    lines: dict[FieldPath, int] = field(default_factory=dict[FieldPath, int])
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict[str, tuple[Any, int]])
    parts: int = 0

    def documents(self) -> Iterator[Located]:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.lines, self.anchors = {}, {}
                data = self.value(next(self.events), ())
                yield Located(self.path, data, self.lines)

    def value(self, event: Any, path: FieldPath) -> Any:
        self.lines[path] = event.start_mark.line + 1
        if len(path) > DEEPEST:
            raise InvalidInput.at(self._where(event), "nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self.parts
        self._count(1)
        if isinstance(event, yaml.MappingStartEvent):
            data: Any = self._mapping(path)
        elif isinstance(event, yaml.SequenceStartEvent):
            data = self._sequence(path)
        else:
            data = self._scalar(event)
        if event.anchor:
            self.anchors[event.anchor] = data, self.parts - before
        return data

    def _count(self, parts: int) -> None:
        # Aliases of aliases can make a small file stand for an endless one.
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise InvalidInput.at(self.path, f"stands for more than {MOST_PARTS:,} values")

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            raise InvalidInput.at(self._where(event), f"*{event.anchor} has no &{event.anchor} before it")
        data, parts = self.anchors[event.anchor]
        self._count(parts)
        return data

    def _sequence(self, path: FieldPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.value(event, (*path, len(items))))
        return items

    def _mapping(self, path: FieldPath) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, line = self._key(event), event.start_mark.line + 1
            if key in fields:
                raise InvalidInput.at(self._where(event), f'the key "{key}" is given twice')
            value = self.value(next(self.events), (*path, key))
            if key == "<<" and not event.style:
                merged = self._merged(event, value)
            else:
                fields[key] = value
            self.lines[*path, key] = line
        return {**merged, **fields}

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise InvalidInput.at(self._where(event), "a key must be a plain word")
        return checked(event.value, self._where(event))

    def _merged(self, event: Any, value: Any) -> dict[str, Any]:
        """``<<: *base`` brings the keys of another mapping, or of several, the first of them winning."""
        sources = cast(list[Any], value if isinstance(value, list) else [value])
        merged: dict[str, Any] = {}
        for source in reversed(sources):
            if not isinstance(source, dict):
                raise InvalidInput.at(self._where(event), "<< takes a mapping or a list of them")
            merged |= cast(dict[str, Any], source)
        return merged

    def _scalar(self, event: Any) -> Any:
        tag: str | None = event.tag
        if tag is None:
            plain = not event.style and event.implicit[0]
            kinds = (kind for kind, pattern in PLAIN.items() if plain and pattern.match(event.value))
            tag = _TAG + next(kinds, "str")
        try:
            value = _read(tag, event.value)
        except ValueError as error:
            raise InvalidInput.at(self._where(event), str(error)) from None
        return checked(value, self._where(event))

    def _where(self, event: Any) -> str:
        return f"{self.path}:{event.start_mark.line + 1}"


def _read(tag: str, text: str) -> Any:
    match tag.removeprefix(_TAG):
        case "str" | "!":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text, 0)
        case "float":
            return float(text)
        case _:
            raise ValueError(f"the tag {tag} is not known here; leave it out")
