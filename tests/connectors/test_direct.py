"""Requests written straight to a connection: the bytes, answers and failures of the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import (
    ClientPayloadError,
    ClientResponse,
    ClientResponseError,
    ClientTimeout,
    ServerDisconnectedError,
)

from evalstudio.connectors.direct import DirectResponse, Response, send
from evalstudio.connectors.http_client import Redirected, read_bounded
from evalstudio.connectors.http_pool import HttpPool

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
TIMEOUT = ClientTimeout(total=None, sock_connect=10)


class Wire:
    """What came in, connection by connection; every request gets the next of the answers."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                writer.write(answer := self.answers.pop(0))
                if b"ontent-Length" not in answer:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(*answers: bytes) -> AsyncIterator[Wire]:
    wire = Wire(answers)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat?a=b%20c"
    async with server:
        yield wire


async def post(pool: HttpPool, url: str, headers: dict[str, str] | None = None) -> tuple[Response, bytes]:
    sent = {"Content-Type": "application/json", "X-Key": "schlüssel"} if headers is None else headers
    async with send(pool.client(), "POST", url, data=b'{"a":1}', headers=sent, timeout=TIMEOUT) as response:
        return response, await read_bounded(response, 1_000)


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "application/json", "Accept": "text/plain"}, {"User-Agent": "me"}, {}]
)
async def test_it_sends_what_the_client_would(pool: HttpPool, headers: dict[str, str]):
    async with listening(OK, OK) as wire:
        response, _ = await post(pool, wire.url, headers)
        assert isinstance(response, DirectResponse)
        client = pool.client()
        async with client.post(wire.url, data=b'{"a":1}', headers=headers, timeout=TIMEOUT) as response:
            assert await response.read() == b"{}"
    ours, theirs = wire.requests
    assert ours == theirs


async def test_a_connection_is_used_again_and_timed(pool: HttpPool):
    async with listening(OK, OK) as wire:
        first, body = await post(pool, wire.url)
        second, _ = await post(pool, wire.url)
        assert isinstance(first, DirectResponse)
        assert isinstance(second, DirectResponse)
    assert body == b"{}"
    assert first.content_type == "application/json"
    assert wire.connections == 1
    assert first.sent_at == 0
    assert 0 < second.sent_at <= second.received_at


async def test_a_connection_with_an_unread_answer_is_not_kept(pool: HttpPool):
    async with listening(OK.replace(b"Length: 2", b"Length: 20"), OK) as wire:
        async with send(pool.client(), "POST", wire.url, data=b"", headers={}, timeout=TIMEOUT) as response:
            assert response.status == 200
        await post(pool, wire.url)
    assert wire.connections == 2


async def test_what_only_announces_an_answer_is_passed_over(pool: HttpPool):
    async with listening(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK) as wire:
        response, body = await post(pool, wire.url)
    assert (response.status, body) == (200, b"{}")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", ServerDisconnectedError),
        (b"not HTTP\r\n\r\n", ClientResponseError),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", Redirected),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", ClientPayloadError),
    ],
)
async def test_failures_are_those_of_the_client(pool: HttpPool, answer: bytes, error: type[Exception]):
    async with listening(answer, OK) as wire:
        with pytest.raises(error):
            await post(pool, wire.url)
        assert (await post(pool, wire.url))[1] == b"{}"


async def test_a_line_break_in_a_header_is_refused(pool: HttpPool):
    with pytest.raises(ValueError, match="control character"):
        await post(pool, "http://127.0.0.1:1/", {"X-Key": "a\r\nHost: elsewhere"})


async def test_what_needs_the_client_goes_through_it(pool: HttpPool):
    async with listening(OK, OK) as wire:
        with_password = wire.url.replace("://", "://me:secret@")
        for url, headers in ((with_password, {}), (wire.url, {"host": "elsewhere"})):
            assert isinstance((await post(pool, url, headers))[0], ClientResponse)
    assert b"Authorization: Basic " in wire.requests[0]
    assert b"elsewhere" in wire.requests[1]
