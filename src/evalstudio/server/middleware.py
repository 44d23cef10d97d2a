"""Around every request: bounds on bodies, a request id, safe headers, the access log."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..base.json_text import UnclearJson, json_once
from ..base.located import DEEPEST
from ..project.secrets import MASK, may_hide
from .errors import error_response
from .security import largest_body

access = logging.getLogger("evalstudio.access")
log = logging.getLogger("evalstudio")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LONGEST_PATH = 500
_HOLDERS = (dict, list)
# How the parser says so, in this version and in others.
_DEPTH = re.compile("recursion|depth|nest", re.IGNORECASE)
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
RawHeader = tuple[bytes, bytes]
_ID_HEADER = b"x-request-id"
# As they are sent: starlette would look for each among those that are there.
_ALL_HEADERS = {name.lower().encode(): value.encode() for name, value in _HEADERS.items()}
_API_HEADERS = {**_ALL_HEADERS, b"cache-control": b"no-store"}


class ResponseHeaders:
    """The outermost layer; what goes wrong inside ends here as a plain error."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        status = 0
        start = time.perf_counter()

        async def enveloped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_ours(message["headers"], scope["path"], request_id)
            await send(message)

        try:
            await self._app(scope, receive, enveloped)
        except Exception:
            log.exception("Request %s failed", request_id)
            if status:
                raise
            message = f"Something went wrong here; the log has more under {request_id}."
            await error_response(500, message)(scope, receive, enveloped)
        finally:
            _log(scope, request_id, status, time.perf_counter() - start)


def _request_id(scope: Scope) -> str:
    text = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    # Nobody gains by guessing it, so that the system need not be asked for randomness every time.
    return text if _REQUEST_ID.fullmatch(text) else f"{random.getrandbits(64):016x}"


def _with_ours(headers: Iterable[RawHeader], path: str, request_id: str) -> list[RawHeader]:
    ours = _API_HEADERS if path.startswith("/api") else _ALL_HEADERS
    others = [header for header in headers if header[0].lower() not in ours]
    return [*others, *ours.items(), (_ID_HEADER, request_id.encode())]


def _log(scope: Scope, request_id: str, status: int, seconds: float) -> None:
    if not access.isEnabledFor(logging.INFO):
        return
    client = scope.get("client")
    line = {
        "method": scope["method"],
        "path": scope["path"][:_LONGEST_PATH],
        "query": _masked_query(scope["query_string"].decode("latin-1"))[:_LONGEST_PATH],
        "status": status or None,
        "ms": round(seconds * 1000, 1),
        "client": client[0] if client else None,
        "requestId": request_id,
    }
    text = orjson.dumps(line, default=str).decode()
    # Made here: nobody asks which line of code it comes from, which takes longer to find out than the rest.
    access.handle(logging.LogRecord(access.name, logging.INFO, "", 0, text, None, None))


def _masked_query(query: str) -> str:
    """The query with what may be secret masked."""
    if not query:
        return query
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=None)
    return urlencode([(name, MASK if may_hide(name) else value) for name, value in pairs], safe="*")


class Compression(GZipMiddleware):
    """Leaves the stream of events as it is: compressed, an event would wait for the next ones."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/api/events":
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class BoundedBody:
    """Stops reading a body that turns out larger than allowed, whatever its headers say."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read, most = 0, largest_body(scope.get("path", ""), self._most)

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise HTTPException(413, f"The body is larger than {most:,} bytes.")
            return message

        await self._app(scope, bounded if scope["type"] == "http" else receive, send)


class StrictRequest(Request):
    """JSON as the standard has it: no NaN, no halves of characters, no endless nesting."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            value = json_once(body)
        except orjson.JSONDecodeError as error:
            if _DEPTH.search(error.msg):
                raise _too_deep() from None
            raise
        except UnclearJson as error:
            raise HTTPException(422, f"The body is {error}.") from None
        if body.count(b"[") + body.count(b"{") > DEEPEST and type(value) in _HOLDERS and _is_deeper(value):
            raise _too_deep()
        return value


def _too_deep() -> HTTPException:
    return HTTPException(422, f"The body is nested more than {DEEPEST} levels deep.")


def _is_deeper(value: Any) -> bool:
    """Whether something is deeper than allowed; looked at level by level, not by recursion."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [item for holder in level for item in _items_in(holder) if type(item) in _HOLDERS]
        if not level:
            return False
    return True


def _items_in(holder: Any) -> Iterable[Any]:
    return cast(dict[str, Any], holder).values() if type(holder) is dict else holder


class JsonRoute(APIRoute):
    """A route whose body is read strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly
