"""Spans and log events of OpenTelemetry, and reading them from JSON; ``span_protobuf`` reads protobuf."""

from __future__ import annotations

import hashlib
import math
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Generator, Mapping
from dataclasses import field, fields
from typing import Any, Literal, cast

from ..base.json_text import clean_text
from ..base.lazy_dataclass import dataclass

Signal = Literal["traces", "logs"]
Role = Literal["llm", "tool", "agent", "other"]

TRACE_BYTES, SPAN_BYTES = 16, 8
_ERROR = (2, "STATUS_CODE_ERROR")
_LLM_OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
_ROLES: Mapping[str, Role] = {"LLM": "llm", "TOOL": "tool", "AGENT": "agent", "CHAIN": "agent"}
# By these names a span or an event says that it is part of a conversation with an agent.
_RELEVANT = ("gen_ai.", "llm.", "openinference.", "pydantic_ai.", "session.id")
# Conversations are told apart by the first of these that a span has.
CONVERSATION_IDS = ("gen_ai.conversation.id", "session.id")
LONGEST_ID = 500


class BadPayload(ValueError):
    """A request that is not OTLP; the message says what is wrong with it."""


class UnsupportedEncoding(BadPayload):
    """An encoding that this installation cannot read."""


class PayloadTooLarge(BadPayload):
    """A request that holds more than is taken at once."""


@dataclass(frozen=True, slots=True)
class SpanLimits:
    """How much one request may hold."""

    most_spans: int = 10_000
    largest_span: int = 2_000_000
    most_attributes: int = 10_000
    deepest: int = 40


DEFAULT_SPAN_LIMITS = SpanLimits()


@dataclass(slots=True)
class Span:
    """A span, or a log event that belongs to one; ``event`` is its name then.

    ``missing`` says what of it did not arrive or was not taken.
    """

    trace_id: str
    span_id: str
    name: str = ""
    parent_id: str = ""
    start: int = 0
    end: int = 0
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    resource: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    error: str | None = None
    missing: str | None = None
    event: str = ""
    body: Any = None

    @property
    def conversation_id(self) -> str | None:
        """What the sender calls the conversation, if it says so."""
        values = (self.attributes.get(name) for name in CONVERSATION_IDS)
        named = (str(value) for value in values if isinstance(value, str | int) and value != "")
        return next((_bounded(clean_text(name)) for name in named), None)

    @property
    def is_relevant(self) -> bool:
        """Whether it tells anything of a conversation with an agent."""
        return self.event.startswith("gen_ai.") or any(name.startswith(_RELEVANT) for name in self.attributes)

    @property
    def role(self) -> Role:
        kind = self.attributes.get("openinference.span.kind")
        if isinstance(kind, str) and kind:
            return _ROLES.get(kind.upper(), "other")
        return _role_by_operation(self)

    def to_json(self) -> dict[str, Any]:
        values = ((name, getattr(self, name)) for name in _FIELDS)
        return {name: value for name, value in values if value or value is False}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Span:
        return cls(**{name: value for name, value in stored.items() if name in _FIELDS})


def _bounded(name: str) -> str:
    """An id as it is, or its beginning and a hash of all of it."""
    if len(name) <= LONGEST_ID:
        return name
    return f"{name[:LONGEST_ID]} {hashlib.sha256(name.encode()).hexdigest()[:16]}"


_FIELDS = tuple(one.name for one in fields(Span))


def _role_by_operation(span: Span) -> Role:
    operation, attributes = span.attributes.get("gen_ai.operation.name"), span.attributes
    if operation in _LLM_OPERATIONS:
        return "llm"
    if operation == "execute_tool" or "gen_ai.tool.name" in attributes or "tool.name" in attributes:
        return "tool"
    if operation in ("invoke_agent", "create_agent") or "pydantic_ai.all_messages" in attributes:
        return "agent"
    if operation is None and "gen_ai.request.model" in attributes:
        return "llm"
    return "agent" if operation is None and "gen_ai.agent.name" in attributes else "other"


def check_count(count: int, limits: SpanLimits) -> None:
    if count > limits.most_spans:
        raise PayloadTooLarge(
            f"The request holds more than {limits.most_spans:,} spans or events. Send smaller batches."
        )


def dropped_note(count: object) -> str | None:
    number = _integer(count)
    if not number:
        return None
    return (
        f"the sender dropped {number:,} attributes of a span "
        "(set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000 there)"
    )


def traceparent(span: Span) -> str:
    """What names a span to others, so that what is found about it can be told of it."""
    return f"00-{span.trace_id}-{span.span_id}-01"


def read_json(data: Any, signal: Signal, limits: SpanLimits = DEFAULT_SPAN_LIMITS) -> list[Span]:
    """The spans or log events of a request in JSON, or of a line of a file: one request, or its parts."""
    try:
        return list(_of_json(data, signal, limits))
    except (AttributeError, TypeError) as error:
        raise BadPayload(f"The body is not an OTLP request of {signal} in JSON: {error}") from None


