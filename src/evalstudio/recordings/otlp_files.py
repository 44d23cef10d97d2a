"""Files of OTLP JSON, as collectors write them: every line a request of traces or of logs.

A conversation is spread over the file, so all spans are read, and kept on disk, first.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import orjson

from ..base.json_text import json_bytes
from .conversation import RecordedConversation
from .documents import Document, Unreadable
from .otlp import Assembled, assemble
from .parts import Fields
from .spans import BadPayload, Signal, Span, SpanLimits, read_json

# A file of one's own may hold more than a request of somebody else.
_LIMITS = SpanLimits(most_spans=1_000_000, most_attributes=100_000)
_SIGNALS: dict[str, Signal] = {"resourceSpans": "traces", "resourceLogs": "logs"}


def is_otlp(fields: Fields) -> bool:
    return not _SIGNALS.keys().isdisjoint(fields)


def collect_spans(
    documents: Iterator[Document | Unreadable], origin: str
) -> Iterator[RecordedConversation | Unreadable]:
    """The conversations of a file; a line that cannot be read is named."""
    groups = SpanGroups(origin)
    for document in documents:
        if isinstance(document, Unreadable):
            yield document
            continue
        try:
            groups.add(_spans_of(document.value))
        except BadPayload as error:
            yield Unreadable(origin, document.line, str(error))
    for assembled in groups.conversations():
        yield assembled.conversation


def _spans_of(value: Any) -> list[Span]:
    fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    signals: list[Signal] = [signal for key, signal in _SIGNALS.items() if key in fields]
    if not signals:
        raise BadPayload('is no OTLP request: it has neither "resourceSpans" nor "resourceLogs"')
    return [span for signal in signals for span in read_json(fields, signal, _LIMITS)]


# As much as the intake of production keeps of one conversation.
MOST_SPANS = 10_000
MOST_BYTES = 64_000_000
_LARGEST_INTEGER = 2**63 - 1
_SCHEMA = """
CREATE TABLE body (number INTEGER PRIMARY KEY, content BLOB);
CREATE TABLE span (
    number INTEGER PRIMARY KEY, digest BLOB UNIQUE, trace TEXT, name TEXT, has_id INTEGER,
    start INTEGER, size INTEGER
);
CREATE TABLE trace (trace TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
CREATE TABLE conversation (
    number INTEGER PRIMARY KEY, name TEXT UNIQUE, start INTEGER, has_id INTEGER, head TEXT, tail TEXT
);
"""
# By the id that a span carries, else by that of its trace, else by the trace.
_GROUPS = """
UPDATE span SET name = coalesce(name, (SELECT name FROM trace WHERE trace.trace = span.trace), trace);
CREATE INDEX span_name ON span (name, start, number, size);
INSERT INTO conversation (name, start, has_id)
    SELECT name, min(start), max(has_id) FROM span GROUP BY name ORDER BY min(start), min(number);
CREATE INDEX conversation_tail ON conversation (tail);
"""
_NEXT = "SELECT number, name, has_id FROM conversation WHERE number > ? ORDER BY number LIMIT 1"
_EARLIER = "SELECT name FROM conversation WHERE tail = ? AND name != ? LIMIT 2"


def conversations_of(spans: Iterable[Span], origin: str = "") -> Iterator[Assembled]:
    """The conversations that spans tell of, in the order in which they began."""
    groups = SpanGroups(origin)
    groups.add(spans)
    return groups.conversations()


class SpanGroups:
    """Takes the spans of a file, and gives them back as conversations, one after the other."""

    def __init__(self, origin: str, *, most_spans: int = MOST_SPANS, most_bytes: int = MOST_BYTES) -> None:
        self._origin, self._most_spans, self._most_bytes = origin, most_spans, most_bytes
        # An unnamed database is private and spills to a file of its own that is gone with it.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA cache_size = -16000")
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.executescript(_SCHEMA)

    def add(self, spans: Iterable[Span]) -> None:
        """Keep what tells of a conversation. A span that was sent twice is kept once."""
        for span in spans:
            if span.trace_id and span.is_relevant:
                self._add(span)

    def _add(self, span: Span) -> None:
        body = json_bytes(span.to_json())
        name = span.conversation_id
        row = (
            hashlib.blake2b(body, digest_size=16).digest(),
            span.trace_id,
            name,
            name is not None,
            min(span.start, _LARGEST_INTEGER),
            len(body),
        )
        cursor = self._db.execute("INSERT OR IGNORE INTO span VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)
        if not cursor.rowcount:
            return
        self._db.execute("INSERT INTO body VALUES (?, ?)", (cursor.lastrowid, body))
        if name is not None:
            self._db.execute("INSERT OR IGNORE INTO trace VALUES (?, ?)", (span.trace_id, name))

    def conversations(self) -> Iterator[Assembled]:
        """All of them, in the order in which they began.

        Those without an id that go on with the history of another one are part of that one.
        """
        self._db.executescript(_GROUPS)
        count, named = self._db.execute("SELECT count(*), total(has_id) FROM conversation").fetchone()
        if count > 1 and named < count:
            self._link()
        for (name,) in self._db.execute("SELECT name FROM conversation ORDER BY start, number"):
            yield self._assembled(name)

    def _link(self) -> None:
        for _, name, _ in self._each():
            self._note(name)
        for _, name, has_id in self._each():
            head = self._db.execute("SELECT head FROM conversation WHERE name = ?", (name,)).fetchone()[0]
            earlier = self._db.execute(_EARLIER, (head, name)).fetchall()
            if not has_id and len(earlier) == 1:
                self._merge(name, earlier[0][0])

    def _each(self) -> Iterator[tuple[int, str, int]]:
        """Every conversation, read one by one: what comes later may be merged meanwhile."""
        number = 0
        while row := self._db.execute(_NEXT, (number,)).fetchone():
            number = row[0]
            yield row

    def _merge(self, name: str, into: str) -> None:
        self._db.execute("UPDATE span SET name = ? WHERE name = ?", (into, name))
        self._db.execute("DELETE FROM conversation WHERE name = ?", (name,))
        earliest = (
            "UPDATE conversation SET start = (SELECT min(start) FROM span WHERE name = ?) WHERE name = ?"
        )
        self._db.execute(earliest, (into, into))
        self._note(into)

    def _note(self, name: str) -> None:
        """What links a conversation with others."""
        one = self._assembled(name)
        links = (one.head, one.tail, name)
        self._db.execute("UPDATE conversation SET head = ?, tail = ? WHERE name = ?", links)

    def _assembled(self, name: str) -> Assembled:
        spans, missing = self._spans(name)
        return assemble(spans, identity=name, origin=self._origin, missing=missing)

    def _spans(self, name: str) -> tuple[list[Span], Sequence[str]]:
        """The spans of a conversation, as many as are held at once, and what had to be left out."""
        sql = "SELECT number, size FROM span WHERE name = ? ORDER BY start, number"
        spans, size, left_out = list[Span](), 0, 0
        for number, length in self._db.execute(sql, (name,)):
            if len(spans) >= self._most_spans or size + length > self._most_bytes:
                left_out += 1
                continue
            size += length
            body = self._db.execute("SELECT content FROM body WHERE number = ?", (number,)).fetchone()[0]
            spans.append(Span.of_json(orjson.loads(body)))
        limit = f"{self._most_spans:,} spans or {self._most_bytes // 1_000_000} MB"
        reason = f"{left_out:,} spans were left out, for a conversation is read up to {limit}"
        return spans, [reason] if left_out else []
