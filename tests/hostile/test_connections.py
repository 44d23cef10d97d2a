"""Callers without a token who are slow, silent or many, and requests that are not what they seem."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.api_server import Api, serving

from evalstudio.server import connections
from evalstudio.server.policy import policy_for

LINE = b"GET /api/health HTTP/1.1\r\n"


def port_of(api: Api) -> int:
    return int(api.url.rpartition(":")[2])


async def connected(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port_of(api))


async def raw(api: Api, request: bytes) -> bytes:
    reader, writer = await connected(api)
    try:
        writer.write(request)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.4)
    monkeypatch.setattr(connections, "SILENT_BODY_SECONDS", 0.4)
    monkeypatch.setattr(connections, "BODY_SECONDS", 1.0)
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.4)
    monkeypatch.setattr(connections, "_GRACE_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
class TestSlowCallers:
    async def test_a_caller_who_says_nothing_is_let_go(self, guarded: Api) -> None:
        reader, writer = await connected(guarded)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()

    async def test_headers_that_trickle_in_are_not_waited_for(self, guarded: Api) -> None:
        reader, writer = await connected(guarded)
        writer.write(LINE + b"Host: localhost\r\n")
        answer = asyncio.ensure_future(reader.read())
        for _ in range(40):
            if answer.done():
                break
            writer.write(b"X-A: 1\r\n")
            await asyncio.sleep(0.1)
        assert b" 408 " in (await asyncio.wait_for(answer, 1)).split(b"\r\n")[0]
        writer.close()

    @pytest.mark.parametrize("pause", [0.1, 30])
    async def test_a_body_that_trickles_in_or_stops_is_not_waited_for(
        self, guarded: Api, pause: float
    ) -> None:
        reader, writer = await connected(guarded)
        head = b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: 2000\r\n\r\n{")
        answer = asyncio.ensure_future(reader.read())

        async def trickle() -> None:
            while not answer.done():
                writer.write(b" ")
                await asyncio.sleep(pause)

        trickling = asyncio.ensure_future(trickle())
        try:
            assert b" 408 " in (await asyncio.wait_for(answer, 60)).split(b"\r\n")[0]
        finally:
            trickling.cancel()
            writer.close()

    async def test_a_body_after_the_answer_is_not_waited_for_either(self, guarded: Api) -> None:
        reader, writer = await connected(guarded)
        head = b"POST /api/personas HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: 2000\r\n\r\n{")
        async with asyncio.timeout(60):
            assert b" 401 " in (await reader.read()).split(b"\r\n")[0]
        writer.close()

    async def test_a_connection_that_is_used_properly_stays(self, guarded: Api) -> None:
        reader, writer = await connected(guarded)
        for _ in range(4):
            writer.write(LINE + b"Host: localhost\r\n\r\n")
            async with asyncio.timeout(60):
                answer = await reader.readuntil(b'{"status":"ok"}')
            assert answer.startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.3)
        writer.close()


class TestManyConnections:
    async def test_idle_ones_give_way_to_new_ones(
        self, guarded: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "most_connections", lambda: 20)
        idle = [await connected(guarded) for _ in range(60)]
        await asyncio.sleep(0.1)
        assert (await guarded("GET", "/api/health")).status == 200
        closed = [reader.at_eof() or reader.exception() is not None for reader, _ in idle]
        assert sum(closed) >= 40
        assert all(closed[:30]), "the oldest go first"
        for _, writer in idle:
            writer.close()

    async def test_streams_of_those_who_may_are_not_taken_away(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "most_connections", lambda: 5)
        async with api.http.get(f"{api.url}/api/events") as stream:
            assert stream.status == 200
            idle = [await connected(api) for _ in range(30)]
            await asyncio.sleep(0.3)
            assert not stream.content.at_eof()
            assert api.studio.hub.listeners == 1
            for _, writer in idle:
                writer.close()

    def test_there_are_never_more_than_files_can_be_opened(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import resource

        monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
        connections.most_connections.cache_clear()
        try:
            assert connections.most_connections() == 128
        finally:
            connections.most_connections.cache_clear()


class TestLoggingIn:
    async def test_a_few_kilobytes_are_enough(self, guarded: Api) -> None:
        large = b'{"token": "' + b"x" * 5000 + b'"}'
        kind = {"Content-Type": "application/json"}
        assert (await guarded("POST", "/api/session", raw=large, headers=kind)).status == 413

        async def unsized():
            for _ in range(100):
                yield b" " * 1000

        assert (await guarded("POST", "/api/session", raw=unsized(), headers=kind)).status == 413


class TestHosts:
    @pytest.mark.parametrize(
        "host",
        [
            "localhost@evil.example",
            "user@localhost",
            "user:password@localhost:3000",
            "localhost:",
            "localhost:0",
            "localhost:65536",
            "localhost:80:80",
            "localhost:http",
            "localhost:+80",
            "localhost/",
            "localhost/x",
            "localhost?",
            "localhost#",
            "localhost,evil.example",
            "localhost evil.example",
            "localhost\\evil.example",
            "localhost%2eevil.example",
            "localhost..",
            ".localhost",
            "[::1",
            "::1",
            "[::1]x",
            "[::1]:x",
            "[::1%25eth0]",
            "[localhost]",
            "[127.0.0.1]",
            "127.1",
            "0x7f.0.0.1",
            "2130706433",
        ],
    )
    async def test_anything_but_a_host_and_a_port_is_refused(self, api: Api, host: str) -> None:
        request = LINE + b"Host: " + host.encode("latin-1") + b"\r\nConnection: close\r\n\r\n"
        assert (await raw(api, request)).split(b" ")[1] in (b"403", b"400"), host

    @pytest.mark.parametrize(
        "host",
        ["localhost", "LocalHost.", "localhost:1", "127.0.0.1:65535", "[::1]", "[0:0:0:0:0:0:0:1]:3000"],
    )
    async def test_our_own_names_are_not(self, api: Api, host: str) -> None:
        request = LINE + b"Host: " + host.encode() + b"\r\nConnection: close\r\n\r\n"
        assert (await raw(api, request)).split(b" ")[1] == b"200", host

    def test_a_server_for_others_reads_them_as_strictly(self) -> None:
        policy = policy_for("0.0.0.0", "a-token-nobody-guesses-0123456789")
        assert policy.allows_host("192.168.1.4:3000")
        assert policy.allows_host("[FE80::1]")
        for host in ("192.168.1.4:99999", "a@192.168.1.4", "fe80::1", "[192.168.1.4]", "192.168.1.4:"):
            assert not policy.allows_host(host), host

    @pytest.mark.parametrize("host", [b"localhost", b"evil.example"])
    async def test_a_whole_address_in_place_of_a_path_is_refused(self, api: Api, host: bytes) -> None:
        request = (
            b"GET http://" + host + b"/api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        assert (await raw(api, request)).split(b" ")[1] == b"400"

    async def test_two_hosts_are_refused_even_if_they_agree(self, api: Api) -> None:
        request = LINE + b"Host: localhost\r\nhOST: localhost\r\nConnection: close\r\n\r\n"
        assert (await raw(api, request)).split(b" ")[1] in (b"403", b"400")


async def test_a_proxy_may_be_named_in_the_config(project: Path) -> None:
    import json

    config = json.loads(project.read_text())
    project.write_text(json.dumps({**config, "trustedProxies": ["127.0.0.1", "10.0.0.9/8"]}))
    from evalstudio.server.serving import settle_policy

    policy = settle_policy(project, "127.0.0.1", print)
    assert policy.trusted_proxies == ("127.0.0.1/32", "10.0.0.0/8")
    async with serving(project, policy=policy) as api:
        assert (await api("GET", "/api/health")).status == 200
