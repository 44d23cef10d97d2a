"""``/v1/traces`` and ``/v1/logs``: OTLP over HTTP, with a token of its own.

The answers are those of OTLP's own specification, not of our API: a status in the encoding of the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ...execution.receiving import Receipt, Receiver, TryLater
from ...recordings.spans import BadPayload, PayloadTooLarge, Signal, UnsupportedEncoding
from ..security import AccessControl, address_of
from ..throttle import TooManyTokens

_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_REFUSED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}
_PACKED = ("gzip", "x-gzip")


class OtlpIntake:
    """Answers requests of senders; off without a receiver."""

    def __init__(self, receiver: Receiver | None) -> None:
        self._receiver = receiver
        self._access = AccessControl(receiver.token) if receiver is not None else None

    async def traces(self, request: Request) -> Response:
        return await self._answer(request, "traces")

    async def logs(self, request: Request) -> Response:
        return await self._answer(request, "logs")

    async def metrics(self, request: Request) -> Response:
        """Metrics say nothing of a conversation."""
        is_json = _kind(request) == _JSON
        return _status(404, "Metrics are not kept here. Export traces and logs only.", is_json)

    async def _answer(self, request: Request, signal: Signal) -> Response:
        is_json = _kind(request) == _JSON
        if self._receiver is None or self._access is None:
            message = "Telemetry is not taken here: set production.enabled in the config file."
            return _status(404, message, is_json)
        if (refusal := self._refusal(request, self._access, is_json)) is not None:
            return refusal
        packed = request.headers.get("content-encoding", "").strip().lower() in _PACKED
        try:
            receipt = await self._receiver.take(await request.body(), signal, is_json=is_json, packed=packed)
        except PayloadTooLarge as error:
            return _status(413, str(error), is_json)
        except UnsupportedEncoding as error:
            return _status(415, str(error), is_json)
        except BadPayload as error:
            return _status(400, str(error), is_json)
        except TryLater as error:
            return _status(503, str(error), is_json, {"Retry-After": str(error.seconds)})
        return _accepted(receipt, signal, is_json)

    def _refusal(self, request: Request, access: AccessControl, is_json: bool) -> Response | None:
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        try:
            known = scheme.lower() == "bearer" and access.is_token(
                address_of(request.scope), credentials.strip()
            )
        except TooManyTokens as error:
            return _status(429, str(error), is_json, error.headers)
        if not known:
            message = "A token is needed: send production.token as Authorization: Bearer …"
            return _status(401, message, is_json, {"WWW-Authenticate": 'Bearer realm="evalstudio"'})
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "", *_PACKED):
            return _status(415, "Bodies are plain or packed with gzip.", is_json)
        if _kind(request) not in (_PROTOBUF, _JSON):
            return _status(415, f"OTLP is sent as {_PROTOBUF} or {_JSON}.", is_json)
        return None


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _accepted(receipt: Receipt, signal: Signal, is_json: bool) -> Response:
    """What was taken, and in a partial success what was not."""
    if is_json:
        partial: dict[str, Any] = {}
        if receipt.refused:
            partial[_REFUSED[signal]] = str(receipt.refused)
        if receipt.message:
            partial["errorMessage"] = receipt.message
        return Response(orjson.dumps({"partialSuccess": partial} if partial else {}), media_type=_JSON)
    count = b"\x08" + _varint(receipt.refused) if receipt.refused else b""
    inner = count + (_text_field(2, receipt.message) if receipt.message else b"")
    body = b"\x0a" + _varint(len(inner)) + inner if inner else b""
    return Response(body, media_type=_PROTOBUF)


def _status(status: int, message: str, is_json: bool, headers: Mapping[str, str] | None = None) -> Response:
    """google.rpc.Status, in the encoding of the request."""
    body = orjson.dumps({"code": 0, "message": message}) if is_json else _text_field(2, message)
    kind = _JSON if is_json else _PROTOBUF
    return Response(body, status, headers=dict(headers or {}), media_type=kind)


def _text_field(number: int, text: str) -> bytes:
    """A text as a field of a protobuf message."""
    data = text.encode()
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
