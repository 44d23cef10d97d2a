"""The HTTP client the providers' libraries share, and what goes wrong with it.

Replies are bounded, redirects and retries are not its own. Libraries wrap each other's errors, so the status,
the headers and the cause are looked for along the chain.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import cast
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
)

from ..base.addresses import is_local
from ..base.redaction import Redaction
from ..version import __version__
from .failures import (
    ReplyRefused,
    compressed,
    not_asked,
    not_in_time,
    not_reached,
    of_status,
    outside_protocol,
    redacted,
    redirected,
    too_large,
)
from .limits import Failure
from .settings import Target


def explain(error: Exception, target: Target, redact: Redaction, seconds: float) -> Failure:
    """Why the call failed, whether to try again, and what the person can do."""
    failure = _of_status(error, target) or _of_connection(error, target, seconds)
    if failure is None and isinstance(error, ModelAPIError | UnexpectedModelBehavior):
        failure = outside_protocol(target, str(error))
    return redacted(failure or not_asked(target, error), redact)


def _of_status(error: Exception, target: Target) -> Failure | None:
    source = next((e for e in _chain(error) if isinstance(_attribute(e, "status_code"), int)), None)
    if source is None:
        return None
    headers = _attribute(source, "headers") or _attribute(_attribute(source, "response"), "headers")
    code = _attribute(source, "code") or _attribute(source, "provider_error_code")
    return of_status(
        cast(int, _attribute(source, "status_code")),
        _attribute(source, "body"),
        cast(Mapping[str, str], headers) if isinstance(headers, Mapping) else None,
        target,
        no_quota=isinstance(error, ModelQuotaExceededError) or code == "insufficient_quota",
        refused_key=isinstance(error, ModelAuthenticationError),
    )


def _of_connection(error: Exception, target: Target, seconds: float) -> Failure | None:
    for cause in _chain(error):
        if isinstance(cause, ReplyRefused):
            return Failure(f"{target.place} {cause}")
        if isinstance(cause, TimeoutError | httpx2.TimeoutException):
            return not_in_time(target, seconds)
        if isinstance(cause, httpx2.TransportError | OSError):
            return not_reached(target, str(cause) or type(cause).__name__)
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _attribute(source: object, name: str) -> object:
    return cast(object, getattr(source, name, None))


_CONNECT_SECONDS = 10.0


class _Bounded(httpx2.AsyncByteStream):
    """A reply's bytes, up to a limit."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._inner:
            seen += len(chunk)
            if seen > self._most:
                raise too_large(self._most)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def open_client(base_url: str, seconds: float, most_bytes: int, most_connections: int) -> httpx2.AsyncClient:
    """A pooled client. Redirects are not followed: they would carry the key to another address."""

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise compressed()
        if response.is_redirect:
            raise redirected(response.status_code)
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most_bytes:
            raise too_large(most_bytes)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, most_bytes)

    async def introduce(request: httpx2.Request) -> None:
        # Libraries add theirs beside one another; some servers refuse a header that comes twice.
        request.headers["User-Agent"] = f"evalstudio/{__version__}"

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
        limits=httpx2.Limits(
            max_connections=most_connections, max_keepalive_connections=most_connections, keepalive_expiry=30
        ),
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [introduce], "response": [bound]},
        follow_redirects=False,
        # A proxy for the world outside cannot reach a server on this machine.
        trust_env=not is_local(urlsplit(base_url).hostname or ""),
    )
