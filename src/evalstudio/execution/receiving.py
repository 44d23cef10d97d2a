"""Telemetry that comes in: read, cut to what is needed, redacted, and stored before it is acknowledged.

Everything but the storing happens in threads. Whoever sends more than can be worked on is asked to wait:
nothing is taken that is not kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import orjson

from ..base.concurrency import blocking
from ..base.functions import import_function
from ..base.json_text import json_bytes, json_text
from ..base.lazy_dataclass import dataclass
from ..base.outages import riding_out
from ..base.problems import InvalidInput, Problem
from ..base.redaction import SHORTEST_IN_ANSWERS, Redaction
from ..base.references import UnsetVariable, resolve
from ..base.text import cut
from ..recordings.span_protobuf import read_protobuf
from ..recordings.spans import (
    CONVERSATION_IDS,
    BadPayload,
    PayloadTooLarge,
    Signal,
    Span,
    SpanLimits,
    UnsupportedEncoding,
    read_json,
)
from ..storage.errors import StorageError
from ..storage.production import AddedSpans, ConversationLimits, NewSpan
from .workspace import Workspace

log = logging.getLogger("evalstudio")

SHORTEST_TOKEN = 16
_AT_ONCE = 2
_MOST_WAITING_BYTES = 64_000_000
_STORING_SECONDS = 15.0
# Two transactions in each other's way are no reason to send a batch again.
_AGAIN_SECONDS = 1.0
_KEPT_EVENTS = ("exception",)
# What instrumentations repeat, and no reader looks at.
_SUPERFLUOUS = frozenset({"logfire.json_schema", "logfire.msg", "model_request_parameters"})
_REDACTED = ("name", "attributes", "resource", "events", "error", "body")


class TryLater(Exception):
    """Nothing was taken; the same request may be sent again after so many seconds."""

    def __init__(self, message: str, seconds: int = 2) -> None:
        super().__init__(message)
        self.seconds = seconds


class HookFailed(TryLater):
    """The project's own redaction failed. What was not redacted is not stored."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a request: how many were refused, and what the sender should know."""

    refused: int = 0
    message: str = ""


