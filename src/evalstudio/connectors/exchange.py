"""One exchange with an agent over HTTP: bounded, never redirected, failures in words."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from errno import EACCES, ECONNREFUSED
from functools import lru_cache
from io import BytesIO
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson
from aiohttp import (
    ClientConnectionError,
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientResponseError,
    ClientSSLError,
    ClientTimeout,
    ConnectionTimeoutError,
    CookieJar,
    InvalidURL,
    ServerTimeoutError,
)
from pydantic import BaseModel
from yarl import URL

from ..base.json_text import UnclearJson, json_once, json_text
from ..base.paths import fields_of
from ..base.retry import retry_after
from ..base.text import excerpt, printable
from ..telemetry import agent_headers, traceparent
from .connection import BROKEN_OFF, CLOSED, CONNECT, TIMEOUT, AgentConnection
from .contract import ConnectorContext, ConnectorError
from .direct import DirectResponse, Response, send
from .http_client import AnswerTooLarge, BoundedResponse, Redirected, read_bounded

_SENT_AT_ONCE = 500_000
_NO_ADDRESS = 'baseUrl is not an address such as "http://127.0.0.1:8000"'


async def exchange(
    ctx: ConnectorContext[Any],
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    query: Mapping[str, str] | None = None,
) -> Any:
    """Send JSON to a path below the base URL and return the JSON that comes back."""
    async with open_exchange(ctx, path, body, method=method, query=query) as answer:
        raw = await answer.read()
    return answer.json(raw)


class HttpAnswer:
    """A successful answer whose body is still to be read, within the size limit."""

    def __init__(self, response: Response, connection: AgentConnection, place: str) -> None:
        self._response = response
        self._connection = connection
        self.place = place
        self.content_type = response.content_type.lower()
        self.headers = response.headers

    async def read(self) -> bytes:
        """The whole body."""
        raw = await read_bounded(self._response, self._connection.policy.max_response_bytes)
        self._connection.received_at = self.received_at
        return raw

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body piece by piece, as it comes in."""
        most, size = self._connection.policy.max_response_bytes, 0
        while piece := await self._response.content.readany():
            size += len(piece)
            if size > most:
                raise AnswerTooLarge(most)
            self._connection.received_at = self.received_at
            yield piece

    @property
    def received_at(self) -> float:
        """When the last of what was read came in, by ``perf_counter``."""
        response = self._response
        return response.received_at if isinstance(response, BoundedResponse | DirectResponse) else 0.0

    def note_first_token(self) -> None:
        """What came in last holds the first text or tool call of the answer."""
        if self._connection.first_token_at is None:
            self._connection.first_token_at = self.received_at or perf_counter()

    def json(self, raw: bytes) -> Any:
        try:
            return self.parsed(raw)
        except orjson.JSONDecodeError:
            raise _not_json(raw, self.content_type, self._connection, self.place) from None

    def parsed(self, text: str | bytes) -> Any:
        """The value of the answer, or of a part of it; ``orjson.JSONDecodeError`` where it is no JSON."""
        try:
            return json_once(text)
        except UnclearJson as error:
            raise self.fault(f"sent {error}") from None

    def text(self, raw: bytes) -> str:
        """The body as text; an empty one and an HTML page are no answer."""
        if not raw.strip() or self.content_type == "text/html" or _HTML.match(raw[:_EXCERPT_BYTES]):
            raise _not_json(raw, self.content_type, self._connection, self.place, "text")
        try:
            return raw.decode(self._response.charset or "utf-8")
        except (UnicodeDecodeError, LookupError) as error:
            raise ConnectorError(f"{self.place} sent text that cannot be decoded: {error}") from None

    def fault(self, problem: str, quoted: str = "") -> ConnectorError:
        """The answer is none, for this reason."""
        detail = f": {_beginning(quoted.encode(), self._connection)}" if quoted else ""
        return ConnectorError(f"{self.place} {problem}{detail}")


@asynccontextmanager
async def open_exchange(
    ctx: ConnectorContext[Any],
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    query: Mapping[str, str] | None = None,
    accept: str | None = None,
) -> AsyncGenerator[HttpAnswer]:
    """Send JSON and open the answer; every failure until it is closed is a ``ConnectorError``.

    Cookies the agent sets are sent back with the later requests of the same run.
    """
    connection = ctx.connection
    place = _place(connection, path)
    url = address(ctx.connector.base_url, path)
    answered = False
    try:
        async with send(
            connection.http,
            method,
            url,
            data=None if method == "GET" else payload(body),
            headers=_headers(ctx, f"{method} {path}", accept),
            timeout=_connecting_within(connection.policy.connect_seconds),
            params=query,
            cookies=connection.cookies.filter_cookies(URL(url)) if connection.cookies else None,
        ) as response:
            if connection.sent_at is None and isinstance(response, BoundedResponse | DirectResponse):
                connection.sent_at = response.sent_at
            _keep_cookies(connection, response)
            agent_headers(response.headers)
            answered = response.status < 300
            if not answered:
                raise await _refusal(response, connection, place)
            yield HttpAnswer(response, connection, place)
    except (ClientError, OSError, ValueError) as error:
        raise _failure(error, connection, place, answered) from None


