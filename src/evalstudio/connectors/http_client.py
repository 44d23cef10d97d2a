"""The HTTP client of a pool: bounded answers, no redirects, and when data came in.

Importing aiohttp takes longer than most commands do: whatever may do without it imports this when it must.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from errno import EACCES
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from aiohttp.client_proto import ResponseHandler

from ..base.networks import AddressCheck
from ..version import __version__

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_LARGEST_ANSWER = 10_000_000
# Servers close idle connections after five seconds or more. A request on one that is being closed would fail,
# and is not sent again: nobody can tell whether the agent has seen it.
_IDLE_SECONDS = 4.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class AnswerTooLarge(ClientError):
    """More bytes than allowed; reading stopped there."""

    def __init__(self, most: int) -> None:
        super().__init__(f"sent more than {most:,} bytes (maxResponseBytes)")


class Redirected(ClientError):
    """The agent sent us elsewhere, where we do not go."""

    def __init__(self, status: int) -> None:
        super().__init__(
            f"answered with a redirect ({status}), which is not followed: give the final address"
        )
        self.status = status


async def read_bounded(response: ClientResponse, most: int) -> bytes:
    """The body, in memory only up to the limit."""
    if (response.content_length or 0) > most:
        raise AnswerTooLarge(most)
    content = response.content
    first = await content.readany()
    rest = await content.readany() if first else b""
    if not rest and len(first) <= most:
        return first
    body = bytearray(first)
    while rest:
        body += rest
        if len(body) > most:
            break
        rest = await content.readany()
    if len(body) > most:
        raise AnswerTooLarge(most)
    return bytes(body)


class _TimedHandler(ResponseHandler):
    """Notes when data came in: a busy event loop reads the answer only later."""

    received_at = 0.0

    def data_received(self, data: bytes) -> None:
        self.received_at = perf_counter()
        super().data_received(data)


class _Connector(TCPConnector):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)  # pyright: ignore[reportUnknownMemberType] - aiohttp leaves a part untyped
        self._factory = partial(_TimedHandler, loop=asyncio.get_running_loop())


class BoundedResponse(ClientResponse):
    """For plugins too no redirect is followed, and ``read``, ``text`` and ``json`` stop at the limit."""

    _handler: _TimedHandler | None = None
    sent_at = 0.0
    """When its request was sent, by ``perf_counter``; 0 where a connection had to be made for it first."""

    @property
    def received_at(self) -> float:
        """When the last of it came in, by ``perf_counter``."""
        return self._handler.received_at if self._handler is not None else 0.0

    async def start(self, connection: Connection) -> ClientResponse:
        if isinstance(connection.protocol, _TimedHandler):
            self._handler = connection.protocol
            # The request has just been written. A connection that has carried data before was there already.
            self.sent_at = perf_counter() if self._handler.received_at else 0.0
        await super().start(connection)
        if self.status in _REDIRECTS:
            raise Redirected(self.status)
        return self

    async def read(self) -> bytes:
        if self._body is None:
            self._body = await read_bounded(self, _LARGEST_ANSWER)
            self.release()
        return self._body


def open_client(limit: int, check: AddressCheck, *, proxies: bool) -> ClientSession:
    """A client for the running loop."""
    return ClientSession(
        connector=_Connector(limit=limit, keepalive_timeout=_IDLE_SECONDS, socket_factory=_checked(check)),
        cookie_jar=DummyCookieJar(),
        trust_env=proxies,
        timeout=ClientTimeout(total=None),
        headers={"User-Agent": f"evalstudio/{__version__}", "Accept-Encoding": "identity"},
        response_class=BoundedResponse,
    )


def _checked(check: AddressCheck) -> Callable[[Any], socket.socket]:
    """A socket factory that asks before it makes one: the last moment at which the address is known."""

    def open_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        try:
            check(str(address[0]))
        except Exception as error:
            # The one kind of error the connecting code carries through whatever else it tries.
            raise PermissionError(EACCES, str(error) or "this address is not allowed") from None
        return socket.socket(family, kind, protocol)

    return open_socket