class Receiver:
    """Takes OTLP requests for one project."""

    def __init__(self, workspace: Workspace) -> None:
        settings = workspace.config.production
        self._store = workspace.store
        self.token = _token(settings.token or "")
        limits = settings.limits
        self._most_bytes = limits.request_bytes
        self._span_limits = SpanLimits(limits.request_spans, limits.span_bytes)
        self._limits = ConversationLimits(limits.conversation_spans, limits.conversation_bytes)
        self._personal = settings.redact.personal_data()
        self._secrets = Redaction.of(workspace.secrets, shortest=SHORTEST_IN_ANSWERS)
        hook = settings.redact.hook
        self._hook = import_function(hook, workspace.folder, _wrong_hook) if hook else None
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._waiting_bytes = 0

    async def take(self, data: bytes, signal: Signal, *, is_json: bool, packed: bool) -> Receipt:
        """Read and store a request; it may be acknowledged when this is over."""
        with self._room_for(len(data)):
            async with self._places:
                spans, warning = await blocking.run(lambda: self._read(data, signal, is_json, packed))
            added = await self._stored(spans) if spans else AddedSpans(0, 0, 0)
        if added.refused:
            most = self._limits
            warning = (
                f"{added.refused:,} spans were refused: a conversation holds at most "
                f"{most.most_spans:,} spans and {most.most_bytes:,} bytes."
            )
        return Receipt(added.refused, warning)

    @contextmanager
    def _room_for(self, size: int) -> Generator[None]:
        if self._waiting_bytes and self._waiting_bytes + size > _MOST_WAITING_BYTES:
            raise TryLater("Too much is being taken in at the moment.")
        self._waiting_bytes += size
        try:
            yield
        finally:
            self._waiting_bytes -= size

    async def _stored(self, spans: list[NewSpan]) -> AddedSpans:
        try:
            with riding_out(_AGAIN_SECONDS):
                async with asyncio.timeout(_STORING_SECONDS):
                    return await self._store.add_spans(spans, self._limits)
        except TimeoutError:
            raise TryLater(f"The database did not store this within {_STORING_SECONDS:g} s.", 10) from None
        except StorageError as error:
            raise TryLater(str(error), 10) from None

    def _read(self, data: bytes, signal: Signal, is_json: bool, packed: bool) -> tuple[list[NewSpan], str]:
        plain = _unpacked(data, self._most_bytes) if packed else data
        if is_json:
            spans = read_json(_json(plain), signal, self._span_limits)
        else:
            spans = read_protobuf(plain, signal, self._span_limits)
        warning = next((span.missing for span in spans if span.missing), "")
        prepared = (self._prepared(span) for span in spans if span.trace_id and span.is_relevant)
        return [span for span in prepared if span is not None], warning

    def _prepared(self, span: Span) -> NewSpan | None:
        """A span as it is stored, or nothing where the project's hook leaves it out."""
        name = span.conversation_id
        fields = _trimmed(span).to_json()
        if self._hook is not None:
            changed = self._hooked(fields)
            if changed is None:
                return None
            fields = changed
            name = Span.of_json(fields).conversation_id
        body, fields = self._redacted(fields)
        if name is not None and (shown := Span.of_json(fields).conversation_id) != name:
            # Two people must not become one conversation because both of their names were taken out.
            name = f"{shown} {hmac.digest(self.token.encode(), name.encode(), hashlib.sha256).hex()[:16]}"
            fields["attributes"][_named_by(fields["attributes"])] = name
            body = json_bytes(fields)
        if len(body) > self._span_limits.largest_span:
            body = json_bytes(_emptied(fields, len(body)))
        trace_id = bytes.fromhex(span.trace_id)
        part = hashlib.sha256(body).digest()[:8] if span.event else b""
        identity = trace_id + bytes.fromhex(span.span_id) + part
        return NewSpan(identity, trace_id, name, zlib.compress(body, 1), len(body))

    def _hooked(self, fields: dict[str, Any]) -> dict[str, Any] | None:
        assert self._hook is not None
        ids = {key: fields[key] for key in ("trace_id", "span_id") if key in fields}
        try:
            changed: object = self._hook(fields)
        except Exception as error:
            log.error("The redaction hook failed: %s: %s", type(error).__name__, error)
            raise HookFailed("The project's redaction hook failed; nothing was stored.", 30) from None
        if changed is None:
            return None
        attributes = (
            cast(dict[str, Any], changed).get("attributes", {}) if isinstance(changed, dict) else None
        )
        if not isinstance(attributes, dict):
            log.error("The redaction hook must return the span as it got it, changed, or None")
            raise HookFailed("The project's redaction hook returned no span; nothing was stored.", 30)
        return cast(dict[str, Any], changed) | ids

    def _redacted(self, fields: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
        # Times and ids are left out of the search: most of them look like the number of a card.
        text = json_text({key: fields[key] for key in _REDACTED if key in fields})
        if not self._personal.may_be_in(text) and self._secrets(text) is text:
            return json_bytes(fields), fields
        changed = dict(fields)
        for key in _REDACTED:
            if key in changed:
                value = self._secrets.everywhere(changed[key]) if self._secrets else changed[key]
                changed[key] = self._personal.everywhere(value)
        return json_bytes(changed), changed


def _named_by(attributes: Mapping[str, Any]) -> str:
    return next(name for name in CONVERSATION_IDS if attributes.get(name))


def _emptied(fields: Mapping[str, Any], size: int) -> dict[str, Any]:
    """A span that is too large, without its content: it must not look as if it had not been there."""
    kept = ("openinference.span.kind", "gen_ai.operation.name", *CONVERSATION_IDS)
    attributes: dict[str, Any] = fields.get("attributes", {})
    short = {name: attributes[name] for name in kept if name in attributes}
    rest = {key: item for key, item in fields.items() if key not in ("events", "body", "resource")}
    return rest | {"attributes": short, "missing": f"a span of {size:,} bytes was not taken: it is too large"}


def missing_extra() -> str | None:
    """What must be installed to read protobuf, with the command; nothing where it is there."""
    try:
        read_protobuf(b"", "traces")
    except UnsupportedEncoding as error:
        return str(error)
    return None


def span_of_body(body: bytes) -> Span:
    """A span as it was stored."""
    return Span.of_json(orjson.loads(zlib.decompress(body)))


def _token(text: str) -> str:
    try:
        token = resolve(text, "production.token").strip()
    except UnsetVariable as error:
        raise InvalidInput(Problem(str(error), ("production", "token"))) from None
    if len(token) < SHORTEST_TOKEN:
        problem = f"the token is too short; {SHORTEST_TOKEN} characters are the least"
        raise InvalidInput(Problem(problem, ("production", "token")))
    return token


def _wrong_hook(message: str) -> Exception:
    return InvalidInput(Problem(message, ("production", "redact", "hook")))


def _unpacked(data: bytes, most: int) -> bytes:
    """What gzip packed, and no more of it than is taken."""
    unpacking = zlib.decompressobj(wbits=31)
    try:
        plain = unpacking.decompress(data, most + 1)
    except zlib.error as error:
        raise BadPayload(f"The body is not gzip: {error}") from None
    if len(plain) > most:
        raise PayloadTooLarge(f"The body is larger than {most:,} bytes when it is unpacked.")
    if not unpacking.eof or unpacking.unused_data:
        raise BadPayload("The body is not one whole piece of gzip.")
    return plain


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadPayload(f"The body is not valid JSON: {cut(str(error), 200)}") from None


_FLAT = ("llm.input_messages.", "llm.output_messages.")


def _trimmed(span: Span) -> Span:
    """A span without what every other span repeats and no reader needs."""
    attributes = {name: value for name, value in span.attributes.items() if name not in _SUPERFLUOUS}
    if span.role not in ("llm", "tool"):
        dropped = ("input.value", "output.value") if span.parent_id else ("input.value",)
        attributes = {
            name: value
            for name, value in attributes.items()
            if name not in dropped and not name.startswith(_FLAT)
        }
    elif span.role == "llm" and any(name.startswith("llm.output_messages.") for name in attributes):
        attributes = {
            name: value for name, value in attributes.items() if name not in ("input.value", "output.value")
        }
    span.attributes = attributes
    span.events = [_without_stack(event) for event in span.events if event.get("name") in _KEPT_EVENTS]
    return span


def _without_stack(event: dict[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = event.get("attributes") or {}
    kept = {name: value for name, value in attributes.items() if name != "exception.stacktrace"}
    return {**event, "attributes": kept}