@lru_cache
def _connecting_within(seconds: float) -> ClientTimeout:
    return ClientTimeout(total=None, sock_connect=seconds)


def _headers(ctx: ConnectorContext[Any], request: str, accept: str | None) -> Mapping[str, str]:
    connection = ctx.connection
    headers = dict(connection.headers)
    if accept is not None and not connection.own_accept:
        headers["Accept"] = accept
    names = {name.lower() for name in headers}
    if "idempotency-key" not in names:
        headers["Idempotency-Key"] = ctx.request_key(request)
    if "traceparent" not in names and (parent := traceparent()) is not None:
        headers["traceparent"] = parent
    return headers


def _keep_cookies(connection: AgentConnection, response: Response) -> None:
    if "Set-Cookie" not in response.headers:
        return
    if connection.cookies is None:
        # Unsafe only means that an address of numbers, such as 127.0.0.1, may have cookies too.
        connection.cookies = CookieJar(unsafe=True)
    connection.cookies.update_cookies_from_headers(response.headers.getall("Set-Cookie"), response.url)


def _failure(error: Exception, connection: AgentConnection, place: str, answered: bool) -> ConnectorError:
    # An agent that has begun to answer has done its work: asking again would do it twice.
    if answered and not isinstance(error, AnswerTooLarge | TimeoutError):
        return _broken_off(place)
    if isinstance(error, ClientError | OSError):
        return explain(error, connection, place)
    return ConnectorError(f"{place} could not be asked: {connection.redact(str(error))}")


async def _refusal(response: Response, connection: AgentConnection, place: str) -> ConnectorError:
    """The status as an error, with the first words of the body where they can still be read."""
    body = b""
    try:
        while len(body) < _EXCERPT_BYTES and (chunk := await response.content.readany()):
            body += chunk
    except (ClientError, OSError):
        pass
    detail = _beginning(body, connection)
    return _of_status(response.status, connection, place, detail, retry_after(response.headers))


def address(base_url: str, path: str) -> str:
    """The base URL with the path appended; a query on either is kept."""
    if not base_url.startswith(("http://", "https://")):
        raise ConnectorError(_NO_ADDRESS if base_url else "baseUrl is missing")
    if not path:
        return base_url
    try:
        base = urlsplit(base_url)
    except ValueError:
        raise ConnectorError(_NO_ADDRESS) from None
    below, _, more = path.partition("?")
    joined = base.path.rstrip("/") + "/" + below.lstrip("/") if below else base.path
    query = "&".join(part for part in (base.query, more) if part)
    return urlunsplit((base.scheme, base.netloc, joined, query, ""))


def _place(connection: AgentConnection, path: str) -> str:
    """The address of an exchange as it may be shown."""
    below = path.partition("?")[0].lstrip("/")
    return f"{connection.address.rstrip('/')}/{below}" if below else connection.address


