"""One exchange of JSON with an agent over HTTP: bounded, never redirected, failures in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from errno import EACCES, ECONNREFUSED
from io import BytesIO
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
    ClientResponse,
    ClientResponseError,
    ClientSSLError,
    InvalidURL,
    ServerTimeoutError,
)
from pydantic import BaseModel

from ..base.retry import retry_after
from ..base.text import excerpt
from .connection import AgentConnection, is_temporary
from .contract import ConnectorContext, ConnectorError
from .http_pool import AnswerTooLarge, BoundedResponse, Redirected, read_bounded

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
    connection = ctx.connection
    place = _place(connection, path)
    answered = False
    try:
        async with connection.http.request(
            method,
            address(ctx.connector.base_url, path),
            data=None if method == "GET" else _payload(body),
            params=query,
            headers=connection.headers,
            timeout=connection.timeout,
            allow_redirects=False,
        ) as response:
            if connection.sent_at is None and isinstance(response, BoundedResponse):
                connection.sent_at = response.sent_at
            answered = response.ok and response.status < 300
            if not answered:
                raise await _refusal(response, connection, place)
            raw = await read_bounded(response, connection.policy.max_response_bytes)
            kind = response.content_type
            connection.received_at = response.received_at if isinstance(response, BoundedResponse) else 0.0
    except (ClientError, OSError, ValueError) as error:
        raise _failure(error, connection, place, answered) from None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise _not_json(raw, kind, connection, place) from None


def _failure(error: Exception, connection: AgentConnection, place: str, answered: bool) -> ConnectorError:
    # An agent that has begun to answer has done its work: asking again would do it twice.
    if answered and not isinstance(error, AnswerTooLarge | TimeoutError):
        return _broken_off(place)
    if isinstance(error, ClientError | OSError):
        return explain(error, connection, place)
    return ConnectorError(f"{place} could not be asked: {connection.redact(str(error))}")


async def _refusal(response: ClientResponse, connection: AgentConnection, place: str) -> ConnectorError:
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


def _payload(value: Any) -> bytes | BytesIO:
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
        return ConnectorError(f"{place} did not accept a connection within {seconds}: check baseUrl")
    if isinstance(error, ClientConnectorCertificateError | ClientSSLError):
        return ConnectorError(f"{place} could not be reached safely: its TLS certificate or handshake failed")
    if isinstance(error, ClientConnectorError):
        return _unreachable(error, place)
    if isinstance(error, ClientConnectionError | OSError):
        return ConnectorError(f"{place} closed the connection without an answer", again=True)
    text = error.message if isinstance(error, ClientResponseError) else str(error)
    detail = _beginning(text.encode(), connection) or type(error).__name__
    return ConnectorError(f"{place} did not answer in proper HTTP: {detail}")


def _unreachable(error: ClientConnectorError, place: str) -> ConnectorError:
    if isinstance(error, ClientConnectorDNSError):
        return ConnectorError(
            f"{place} could not be reached: its host name is not known (DNS). Check baseUrl", again=True
        )
    if error.os_error.errno == EACCES:
        return ConnectorError(f"{place} may not be called: {error.os_error.strerror}")
    if error.os_error.errno == ECONNREFUSED:
        return ConnectorError(
            f"{place} refused the connection: nothing listens there. Is the agent running?", again=True
        )
    reason = error.os_error.strerror or type(error.os_error).__name__
    return ConnectorError(f"{place} could not be reached: {reason}. Check baseUrl", again=True)


def _broken_off(place: str) -> ConnectorError:
    return ConnectorError(f"{place} broke off in the middle of its answer")


def _of_status(
    status: int, connection: AgentConnection, place: str, detail: str, wait: float | None
) -> ConnectorError:
    """An answer with a status other than success."""
    message = f"{place} {_words(status)}{f': {detail}' if detail else ''}"
    return ConnectorError(connection.redact(message), again=is_temporary(status), retry_after=wait)


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


def _not_json(body: bytes, content_type: str, connection: AgentConnection, place: str) -> ConnectorError:
    """A successful answer that cannot be read as JSON."""
    if not body.strip():
        return ConnectorError(f"{place} sent an empty answer where JSON was expected")
    if content_type == "text/html" or _HTML.match(body[:_EXCERPT_BYTES]):
        kind = "an HTML page instead of JSON (check baseUrl and path)"
    else:
        kind = "something that is not JSON"
    return ConnectorError(f'{place} sent {kind}; it begins "{_beginning(body, connection)}"')


def _beginning(body: bytes, connection: AgentConnection) -> str:
    """The first words of a body on one line, secrets removed before anything is cut off."""
    text = connection.redact(body[:_EXCERPT_BYTES].decode(errors="replace"))
    if _HTML.match(body[:_EXCERPT_BYTES]):
        text = _page_text(text)
    return excerpt("".join(c if c.isprintable() else " " for c in text), _LONGEST_EXCERPT)


def _page_text(page: str) -> str:
    """What a person would read on an HTML page: its title, then its text."""
    title = _TITLE.search(page)
    visible = re.sub(r"<[^<>]*>", " ", _INVISIBLE.sub(" ", page))
    return f"{title[1] if title else ''} {visible}"
