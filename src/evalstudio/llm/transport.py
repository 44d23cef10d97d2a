"""The HTTP client all providers share: bounded replies, no redirects, no retries of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2

from ..version import __version__

_CONNECT_SECONDS = 10.0
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


class ReplyRefused(Exception):
    """A reply that is not read to its end; the message goes after the provider's name."""


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
                raise _too_large(self._most)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _too_large(most: int) -> ReplyRefused:
    return ReplyRefused(f"sent a reply of more than {most:,} bytes (llmSettings.maxResponseBytes)")


def open_client(base_url: str, seconds: float, most_bytes: int, most_connections: int) -> httpx2.AsyncClient:
    """A pooled client. Redirects are not followed: they would carry the key to another address."""

    async def bound(response: httpx2.Response) -> None:
        # A small compressed reply may unfold into a huge one, so none is asked for and none is read.
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ReplyRefused("sent a compressed reply, which was not asked for")
        if response.is_redirect:
            raise ReplyRefused(f"answered with a redirect ({response.status_code}); give its final address")
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most_bytes:
            raise _too_large(most_bytes)
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
        trust_env=urlsplit(base_url).hostname not in _HERE,
    )
