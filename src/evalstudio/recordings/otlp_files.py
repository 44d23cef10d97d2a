"""Files of OTLP JSON, as collectors write them: every line a request of traces or of logs.

A conversation is spread over the file, so all spans are read, and kept on disk, first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from .conversation import RecordedConversation
from .documents import Document, Unreadable
from .parts import Fields
from .span_groups import SpanGroups
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
