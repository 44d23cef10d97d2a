"""A pull reader of JSON text: steps into objects and lists, and gives the text of values inside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import orjson

CHUNK_BYTES = 1 << 18
# One conversation may be as long as this, in bytes.
LONGEST = 16 << 20
TOO_LARGE = f"is larger than {LONGEST >> 20} MB"
DEEPEST = 200

_OUTSIDE = re.compile(rb'(["\[\]{}])')
# Up to the end of a text; where the piece ends before it, up to there, a lone backslash apart.
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+(["\\]?)', re.DOTALL)
_NO_BLANK = re.compile(rb"[^ \t\r\n]")
_SCALAR_END = re.compile(rb"[,\]}\s]")
_LONGEST_SCALAR = 1 << 16


class BrokenJson(ValueError):
    """Text after which nothing more can be read."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


class TooLarge(Exception):
    """A value that is not held; what comes after it can be read."""


class Readable(Protocol):
    """What gives so many bytes at most, and none at its end."""

    def read(self, size: int, /) -> bytes: ...


class JsonStream:
    """Text of any length, of which one value at a time is held."""

    def __init__(self, file: Readable, begun: bytes = b"", line: int = 1) -> None:
        self._file = file
        self._data = begun
        self._place = 0
        self.line = line
        self.consumed = 0

    def peek(self) -> bytes:
        """The first byte of what comes next; empty at the end."""
        while (match := _NO_BLANK.search(self._data, self._place)) is None:
            self._advance(len(self._data))
            if not self._fill():
                return b""
        self._advance(match.start())
        return match[0]

    def items(self) -> Iterator[None]:
        """Step into a list: whoever asks reads one value each time."""
        self._take(b"[")
        if self.peek() == b"]":
            self._take(b"]")
            return
        while True:
            yield
            if self._either(b",", b"]") == b"]":
                return

    def names(self) -> Iterator[str]:
        """Step into an object: whoever asks reads the value of the name each time."""
        self._take(b"{")
        if self.peek() == b"}":
            self._take(b"}")
            return
        while True:
            if self.peek() != b'"':
                raise self._broken("a name in quotes is missing")
            name = _loads(self.value())
            self._take(b":")
            yield str(name)
            if self._either(b",", b"}") == b"}":
                return

    def value(self) -> bytes:
        """The text of the next value. One that is too large is passed over and raises ``TooLarge``."""
        token = self.peek()
        if token in b",:]}":
            raise self._broken("a value is missing" if token else "it ends in the middle")
        return self._nested() if token in (b"{", b"[", b'"') else self._scalar()

    def _scalar(self) -> bytes:
        while (match := _SCALAR_END.search(self._data, self._place)) is None:
            if len(self._data) - self._place > _LONGEST_SCALAR:
                raise self._broken("is not valid JSON")
            if not self._fill():
                break
        end = match.start() if match else len(self._data)
        text = self._data[self._place : end]
        self._advance(end)
        return text

    def _nested(self) -> bytes:
        scan, kept, size = _Extent(), list[bytes](), 0
        while True:
            end = scan.end_in(self._data, self._place)
            if end is None and scan.is_broken:
                raise self._broken("is not valid JSON")
            stop = len(self._data) if end is None else end
            size += stop - self._place
            if size <= LONGEST:
                kept.append(self._data[self._place : stop])
            else:
                kept.clear()
            self._advance(stop)
            if end is not None:
                break
            if not self._fill():
                raise self._broken("it ends in the middle")
        if size > LONGEST:
            raise TooLarge(TOO_LARGE)
        return b"".join(kept)

    def _take(self, token: bytes) -> None:
        self._either(token, token)

    def _either(self, one: bytes, other: bytes) -> bytes:
        token = self.peek()
        if token not in (one, other) or not token:
            expected = one.decode() if one == other else f"{one.decode()} or {other.decode()}"
            raise self._broken(f"{expected} is missing" if token else "it ends in the middle")
        self._advance(self._place + 1)
        return token

    def _broken(self, problem: str) -> BrokenJson:
        return BrokenJson(f"is not valid JSON: {problem}; nothing after it can be read", self.line)

    def _fill(self) -> bool:
        more = self._file.read(CHUNK_BYTES)
        self._data = self._data[self._place :] + more
        self._place = 0
        return bool(more)

    def _advance(self, place: int) -> None:
        self.line += self._data.count(b"\n", self._place, place)
        self.consumed += place - self._place
        self._place = place


def _loads(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode(errors="replace")


class _Extent:
    """Finds the end of an object, a list or a text that comes in pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escaped = False
        self.is_broken = False

    def end_in(self, data: bytes, place: int) -> int | None:
        """The place after the value, where it ends in this piece."""
        if self._escaped and place < len(data):
            place, self._escaped = place + 1, False
        while place < len(data):
            match = _INSIDE.match(data, place) if self._in_text else _OUTSIDE.search(data, place)
            if match is None:
                return None
            token, place = match[1], match.end()
            if self._in_text:
                self._escaped = token == b"\\"
                self._in_text = token != b'"'
            elif token == b'"':
                self._in_text = True
            else:
                self._depth += 1 if token in b"{[" else -1
            if self._depth <= 0 and not self._in_text:
                self.is_broken = self._depth < 0
                return place
        return None
