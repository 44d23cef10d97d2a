"""YAML as plain data that knows the line of every part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any, cast

import yaml

from .lazy_dataclass import dataclass
from .located import DEEPEST, MOST_PARTS, PLAIN, Located, checked
from .problems import FieldPath, InvalidInput

# PyYAML says little of its own types. The parser in C is used where it is installed.
_yaml: Any = yaml
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
                if merged:
                    raise InvalidInput.at(self._where(event), "<< is given twice; give it a list")
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
        case "null" | "bool" as kind if not PLAIN[kind].match(text):
            raise ValueError(f"{text!r} is no {kind}; leave out the tag")
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
