"""YAML with the line of every part, built from the parser's events.

Plain words mean what they look like: ``no``, ``12:30``, ``007`` and ``2024-01-01`` are text. Only ``true``,
``false``, ``null`` and numbers as JSON writes them are anything else. No constructor of YAML's ever runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from ..files import ConfigError
from .marked import DEEPEST, MOST_PARTS, Marked, Place, checked

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


def parse_yaml(text: str, path: str) -> list[Marked]:
    """The documents of a YAML text; empty ones are left out."""
    if found := _FORBIDDEN.search(text):
        line = text.count("\n", 0, found.start()) + 1
        code = f"{ord(found[0]):04x}"
        raise ConfigError(f'{path}:{line}: holds the character U+{code.upper()}; write it as "\\u{code}"')
    try:
        documents = list(_Builder(path, _yaml.parse(text, _PARSER)).documents())
    except ConfigError:
        raise
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_explained(error, text, path)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    return [marked for marked in documents if marked.data is not None]


def _explained(error: yaml.MarkedYAMLError, text: str, path: str) -> str:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"{path}: not valid YAML: {error.problem or error.context}"
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    message = "indent with spaces, not with tabs" if "\t" in indent else error.problem or error.context
    return f"{path}:{mark.line + 1}:{mark.column + 1}: not valid YAML: {message}"


@dataclass(slots=True)
class _Builder:
    """Turns events into plain data, a document at a time."""

    path: str
    events: Iterator[Any]
    lines: dict[Place, int] = field(default_factory=dict[Place, int])
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict[str, tuple[Any, int]])
    parts: int = 0

    def documents(self) -> Iterator[Marked]:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.lines, self.anchors = {}, {}
                data = self.value(next(self.events), ())
                yield Marked(self.path, data, self.lines)

    def value(self, event: Any, place: Place) -> Any:
        self.lines[place] = event.start_mark.line + 1
        if len(place) > DEEPEST:
            raise ConfigError(f"{self._where(event)}: nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self.parts
        self._count(1)
        if isinstance(event, yaml.MappingStartEvent):
            data: Any = self._mapping(place)
        elif isinstance(event, yaml.SequenceStartEvent):
            data = self._sequence(place)
        else:
            data = self._scalar(event)
        if event.anchor:
            self.anchors[event.anchor] = data, self.parts - before
        return data

    def _count(self, parts: int) -> None:
        # Aliases of aliases can make a small file stand for an endless one.
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise ConfigError(f"{self.path}: stands for more than {MOST_PARTS:,} values")

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            raise ConfigError(f"{self._where(event)}: *{event.anchor} has no &{event.anchor} before it")
        data, parts = self.anchors[event.anchor]
        self._count(parts)
        return data

    def _sequence(self, place: Place) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            found.append(self.value(event, (*place, len(found))))
        return found

    def _mapping(self, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, line = self._key(event), event.start_mark.line + 1
            if key in found:
                raise ConfigError(f'{self.path}:{line}: the key "{key}" is given twice')
            value = self.value(next(self.events), (*place, key))
            if key == "<<" and not event.style:
                merged = self._merged(event, value)
            else:
                found[key] = value
            self.lines[*place, key] = line
        return {**merged, **found}

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise ConfigError(f"{self._where(event)}: a key must be a plain word")
        return checked(event.value, self._where(event))

    def _merged(self, event: Any, value: Any) -> dict[str, Any]:
        """``<<: *base`` brings the keys of another mapping, or of several, the first of them winning."""
        sources = cast(list[Any], value if isinstance(value, list) else [value])
        found: dict[str, Any] = {}
        for source in reversed(sources):
            if not isinstance(source, dict):
                raise ConfigError(f"{self._where(event)}: << takes a mapping or a list of them")
            found |= cast(dict[str, Any], source)
        return found

    def _scalar(self, event: Any) -> Any:
        tag: str | None = event.tag
        if tag is None:
            plain = not event.style and event.implicit[0]
            tag = _TAG + _plain_kind(event.value) if plain else _TAG + "str"
        try:
            return checked(_read(tag, event.value), self._where(event))
        except ConfigError:
            raise
        except ValueError as error:
            raise ConfigError(f"{self._where(event)}: {error}") from None

    def _where(self, event: Any) -> str:
        return f"{self.path}:{event.start_mark.line + 1}"


def _plain_kind(text: str) -> str:
    return next((kind for kind, pattern in PLAIN.items() if pattern.match(text)), "str")


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
