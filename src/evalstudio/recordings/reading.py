"""Recorded conversations of files, folders and archives, in whatever format, one after the other.

What cannot be read is named by file, line and reason and never dropped.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from ..base.files import open_regular
from ..base.json_text import json_kind
from ..base.paths import items_of
from ..base.problems import InvalidInput, suggestion
from .conversation import RecordedConversation
from .distinct import SeenIds
from .documents import Document, Unreadable, is_message, read_documents
from .formats import FORMATS, Format, recognise
from .mapping import FieldMapping
from .sources import conversation_files

__all__ = ["Read", "Unreadable", "read_conversations"]

Read = RecordedConversation | Unreadable
_GZIP = b"\x1f\x8b"


def read_conversations(
    path: Path | Sequence[Path],
    *,
    fields: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002
    start: int = 0,
) -> Iterator[Read]:
    """The conversations of a file, of every file of a folder, or of several.

    ``fields`` maps what no format knows, ``format`` insists on one. ``start`` passes over as many as an
    earlier reading gave, conversations and unreadable ones alike. ``InvalidInput`` where there is no such
    file, or nothing in it.
    """
    if format is not None and format not in FORMATS:
        raise InvalidInput(f'"{format}" is no format; {suggestion(format, FORMATS, "known are")}')
    reader = _Reader(FieldMapping(fields or {}), FORMATS.get(format or ""))
    files = conversation_files([path] if isinstance(path, Path) else path)
    return islice(chain.from_iterable(map(reader.read_file, files)), start, None)


class _Reader:
    """Reads one file after the other."""

    def __init__(self, mapping: FieldMapping, only: Format | None) -> None:
        self.mapping = mapping
        self.only = only
        self.seen = SeenIds()

    def read_file(self, path: Path) -> Iterator[Read]:
        """What is in a file; at least one item, for nothing at all is not what was meant."""
        count = 0
        try:
            with open_regular(path) as file:
                for item in self._contents(file, str(path)):
                    count += 1
                    yield item
        except (OSError, EOFError, zlib.error) as error:
            count += 1
            yield Unreadable(str(path), None, f"cannot be read to its end: {error}")
        if not count:
            yield Unreadable(str(path), None, "holds no conversation")

    def _contents(self, file: BufferedReader, origin: str) -> Iterator[Read]:
        magic = file.peek(4)
        if magic.startswith(_GZIP):
            with gzip.open(file) as unpacked:
                yield from self._documents(
                    read_documents(BufferedReader(cast(Any, unpacked)), origin), origin
                )
        else:
            yield from self._documents(read_documents(file, origin), origin)

    def _documents(self, documents: Iterator[Document | Unreadable], origin: str) -> Iterator[Read]:
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
        units = [value] if form is None else list(form.units(value))
        for number, unit in enumerate(units, 1):
            place = f"{origin}:{line}" if len(units) == 1 else f"{origin}:{line}:{number}"
            try:
                conversation = self._one(unit, form)
            except ValueError as error:
                yield Unreadable(origin, line, str(error))
                continue
            conversation.id = conversation.id or place
            conversation.origin = f"{origin}, line {line}"
            yield self._once(conversation, origin, line)

    def _once(self, conversation: RecordedConversation, origin: str, line: int | None) -> Read:
        """A second conversation with an id is not read, for the two could not be told apart."""
        first = self.seen.add(conversation.id, conversation.origin)
        if first is None:
            return conversation
        return Unreadable(origin, line, f'has the id "{conversation.id[:80]}" of {first}')

    def _one(self, unit: Any, form: Format | None) -> RecordedConversation:
        if not isinstance(unit, dict):
            raise ValueError(f"is a JSON {json_kind(unit)}, not a conversation")
        fields = cast(dict[str, Any], unit)
        mapped = form is None or self.mapping.has_messages
        conversation = self.mapping.read(fields) if mapped else cast(Format, form).read(fields)
        self.mapping.complete(conversation, fields)
        return conversation


def _unknown(fields: dict[str, Any]) -> str:
    if is_message(fields):
        return "is a lone message; a conversation is a list of them, or an object with messages"
    names = ", ".join(list(fields)[:8]) or "none"
    return f"is in no known format (its fields: {names}); name where its messages are with fields"
