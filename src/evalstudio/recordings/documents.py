"""The JSON documents of a file, one after the other, in memory that does not grow with the file.

JSON lines, one document over many lines, several after each other, and long lists of them: a list whose
items are conversations is never held as a whole. ``reading`` makes conversations of the documents.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from io import BufferedReader
from itertools import chain
from typing import Any, cast

import orjson

from ..base.json_text import UnclearJson, fields_once, json_once, there_twice, why_not_json
from ..base.lazy_dataclass import dataclass
from ..base.paths import fields_of, items_of
from ..base.problems import path_text
from ..messages import has_speaker
from .json_stream import CHUNK_BYTES, DEEPEST, LONGEST, TOO_LARGE, BrokenJson, JsonStream, TooLarge

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
# What no document ends with: the next line goes on with it.
_UNFINISHED = (b"{", b"[", b",", b":")
_NO_NUMBER = re.compile(rb"\bNaN\b|\bInfinity\b")
# What others measured may hold NaN: it is not judged here.
_SCORES = frozenset({"scores", "score", "metrics", "reductions"})
# Lists whose items are read one by one, with the field that must stand before them, if any.
_LISTS: Mapping[tuple[str, ...], str | None] = {
    ("samples",): "eval",
    ("results", "results"): None,
    ("resourceSpans", "scopeSpans", "spans"): None,
    ("resourceLogs", "scopeLogs", "logRecords"): None,
    ("runs",): None,
}
# What is on the way to them, and where that is a list itself.
_ON_THE_WAY = frozenset(path[:size] for path in _LISTS for size in range(1, len(path)))
_LISTS_OF_LISTS = frozenset(path for path in _ON_THE_WAY if path[0].startswith("resource"))
_ADVICE = "; a larger file is read where every line is a document of its own (JSON lines)"


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON value and the line of the file on which it begins."""

    line: int
    value: Any


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What could not be read: the file it is in, the line, and why."""

    origin: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = self.origin if self.line is None else f"{self.origin}:{self.line}"
        return f"{place}: {self.reason}"


def read_documents(file: BufferedReader, origin: str) -> Iterator[Document | Unreadable]:
    """What a file holds, in its order."""
    if file.peek(3).startswith(_BOM):
        file.read(3)
    first = file.readline(LONGEST + 1)
    second = b""
    blank = 0
    while first and not first.strip(_BLANK):
        blank += 1
        first = file.readline(LONGEST + 1)
    if len(first) <= LONGEST:
        second = file.readline(LONGEST + 1)
    if _is_line(first, second):
        yield from _lines(file, chain((first, second), _rest(file)), origin, blank)
    elif first.lstrip(_BLANK).startswith((b"{", b"[")):
        yield from _streamed(JsonStream(file, first + second, line=blank + 1), origin)
    elif first:
        yield Unreadable(origin, blank + 1, f"is not JSON: {_beginning(first)}")


def _is_line(first: bytes, second: bytes) -> bool:
    """Whether every line is a document: the first one is whole, or broken and the next one begins anew."""
    goes_on = first.lstrip(_BLANK).startswith(b"[") or first.rstrip(_BLANK).endswith(_UNFINISHED)
    if second.startswith(b"{") and not goes_on:
        return True
    if first.lstrip(_BLANK).startswith(b"[") and not second.strip(_BLANK):
        return False
    try:
        value = decode(first)
    except ValueError:
        return False
    return bool(second.strip(_BLANK)) or not isinstance(value, list)


def _beginning(line: bytes) -> str:
    return f'it begins with "{line[:40].decode(errors="replace").strip()}"'


def _rest(file: BufferedReader) -> Iterator[bytes]:
    while line := file.readline(LONGEST + 1):
        yield line


def _lines(
    file: BufferedReader, lines: Iterator[bytes], origin: str, before: int
) -> Iterator[Document | Unreadable]:
    for number, line in enumerate(lines, before + 1):
        if len(line) > LONGEST and not line.endswith(b"\n"):
            rest = _RestOfLine(file)
            yield from _streamed(JsonStream(rest, line, line=number), origin)
            rest.pass_over()
        elif line.strip(_BLANK):
            yield _document(line.strip(_BLANK), number, origin)


class _RestOfLine:
    """A file up to the end of the line that it stands in."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._is_over = False

    def read(self, size: int) -> bytes:
        data = b"" if self._is_over else self._file.readline(size)
        self._is_over = not data or data.endswith(b"\n")
        return data

    def pass_over(self) -> None:
        while self.read(CHUNK_BYTES):
            pass


def _document(text: bytes, line: int, origin: str) -> Document | Unreadable:
    try:
        return Document(line, decode(text))
    except ValueError as error:
        return Unreadable(origin, line, str(error))


def decode(text: bytes) -> Any:
    """The value of a text; ``ValueError`` says what is wrong with it."""
    try:
        value = json_once(text)
    except orjson.JSONDecodeError as error:
        value = _with_constants(text, error)
    except UnclearJson as error:
        raise ValueError(f"is {error}") from None
    if text.count(b"[") + text.count(b"{") > DEEPEST and _is_deep(value):
        raise ValueError(f"is nested deeper than {DEEPEST} levels")
    return value


