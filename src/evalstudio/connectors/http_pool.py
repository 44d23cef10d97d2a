"""One pooled HTTP client per event loop, with bounded answers and a check of every address it connects to.

It keeps no cookies (a run's are with its session), reads no proxy or netrc settings unless told to, and
follows no redirects: what a connector was given is all that is sent, and only to the address it was given.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from errno import EACCES
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import (
    ClientError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    StreamReader,
    TCPConnector,
)
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from ..base.networks import AddressCheck, no_metadata
from ..version import __version__

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_CONNECTIONS = 200
_LARGEST_ANSWER = 10_000_000
_MOST_SERVERS = 1_000
# Servers close idle connections after five seconds or more. A request on one that is being closed would fail,
# and is not sent again: nobody can tell whether the agent has seen it.
_IDLE_SECONDS = 4.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})


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


class Readable(Protocol):
    """A response whose body is still to be read."""

    @property
    def content(self) -> StreamReader: ...
    @property
    def content_length(self) -> int | None: ...


async def read_bounded(response: Readable, most: int) -> bytes:
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


class TimedHandler(ResponseHandler):
    """Notes when data came in: a busy event loop reads the answer only later."""

    received_at = 0.0

    def data_received(self, data: bytes) -> None:
        self.received_at = perf_counter()
        super().data_received(data)


class PoolConnector(TCPConnector):
    """Makes connections that note the time; knows the servers it makes them to."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)  # pyright: ignore[reportUnknownMemberType] - aiohttp leaves a part untyped
        self._factory = partial(TimedHandler, loop=asyncio.get_running_loop())
        self._servers: dict[tuple[str, str | None, int | None], ClientRequest] = {}

    def request_to(self, address: URL) -> ClientRequest:
        """A request that stands for all to the same server where a connection is asked for."""
        key = (address.scheme, address.raw_host, address.port)
        request = self._servers.get(key)
        if request is None:
            if len(self._servers) >= _MOST_SERVERS:
                self._servers.clear()
            request = self._servers[key] = ClientRequest("POST", address.origin(), loop=self._loop)
        return request


class BoundedResponse(ClientResponse):
    """For plugins too no redirect is followed, and ``read``, ``text`` and ``json`` stop at the limit."""

    _handler: TimedHandler | None = None
    sent_at = 0.0
    """When its request was sent, by ``perf_counter``; 0 where a connection had to be made for it first."""

    @property
    def received_at(self) -> float:
        """When the last of it came in, by ``perf_counter``."""
        return self._handler.received_at if self._handler is not None else 0.0

    async def start(self, connection: Connection) -> ClientResponse:
        if isinstance(connection.protocol, TimedHandler):
            self._handler = connection.protocol
            # The request has just been written. A connection that has carried data before was there already.
            self.sent_at = perf_counter() if self._handler.received_at else 0.0
        await super().start(connection)
        if self.status in REDIRECTS:
            raise Redirected(self.status)
        return self

    async def read(self) -> bytes:
        if self._body is None:
            self._body = await read_bounded(self, _LARGEST_ANSWER)
            self.release()
        return self._body


class HttpPool:
    """The clients of all sessions. Close it in the loop it was used in, or use it with ``async with``.

    ``address_check`` sees every IP address just before a connection to it is opened, after name resolution
    and for literal addresses alike; what it raises ends the call. Without one, the addresses under which
    clouds hand out the keys of a machine are refused. ``proxies`` go by the environment's settings.
    """

    def __init__(
        self, *, limit: int = _CONNECTIONS, address_check: AddressCheck | None = None, proxies: bool = False
    ) -> None:
        self._limit = limit
        self._proxies = proxies
        self._check = address_check or no_metadata()
        self._clients: dict[asyncio.AbstractEventLoop, ClientSession] = {}

    async def __aenter__(self) -> HttpPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def client(self) -> ClientSession:
        """The running loop's client, opened when first asked for."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None or client.closed:
            self._clients = {known: c for known, c in self._clients.items() if not known.is_closed()}
            client = self._clients[loop] = self._open()
        return client

    async def close(self) -> None:
        """Close the running loop's client; asking for it again opens a new one."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _open(self) -> ClientSession:
        return ClientSession(
            connector=PoolConnector(
                limit=self._limit,
                keepalive_timeout=_IDLE_SECONDS,
                socket_factory=_checked(self._check),
            ),
            cookie_jar=DummyCookieJar(),
            trust_env=self._proxies,
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
