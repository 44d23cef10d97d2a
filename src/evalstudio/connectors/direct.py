"""A request written straight to a connection of the pool.

aiohttp opens the connections, keeps them and parses what comes back. What its client does around that for
every request (cookies, redirects, proxies, payload types, a task that writes the body) takes more time than
the request itself; one that needs any of it goes through the client as before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from aiohttp import (
    ClientConnectionResetError,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    StreamReader,
)
from aiohttp.helpers import HeadersMixin
from aiohttp.http import HttpProcessingError
from yarl import URL

from .http_client import REDIRECTS, PoolConnector, Redirected, TimedHandler

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.http_parser import RawResponseMessage

# PUT is not among them: the client sends it again when a kept connection turns out to be closed.
_METHODS = frozenset({"POST", "PATCH"})
# Headers that say how the request itself is sent, which is the client's to understand.
_FRAMING = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "content-encoding", "cookie"}
)
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class DirectResponse(HeadersMixin):
    """What came back, its body still to be read from ``content``."""

    def __init__(self, url: URL, message: RawResponseMessage, content: StreamReader) -> None:
        self.url = url
        self.status = message.code
        self.headers = self._headers = message.headers
        self.content = content
        # By ``perf_counter``; 0 where a connection had to be made for it first.
        self.sent_at = 0.0
        self.handler: TimedHandler | None = None

    @property
    def received_at(self) -> float:
        """When the last of it came in, by ``perf_counter``."""
        return self.handler.received_at if self.handler is not None else 0.0


Response = DirectResponse | ClientResponse


def send(
    client: ClientSession,
    method: str,
    url: URL | str,
    *,
    data: bytes | BytesIO | None,
    headers: Mapping[str, str],
    timeout: ClientTimeout,
    auto_decompress: bool = True,
    **more: Any,
) -> AbstractAsyncContextManager[Response]:
    """Send a request and open its response; ``more`` is what only the client knows how to send."""
    if isinstance(data, bytes) and method in _METHODS and not any(more.values()):
        address = _plain_address(client, url)
        if address is not None and _FRAMING.isdisjoint(map(str.lower, headers)):
            return _DirectRequest(client, method, address, data, headers, timeout, auto_decompress)
    return cast(
        AbstractAsyncContextManager[Response],
        client.request(
            method,
            url,
            data=data,
            headers=headers,
            timeout=timeout,
            auto_decompress=auto_decompress,
            allow_redirects=False,
            **more,
        ),
    )


def _plain_address(client: ClientSession, url: URL | str) -> URL | None:
    """The address, where nothing stands between us and it and no credentials are in it."""
    if client.closed or client.trust_env or not isinstance(client.connector, PoolConnector):
        return None
    try:
        address = URL(url)
    except ValueError:
        return None
    usual = address.scheme in ("http", "https") and address.raw_host
    return address if usual and address.raw_user is None and address.raw_password is None else None


class _DirectRequest:
    """Entered, it is sent and its response has begun; left, its connection is free or closed."""

    __slots__ = ("_address", "_auto_decompress", "_client", "_connection", "_head", "_raw", "_timeout")

    def __init__(
        self,
        client: ClientSession,
        method: str,
        address: URL,
        body: bytes,
        headers: Mapping[str, str],
        timeout: ClientTimeout,
        auto_decompress: bool,
    ) -> None:
        self._client = client
        self._address = address
        self._raw = _head(client, method, address, headers, len(body)) + body
        self._timeout = timeout
        self._auto_decompress = auto_decompress
        self._connection: Connection | None = None

    async def __aenter__(self) -> DirectResponse:
        connector = cast(PoolConnector, self._client.connector)
        request = connector.request_to(self._address)
        try:
            self._connection = await connector.connect(request, [], self._timeout)
        except TimeoutError as error:
            raise ConnectionTimeoutError(f"Connection timeout to host {self._address}") from error
        except OSError as error:
            raise _client_error(error) from error
        try:
            return await self._begin(self._connection, request)
        except BaseException:
            self._connection.close()
            raise

    async def __aexit__(self, *_: object) -> None:
        # A connection whose response was not read to its end is closed by this, not kept.
        if self._connection is not None:
            self._connection.release()

    async def _begin(self, connection: Connection, request: ClientRequest) -> DirectResponse:
        handler = cast(TimedHandler, connection.protocol)
        handler.set_response_params(read_until_eof=True, auto_decompress=self._auto_decompress)
        transport = handler.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError("Cannot write to closing transport")
        # A connection that has carried data before was there already.
        known = bool(handler.received_at)
        transport.write(self._raw)
        sent_at = perf_counter() if known else 0.0
        response = DirectResponse(self._address, *await _answer(handler, request))
        response.handler, response.sent_at = handler, sent_at
        if response.status in REDIRECTS:
            raise Redirected(response.status)
        return response


async def _answer(handler: TimedHandler, request: ClientRequest) -> tuple[RawResponseMessage, StreamReader]:
    """The response's head and body; what only says that there will be one is passed over."""
    while True:
        try:
            message, content = await handler.read()
        except HttpProcessingError as error:
            raise ClientResponseError(
                request.request_info, (), status=error.code, message=error.message, headers=error.headers
            ) from error
        if message.code < 100 or message.code > 199 or message.code == 101:
            return message, content


def _client_error(error: OSError) -> Exception:
    from aiohttp import ClientError

    return error if isinstance(error, ClientError) else ClientOSError(*error.args)


def _head(client: ClientSession, method: str, address: URL, headers: Mapping[str, str], size: int) -> bytes:
    """The head of a request, as the client would write it."""
    fields = client.headers.copy()
    fields.update(headers)
    lines = [f"{method} {address.raw_path_qs} HTTP/1.1", f"Host: {address.host_port_subcomponent}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    if "Accept" not in fields:
        lines.append("Accept: */*")
    lines.append(f"Content-Length: {size}")
    if "Content-Type" not in fields:
        lines.append("Content-Type: application/octet-stream")
    if any(map(_FORBIDDEN.search, lines)):
        raise ValueError(
            "Forbidden control character detected in headers. Potential header injection attack."
        )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