def payload(value: Any) -> bytes | BytesIO:
    """A request's body as JSON."""
    try:
        raw = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
        # A large body is sent piece by piece, so that other calls go on meanwhile.
        return raw if len(raw) <= _SENT_AT_ONCE else BytesIO(raw)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise ConnectorError(f"the request is not JSON: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    raise TypeError(f"a {type(value).__name__} has no place in JSON")


_EXCERPT_BYTES = 4_000
_LONGEST_EXCERPT = 300
_HTML = re.compile(rb"\s*(<!doctype html|<html|<head|<body)", re.IGNORECASE)
_INVISIBLE = re.compile(r"<(script|style|head)\b.*?(</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


def explain(error: ClientError | OSError, connection: AgentConnection, place: str) -> ConnectorError:
    """A failed exchange in words; ``place`` is the address as it may be shown."""
    if isinstance(error, AnswerTooLarge | Redirected):
        return ConnectorError(f"{place} {error}")
    # Without headers it is the reading of the answer that failed, and the status is made up.
    if isinstance(error, ClientResponseError) and error.headers is not None:
        return _of_status(error.status, connection, place, error.message, retry_after(error.headers))
    if isinstance(error, ClientPayloadError):
        return _broken_off(place)
    if isinstance(error, InvalidURL):
        return ConnectorError(f"{place} is not a usable address: check baseUrl")
    if isinstance(error, ServerTimeoutError | TimeoutError):
        seconds = f"{connection.policy.connect_seconds:g} s"
        message = f"{place} did not accept a connection within {seconds}: check baseUrl"
        # A plugin may have set a limit for reading too, and by then the request was sent.
        return ConnectorError(
            message, cause=CONNECT if isinstance(error, ConnectionTimeoutError) else TIMEOUT
        )
    if isinstance(error, ClientConnectorCertificateError | ClientSSLError):
        message = f"{place} could not be reached safely: its TLS certificate or handshake failed"
        certificate = isinstance(error, ClientConnectorCertificateError)
        return ConnectorError(message, cause=None if certificate else CONNECT)
    if isinstance(error, ClientConnectorError):
        return _unreachable(error, place)
    if isinstance(error, ClientConnectionError | OSError):
        return ConnectorError(f"{place} closed the connection without an answer", cause=CLOSED)
    text = error.message if isinstance(error, ClientResponseError) else str(error)
    detail = _beginning(text.encode(), connection) or type(error).__name__
    return ConnectorError(f"{place} did not answer in proper HTTP: {detail}")


def _unreachable(error: ClientConnectorError, place: str) -> ConnectorError:
    if isinstance(error, ClientConnectorDNSError):
        return ConnectorError(
            f"{place} could not be reached: its host name is not known (DNS). Check baseUrl", cause=CONNECT
        )
    if error.os_error.errno == EACCES:
        return ConnectorError(f"{place} may not be called: {error.os_error.strerror}")
    if error.os_error.errno == ECONNREFUSED:
        return ConnectorError(
            f"{place} refused the connection: nothing listens there. Is the agent running?", cause=CONNECT
        )
    reason = error.os_error.strerror or type(error.os_error).__name__
    return ConnectorError(f"{place} could not be reached: {reason}. Check baseUrl", cause=CONNECT)


def _broken_off(place: str) -> ConnectorError:
    return ConnectorError(f"{place} broke off in the middle of its answer", cause=BROKEN_OFF)


def _of_status(
    status: int, connection: AgentConnection, place: str, detail: str, wait: float | None
) -> ConnectorError:
    """An answer with a status other than success."""
    message = f"{place} {_words(status)}{f': {detail}' if detail else ''}"
    return ConnectorError(connection.redact(message), retry_after=wait, cause=str(status))


def _words(status: int) -> str:
    match status:
        case 401 | 403:
            return f"refused the credentials ({status}), check the headers"
        case 404:
            return "has nothing at this address (404), check baseUrl and path"
        case 429:
            return "is getting too many requests (429)"
        case _ if status >= 500:
            return f"failed ({status})"
        case _ if 300 <= status < 400:
            return str(Redirected(status))
        case _:
            return f"refused the request ({status})"


def reported_error(answer: Any) -> str | None:
    """What an answer with a status of success says went wrong, in its own words; nothing if nothing did."""
    fields = fields_of(answer)
    error: Any = fields.get("error") or fields.get("errors")
    if error:
        return excerpt(_error_text(error), _LONGEST_EXCERPT)
    if fields.get("success") is False or fields.get("status") == "error":
        return excerpt(json_text(fields), _LONGEST_EXCERPT)
    return None


def _error_text(error: Any) -> str:
    text = fields_of(error).get("message", error)
    return text if isinstance(text, str) else json_text(error)


def _not_json(
    body: bytes, content_type: str, connection: AgentConnection, place: str, expected: str = "JSON"
) -> ConnectorError:
    """A successful answer that cannot be read as what was expected."""
    if not body.strip():
        return ConnectorError(f"{place} sent an empty answer where {expected} was expected")
    if content_type == "text/html" or _HTML.match(body[:_EXCERPT_BYTES]):
        kind = f"an HTML page instead of {expected} (check baseUrl and path)"
    else:
        kind = f"something that is not {expected}"
    return ConnectorError(f'{place} sent {kind}; it begins "{_beginning(body, connection)}"')


def _beginning(body: bytes, connection: AgentConnection) -> str:
    """The first words of a body on one line, secrets removed before anything is cut off."""
    text = connection.redact(body[:_EXCERPT_BYTES].decode(errors="replace"))
    if _HTML.match(body[:_EXCERPT_BYTES]):
        text = _page_text(text)
    return excerpt(printable(text, kept="", instead=" "), _LONGEST_EXCERPT)


def _page_text(page: str) -> str:
    """What a person would read on an HTML page: its title, then its text."""
    title = _TITLE.search(page)
    visible = re.sub(r"<[^<>]*>", " ", _INVISIBLE.sub(" ", page))
    return f"{title[1] if title else ''} {visible}"
