"""One exchange of JSON with an agent over HTTP: bounded, never redirected, failures in words."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson
from aiohttp import ClientError, ClientResponse
from pydantic import BaseModel

from .contract import ConnectorContext, ConnectorError
from .failures import EXCERPT_BYTES, broken_off, excerpt, explain, not_json, of_status
from .http_pool import AnswerTooLarge, BoundedResponse, read_bounded
from .line import Line
from .policy import retry_after

_SENT_AT_ONCE = 500_000


async def exchange(
    ctx: ConnectorContext[Any],
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    query: Mapping[str, str] | None = None,
) -> Any:
    """Send JSON to a path below the base URL and return the JSON that comes back."""
    line = ctx.line
    place = place_of(line, path)
    answered = False
    try:
        async with line.http.request(
            method,
            address(ctx.connector.base_url, path),
            data=None if method == "GET" else _payload(body),
            params=query,
            headers=line.headers,
            timeout=line.timeout,
            allow_redirects=False,
        ) as response:
            if line.asked_at is None and isinstance(response, BoundedResponse):
                line.asked_at = response.asked_at
            answered = response.ok and response.status < 300
            if not answered:
                raise await _refusal(response, line, place)
            raw = await read_bounded(response, line.policy.max_response_bytes)
            kind = response.content_type
            line.heard_at = response.heard_at if isinstance(response, BoundedResponse) else 0.0
    except (ClientError, OSError, ValueError) as error:
        raise _failure(error, line, place, answered) from None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise not_json(raw, kind, line, place) from None


def _failure(error: Exception, line: Line, place: str, answered: bool) -> ConnectorError:
    # An agent that has begun to answer has done its work: asking again would do it twice.
    if answered and not isinstance(error, AnswerTooLarge | TimeoutError):
        return broken_off(place)
    if isinstance(error, ClientError | OSError):
        return explain(error, line, place)
    return ConnectorError(f"{place} could not be asked: {line.redact(str(error))}")


async def _refusal(response: ClientResponse, line: Line, place: str) -> ConnectorError:
    """The status as an error, with the first words of the body where they can still be read."""
    body = b""
    try:
        while len(body) < EXCERPT_BYTES and (chunk := await response.content.readany()):
            body += chunk
    except (ClientError, OSError):
        pass
    asked = retry_after(response.headers)
    return of_status(response.status, line, place, excerpt(body, line), asked)


def address(base_url: str, path: str) -> str:
    """The base URL with the path appended; a query on either is kept."""
    if not base_url.startswith(("http://", "https://")):
        raise ConnectorError(
            "baseUrl is missing"
            if not base_url
            else 'baseUrl is not an address such as "http://127.0.0.1:8000"'
        )
    if not path:
        return base_url
    try:
        base = urlsplit(base_url)
    except ValueError:
        raise ConnectorError('baseUrl is not an address such as "http://127.0.0.1:8000"') from None
    below, _, asked = path.partition("?")
    joined = base.path.rstrip("/") + "/" + below.lstrip("/") if below else base.path
    query = "&".join(part for part in (base.query, asked) if part)
    return urlunsplit((base.scheme, base.netloc, joined, query, ""))


def place_of(line: Line, path: str) -> str:
    """The address of an exchange as it may be shown."""
    below = path.partition("?")[0].lstrip("/")
    return f"{line.shown.rstrip('/')}/{below}" if below else line.shown


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