def _of_json(data: Any, signal: Signal, limits: SpanLimits) -> Generator[Span]:
    outer, inner, items = _JSON_NAMES[signal]
    if not isinstance(data, Mapping) or outer not in data:
        raise BadPayload(f'An OTLP request of {signal} is an object with "{outer}".')
    count = 0
    for whole in _list(cast(Mapping[str, Any], data)[outer]):
        resource = _json_attributes(_object(whole.get("resource")).get("attributes"), limits)
        for scope in _list(whole.get(inner)):
            for item in _list(scope.get(items)):
                count += 1
                check_count(count, limits)
                yield (_json_span if signal == "traces" else _json_event)(item, resource, limits)


_JSON_NAMES = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}


def _object(value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise BadPayload("Something that must be an object is none.")
    return cast(dict[str, Any], value or {})


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadPayload("Something that must be a list is none.")
    return cast(list[Any], value)


def _json_span(item: Any, resource: dict[str, Any], limits: SpanLimits) -> Span:
    status = _object(item.get("status"))
    span = Span(
        trace_id=_text_id(item.get("traceId"), TRACE_BYTES, "traceId"),
        span_id=_text_id(item.get("spanId"), SPAN_BYTES, "spanId"),
        name=str(item.get("name", "")),
        parent_id=_text_id(item["parentSpanId"], SPAN_BYTES, "parentSpanId")
        if item.get("parentSpanId")
        else "",
        start=_integer(item.get("startTimeUnixNano")),
        end=_integer(item.get("endTimeUnixNano")),
        attributes=_json_attributes(item.get("attributes"), limits),
        resource=resource,
        events=[
            {
                "name": str(event.get("name", "")),
                "attributes": _json_attributes(event.get("attributes"), limits),
            }
            for event in _list(item.get("events"))[: limits.most_attributes]
        ],
        missing=dropped_note(item.get("droppedAttributesCount")),
    )
    if status.get("code") in _ERROR:
        span.error = str(status.get("message") or "error")
    return span


def _json_event(item: Any, resource: dict[str, Any], limits: SpanLimits) -> Span:
    attributes = _json_attributes(item.get("attributes"), limits)
    has_ids = item.get("traceId") and item.get("spanId")
    return Span(
        trace_id=_text_id(item["traceId"], TRACE_BYTES, "traceId") if has_ids else "",
        span_id=_text_id(item["spanId"], SPAN_BYTES, "spanId") if has_ids else "",
        start=_integer(item.get("timeUnixNano")) or _integer(item.get("observedTimeUnixNano")),
        attributes=attributes,
        resource=resource,
        event=str(item.get("eventName") or attributes.get("event.name", "")),
        body=_json_value(item.get("body"), limits.deepest),
        missing=dropped_note(item.get("droppedAttributesCount")),
    )


def _json_attributes(pairs: Any, limits: SpanLimits) -> dict[str, Any]:
    listed = _list(pairs)
    if len(listed) > limits.most_attributes:
        raise PayloadTooLarge(f"A span has more than {limits.most_attributes:,} attributes.")
    return {str(pair.get("key", "")): _json_value(pair.get("value"), limits.deepest) for pair in listed}


def _json_value(value: Any, deepest: int) -> Any:
    """A value of an AnyValue in JSON as plain data."""
    if deepest <= 0:
        raise BadPayload("A value is nested too deeply.")
    if not value:
        return None
    if not isinstance(value, Mapping) or len(cast(Mapping[str, Any], value)) != 1:
        raise BadPayload('A value is an object with one key such as "stringValue".')
    ((kind, item),) = cast(Mapping[str, Any], value).items()
    match kind:
        case "stringValue" | "boolValue" | "bytesValue":
            return item
        case "intValue":
            return _integer(item)
        case "doubleValue":
            return float(item)
        case "arrayValue":
            return [_json_value(one, deepest - 1) for one in _list(item.get("values"))]
        case "kvlistValue":
            pairs = _list(item.get("values"))
            return {str(pair.get("key", "")): _json_value(pair.get("value"), deepest - 1) for pair in pairs}
        case _:
            raise BadPayload(f'"{kind[:40]}" is not a kind of value.')


def _integer(value: object) -> int:
    """A number that JSON may hold as a number or as text."""
    if value is None:
        return 0
    if isinstance(value, float) and (not math.isfinite(value) or not value.is_integer()):
        raise BadPayload(f"{value} is not a whole number.")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadPayload("Something that must be a whole number is none.")
    try:
        number = int(value) if not isinstance(value, str) or len(value) < 25 else None
    except ValueError:
        number = None
    if number is None or not -(2**63) <= number < 2**64:
        raise BadPayload(f'"{str(value)[:30]}" is not a whole number of 64 bits.')
    return number


def _text_id(value: object, size: int, name: str) -> str:
    """An id as hexadecimal text: JSON has it so, or in base64 where protobuf's own writer made it."""
    text = value if isinstance(value, str) else ""
    try:
        raw = bytes.fromhex(text) if len(text) == size * 2 else b64decode(text, validate=True)
    except (ValueError, NotBase64):
        raw = b""
    if len(raw) != size or not any(raw):
        raise BadPayload(f"A span has no {name} of {size} bytes, in hexadecimal digits or base64.")
    return raw.hex()
