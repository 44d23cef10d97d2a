"""Recorded conversations of files, folders and archives, in whatever format, one after the other.

What cannot be read is named by file, line and reason and never dropped.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from ..base.files import open_regular
from ..base.json_text import json_kind
from ..base.paths import fields_of, items_of
from ..base.problems import InvalidInput, suggestion
from .archives import read_archive
from .conversation import RecordedConversation
from .documents import Document, Unreadable, is_message, read_documents
from .formats import FORMATS, Format, recognise
from .mapping import FieldMapping

__all__ = ["Read", "Unreadable", "conversations_in", "read_conversations"]

Read = RecordedConversation | Unreadable
_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"


def read_conversations(
    path: Path | Sequence[Path],
    *,
    fields: Mapping[str, str] | None = None,
    format: str | None = None,
    start: int = 0,
) -> Iterator[Read]:
    """The conversations of a file, of every file of a folder, or of several.

    ``fields`` maps what no format knows, ``format`` insists on one. ``start`` passes over as many as an
    earlier reading gave, conversations and unreadable ones alike. ``InvalidInput`` where there is no such
    file, or nothing in it.
    """
    reader = _Reader(FieldMapping(fields or {}), _only(format))
    files = conversation_files([path] if isinstance(path, Path) else path)
    return islice(chain.from_iterable(map(reader.read_file, files)), start, None)


def conversations_in(
    documents: Iterable[Any],
    origin: str,
    *,
    fields: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Iterator[Read]:
    """The conversations of documents that are read already; their number stands for the line."""
    reader = _Reader(FieldMapping(fields or {}), _only(format))
    return reader.read_documents((Document(number, one) for number, one in enumerate(documents, 1)), origin)


def _only(name: str | None) -> Format | None:
    if name is not None and name not in FORMATS:
        raise InvalidInput(f'"{name}" is no format; {suggestion(name, FORMATS, "known are")}')
    return FORMATS.get(name or "")


class _Reader:
    """Reads one file after the other."""

    def __init__(self, mapping: FieldMapping, only: Format | None) -> None:
        self.mapping = mapping
        self.only = only
        self.seen = SeenIds()
        self.places = _Places()

    def read_file(self, path: Path) -> Iterator[Read]:
        """What is in a file; at least one item, for nothing at all is not what was meant."""
        count = 0
        try:
            with open_regular(path) as file:
                for item in self._contents(file, str(path)):
                    count += 1
                    yield item
        # What was seen is kept on disk, which may be full.
        except (OSError, EOFError, zlib.error, sqlite3.OperationalError) as error:
            count += 1
            yield Unreadable(str(path), None, f"cannot be read to its end: {error}")
        for name, line in self.seen.orphans():
            count += 1
            reason = f"is only a part of the run {name}, which is not in the file or cannot be read"
            yield Unreadable(str(path), line, reason)
        if not count:
            yield Unreadable(str(path), None, "holds no conversation")

    def _contents(self, file: BufferedReader, origin: str) -> Iterator[Read]:
        magic = file.peek(4)
        if magic.startswith(_ZIP):
            for name, documents in read_archive(file, origin):
                yield from self.read_documents(documents, name)
        elif magic.startswith(_GZIP):
            with gzip.open(file) as unpacked:
                yield from self.read_documents(
                    read_documents(BufferedReader(cast(Any, unpacked)), origin), origin
                )
        else:
            yield from self.read_documents(read_documents(file, origin), origin)

    def read_documents(self, documents: Iterator[Document | Unreadable], origin: str) -> Iterator[Read]:
        for document in documents:
            if isinstance(document, Unreadable):
                yield document
                continue
            form = self._format_of(document.value)
            if form is not None and form.collect is not None:
                for item in form.collect(chain([document], documents), origin):
                    yield item if isinstance(item, Unreadable) else self._once(item, origin, None)
                return
            yield from self._conversations(document, form, origin)

    def _format_of(self, value: Any) -> Format | None:
        if self.only is not None or not isinstance(value, dict):
            return self.only
        return recognise(cast(dict[str, Any], value))

    def _conversations(self, document: Document, form: Format | None, origin: str) -> Iterator[Read]:
        value: Any = document.value
        if (items := items_of(value)) is not None:
            value = {"messages": items}
            form = form or FORMATS["openai"]
        if not isinstance(value, dict):
            yield Unreadable(origin, document.line, f"is a JSON {json_kind(value)}, not a conversation")
            return
        if form is None and not self.mapping.has_messages:
            yield Unreadable(origin, document.line, _unknown(cast(dict[str, Any], value)))
            return
        yield from self._units(document.line, cast(dict[str, Any], value), form, origin)

    def _units(self, line: int, value: dict[str, Any], form: Format | None, origin: str) -> Iterator[Read]:
        try:
            units = [value] if form is None else list(form.units(value))
        except ValueError as error:
            yield Unreadable(origin, line, str(error))
            return
        for unit in units:
            place = self.places.next_on(origin, line, is_alone=len(units) == 1)
            if self._is_part(unit, form, line):
                continue
            try:
                conversation = self._one(unit, form)
            except ValueError as error:
                yield Unreadable(origin, line, str(error))
                continue
            conversation.id = conversation.id or place
            conversation.origin = conversation.origin or f"{origin}, line {line}"
            yield self._once(conversation, origin, line)

    def _once(self, conversation: RecordedConversation, origin: str, line: int | None) -> Read:
        """A second conversation with an id is not read, for the two could not be told apart."""
        first = self.seen.add(conversation.id, conversation.origin)
        if first is None:
            return conversation
        return Unreadable(origin, line, f'has the id "{conversation.id[:80]}" of {first}')

    def _is_part(self, unit: Any, form: Format | None, line: int) -> bool:
        """Whether what was said here stands in another unit of the file too, which must then be there."""
        part_of = None if form is None else form.part_of
        whole = None if part_of is None else part_of(fields_of(unit))
        if whole is not None:
            self.seen.add_part(whole, line)
        return whole is not None

    def _one(self, unit: Any, form: Format | None) -> RecordedConversation:
        if not isinstance(unit, dict):
            raise ValueError(f"is a JSON {json_kind(unit)}, not a conversation")
        fields = cast(dict[str, Any], unit)
        mapped = form is None or self.mapping.has_messages
        conversation = self.mapping.read(fields) if mapped else cast(Format, form).read(fields)
        self.mapping.complete(conversation, fields)
        return conversation


class _Places:
    """Names what has no id by its file and line, and by its number where others are on the same line."""

    def __init__(self) -> None:
        self._line: tuple[str, int] | None = None
        self._number = 0

    def next_on(self, origin: str, line: int, *, is_alone: bool) -> str:
        self._number = self._number + 1 if (origin, line) == self._line else 1
        self._line = (origin, line)
        is_first = is_alone and self._number == 1
        return f"{origin}:{line}" if is_first else f"{origin}:{line}:{self._number}"


def _unknown(fields: dict[str, Any]) -> str:
    if is_message(fields):
        return "is a lone message; a conversation is a list of them, or an object with messages"
    names = ", ".join(list(fields)[:8]) or "none"
    return f"is in no known format (its fields: {names}); name where its messages are with fields"


class SeenIds:
    """Which ids there were, and where each was first."""

    def __init__(self) -> None:
        # An unnamed database is private and spills to a file of its own that is gone with it.
        self._ids = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._ids.execute("PRAGMA cache_size = -4000")
        self._ids.execute("PRAGMA journal_mode = OFF")
        self._ids.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, origin TEXT) WITHOUT ROWID")
        self._ids.execute("CREATE TABLE part (id TEXT PRIMARY KEY, line INTEGER) WITHOUT ROWID")

    def add(self, name: str, origin: str) -> str | None:
        """Note an id; where it was before, if it was."""
        cursor = self._ids.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (name, origin))
        if cursor.rowcount:
            return None
        row = self._ids.execute("SELECT origin FROM seen WHERE id = ?", (name,)).fetchone()
        return str(row[0])

    def add_part(self, whole: str, line: int) -> None:
        """Note that a part of this was there."""
        self._ids.execute("INSERT OR IGNORE INTO part VALUES (?, ?)", (whole, line))

    def orphans(self) -> list[tuple[str, int]]:
        """Of which only parts were there, with the line of the first; then the parts are forgotten."""
        sql = "SELECT id, line FROM part WHERE id NOT IN (SELECT id FROM seen) ORDER BY line LIMIT 1000"
        rows = self._ids.execute(sql).fetchall()
        self._ids.execute("DELETE FROM part")
        return [(str(name), int(line)) for name, line in rows]


def conversation_files(paths: Sequence[Path]) -> list[Path]:
    """Every file that is named, each once. ``InvalidInput`` where one is not there or is empty."""
    files = list(dict.fromkeys(file for path in paths for file in _files_of(path)))
    if not files:
        raise InvalidInput("name a file with recorded conversations, or a folder of them")
    return files


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from _inside(path)
    elif path.exists() or not has_magic(str(path)):
        _check(path)
        yield path
    else:
        matches = sorted(Path(name) for name in glob(str(path), recursive=True))
        if not matches:
            raise InvalidInput.at(path, "no file is named like this")
        for match in matches:
            yield from _files_of(match)


def _inside(folder: Path) -> Iterator[Path]:
    """The files of a folder and the folders in it, without hidden ones."""
    names = [
        Path(parent) / name
        for parent, folders, files in os.walk(folder)
        if not folders.sort() and not _is_hidden(Path(parent).relative_to(folder))
        for name in files
        if not name.startswith(".")
    ]
    if not names:
        raise InvalidInput.at(folder, "the folder holds no file")
    yield from sorted(names)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _check(path: Path) -> None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise InvalidInput.at(path, "no such file") from None
    except OSError as error:
        raise InvalidInput.at(path, f"cannot be read ({error.strerror})") from None
    if not size and path.is_file():
        raise InvalidInput.at(path, "is empty; a recording holds at least one conversation")