def _with_constants(text: bytes, error: orjson.JSONDecodeError) -> Any:
    """A value with NaN in it, which Python writes and JSON does not know: nothing, where it is a score."""
    if not _NO_NUMBER.search(text):
        raise ValueError(why_not_json(text, error)) from None
    try:
        return _without_nan(json.loads(text, object_pairs_hook=fields_once), ())
    except UnclearJson as unclear:
        raise ValueError(f"is {unclear}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError(why_not_json(text, error)) from None


def _without_nan(value: Any, path: tuple[str | int, ...]) -> Any:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {name: _without_nan(item, (*path, name)) for name, item in fields.items()}
    if isinstance(value, list):
        items = cast(list[Any], value)
        return [_without_nan(item, (*path, place)) for place, item in enumerate(items)]
    if isinstance(value, float) and not math.isfinite(value):
        if _SCORES.isdisjoint(path):
            raise ValueError(f"is not valid JSON: {path_text(path)} is {value}, which is no number in JSON")
        return None
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [part for item in level for part in _parts(item)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _parts(value: Any) -> list[Any]:
    return list(fields_of(value).values()) or items_of(value) or []


def _streamed(stream: JsonStream, origin: str) -> Iterator[Document | Unreadable]:
    """One document over many lines, several of them, or a list of them."""
    try:
        while token := stream.peek():
            if token == b"[":
                yield from _items(stream, origin)
            elif token == b"{":
                yield from _Envelope(stream, origin).documents()
            else:
                yield _whole(stream, origin)
    except BrokenJson as error:
        yield Unreadable(origin, error.line, str(error))


def _items(stream: JsonStream, origin: str) -> Iterator[Document | Unreadable]:
    """The items of a list; where they are messages, the list is one conversation."""
    line, begin, messages = stream.line, stream.consumed, list[Any]()
    is_conversation: bool | None = None
    for _ in stream.items():
        item = _whole(stream, origin)
        if is_conversation is None:
            is_conversation = isinstance(item, Document) and is_message(item.value)
        if not is_conversation:
            yield item
        elif isinstance(item, Unreadable) or stream.consumed - begin > LONGEST:
            yield item if isinstance(item, Unreadable) else Unreadable(origin, line, TOO_LARGE)
            return
        else:
            messages.append(item.value)
    if is_conversation:
        yield Document(line, messages)


def is_message(value: Any) -> bool:
    """Whether an item of a list is a message, and not a conversation."""
    return isinstance(value, dict) and has_speaker(cast(dict[str, Any], value)) and "messages" not in value


def _whole(stream: JsonStream, origin: str) -> Document | Unreadable:
    """The next value, if it is not too large to be held."""
    stream.peek()
    line = stream.line
    try:
        return _document(stream.value(), line, origin)
    except TooLarge as error:
        return Unreadable(origin, line, str(error))


class _Envelope:
    """An object over many lines. Where it wraps a list of conversations, each item is a document of its
    own: the object with this one item in the list and what stood before it."""

    def __init__(self, stream: JsonStream, origin: str) -> None:
        self.stream = stream
        self.origin = origin
        self.line = stream.line
        self.size = 0
        self.is_split = False
        self.problem = ""
        self.whole: dict[str, Any] = {}

    def documents(self) -> Iterator[Document | Unreadable]:
        yield from self._fields(self.whole, ())
        if self.problem:
            yield Unreadable(self.origin, self.line, self.problem)
        elif not self.is_split:
            yield Document(self.line, self.whole)

    def _fields(self, fields: dict[str, Any], path: tuple[str, ...]) -> Iterator[Document | Unreadable]:
        for name in self.stream.names():
            inner = (*path, name)
            if name in fields:
                self.problem = self.problem or f"is {there_twice(name)}"
            token = self.stream.peek()
            if token == b"[" and inner in _LISTS and (_LISTS[inner] or name) in {*fields, name}:
                yield from self._split(fields, inner)
            elif token == b"[" and inner in _LISTS_OF_LISTS:
                yield from self._each(fields, inner)
            elif token == b"{" and inner in _ON_THE_WAY:
                fields[name] = dict[str, Any]()
                yield from self._fields(fields[name], inner)
            else:
                fields[name] = self._value()

    def _each(self, fields: dict[str, Any], path: tuple[str, ...]) -> Iterator[Document | Unreadable]:
        """The objects of a list on the way, of which one at a time is held."""
        size, name = self.size, path[-1]
        for _ in self.stream.items():
            if self.stream.peek() != b"{":
                fields[name] = [self._value()]
                self.problem = self.problem or f'an item of "{name}" is no object'
                continue
            item = dict[str, Any]()
            fields[name] = [item]
            yield from self._fields(item, path)
            self.size = size
        fields[name] = []

    def _split(self, fields: dict[str, Any], path: tuple[str, ...]) -> Iterator[Document | Unreadable]:
        self.is_split = True
        for _ in self.stream.items():
            item = _whole(self.stream, self.origin)
            if isinstance(item, Unreadable):
                yield item
                continue
            fields[path[-1]] = [item.value]
            yield Document(item.line, _copied(self.whole, path))
        fields[path[-1]] = []

    def _value(self) -> Any:
        """The next value. One that cannot be held or read spoils the object, not what comes after it."""
        try:
            text = self.stream.value()
            self.size += len(text)
            if self.size > LONGEST:
                raise TooLarge(TOO_LARGE)
            return decode(text)
        except BrokenJson:
            raise
        except TooLarge as error:
            self.problem = self.problem or f"{error}{_ADVICE}"
        except ValueError as error:
            self.problem = self.problem or str(error)
        return None


def _copied(value: Any, path: tuple[str, ...]) -> Any:
    """The objects on the way to the list are filled further; the rest is never changed."""
    if (items := items_of(value)) is not None and path:
        return [_copied(item, path) for item in items]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    return {name: _copied(item, path[1:]) if path[:1] == (name,) else item for name, item in fields.items()}
