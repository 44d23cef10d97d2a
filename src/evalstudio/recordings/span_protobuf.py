"""Spans and log events from OTLP requests in protobuf, within bounds.

Whoever sends them is not trusted: what a request holds is counted before it is taken apart, for an empty
message takes two bytes on the wire and a hundred times as much in memory. What is too large is left out and
noted on its span, so that nobody takes the rest for the whole.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from ..base.extras import needs_extra
from .spans import (
    DEFAULT_SPAN_LIMITS,
    SPAN_BYTES,
    TRACE_BYTES,
    BadPayload,
    Signal,
    Span,
    SpanLimits,
    UnsupportedEncoding,
    check_count,
    dropped_note,
)


def read_protobuf(data: bytes, signal: Signal, limits: SpanLimits = DEFAULT_SPAN_LIMITS) -> list[Span]:
    """The spans or log events of a request in protobuf."""
    with needs_extra("otel", "OTLP in protobuf", UnsupportedEncoding):
        from google.protobuf.message import DecodeError
    try:
        return list(_of_protobuf(data, signal, limits))
    except (DecodeError, IndexError, UnicodeDecodeError) as error:
        raise BadPayload(f"The body is not an OTLP request of {signal} in protobuf: {error}") from None


def _of_protobuf(data: bytes, signal: Signal, limits: SpanLimits) -> Generator[Span]:
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

    count = 0
    for whole in _parts(data, 1):
        described = [Resource.FromString(part[: limits.largest_span]) for part in _parts(whole, 1)]
        resource = _attributes_of(described[0].attributes, limits) if described else {}
        for scope in _parts(whole, 2):
            for piece in _parts(scope, 2):
                count += 1
                check_count(count, limits)
                kept, missing = _within(piece, limits, signal)
                message: Any = (SpanMessage if signal == "traces" else LogRecord).FromString(kept)
                make = _span_of if signal == "traces" else _event_of
                yield _noted(make(message, resource, limits), missing)


def _noted(span: Span, missing: str | None) -> Span:
    span.missing = span.missing or missing
    return span


# In the messages Span and LogRecord: what may be large, and can be left out.
_LARGE_FIELDS = {"traces": frozenset({9, 11, 13}), "logs": frozenset({5, 6})}


def _within(piece: bytes, limits: SpanLimits, signal: Signal) -> tuple[bytes, str | None]:
    """A span as it can be read, without its attributes where it is too large; and what is missing then."""
    places = list(_places(piece))
    if len(piece) <= limits.largest_span and len(places) <= limits.most_attributes:
        return piece, None
    kept = [piece[start:end] for number, start, _, end in places if number not in _LARGE_FIELDS[signal]]
    return b"".join(kept[:100]), _too_large(len(piece), limits)


def _too_large(size: int, limits: SpanLimits) -> str:
    return (
        f"a span of {size:,} bytes was not taken: {limits.largest_span:,} bytes and "
        f"{limits.most_attributes:,} attributes are the most"
    )


def _parts(data: bytes, number: int) -> Generator[bytes]:
    """The messages in a field of a message."""
    for field_number, _, start, end in _places(data):
        if field_number == number:
            yield data[start:end]


def _places(data: bytes) -> Generator[tuple[int, int, int, int]]:
    """Of each field of a message: its number, where it starts, and where its value starts and ends."""
    position, size = 0, len(data)
    while position < size:
        start = position
        tag, position = _varint(data, position)
        kind, value = tag & 7, position
        if kind == 0:
            _, position = _varint(data, position)
        elif kind == 2:
            length, value = _varint(data, position)
            position = value + length
        elif kind in (1, 5):
            position += 8 if kind == 1 else 4
        else:
            raise BadPayload("The body is not protobuf.")
        if position > size:
            raise BadPayload("The body is cut off.")
        yield tag >> 3, start, value, position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
        if shift > 63:
            raise BadPayload("The body is not protobuf: a number has no end.")


def _span_of(message: Any, resource: dict[str, Any], limits: SpanLimits) -> Span:
    span = Span(
        trace_id=_bytes_id(message.trace_id, TRACE_BYTES, "traceId"),
        span_id=_bytes_id(message.span_id, SPAN_BYTES, "spanId"),
        name=message.name,
        parent_id=message.parent_span_id.hex(),
        start=message.start_time_unix_nano,
        end=message.end_time_unix_nano,
        attributes=_attributes_of(message.attributes, limits),
        resource=resource,
        events=[
            {"name": event.name, "attributes": _attributes_of(event.attributes, limits)}
            for event in message.events[: limits.most_attributes]
        ],
        missing=dropped_note(message.dropped_attributes_count),
    )
    if message.status.code == 2:
        span.error = message.status.message or "error"
    return span


def _event_of(message: Any, resource: dict[str, Any], limits: SpanLimits) -> Span:
    attributes = _attributes_of(message.attributes, limits)
    return Span(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        start=message.time_unix_nano or message.observed_time_unix_nano,
        attributes=attributes,
        resource=resource,
        event=message.event_name or str(attributes.get("event.name", "")),
        body=_value_of(message.body, limits.deepest),
        missing=dropped_note(message.dropped_attributes_count),
    )


def _bytes_id(value: bytes, size: int, name: str) -> str:
    if len(value) != size or not any(value):
        raise BadPayload(f"A span has no {name} of {size} bytes.")
    return value.hex()


def _attributes_of(pairs: Iterable[Any], limits: SpanLimits) -> dict[str, Any]:
    return {pair.key: _value_of(pair.value, limits.deepest) for pair in pairs}


def _value_of(value: Any, deepest: int) -> Any:
    """A value of protobuf's AnyValue as plain data."""
    if deepest <= 0:
        raise BadPayload("A value is nested too deeply.")
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_value_of(item, deepest - 1) for item in value.array_value.values]
        case "kvlist_value":
            return {pair.key: _value_of(pair.value, deepest - 1) for pair in value.kvlist_value.values}
        case "bytes_value":
            return value.bytes_value.hex()
        case kind:
            return getattr(value, kind)
