"""The pooled client: one per loop, no cookies, no proxies, no redirects, and a say in where it connects."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

import pytest
from aiohttp import ClientError
from tests.support.agent_server import HUGE, AgentServer, Answer, says
from tests.support.sessions import ask, connector_of, session_of

from evalstudio.connectors.contract import ConnectorContext, ConnectorError
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool


def no_loopback(address: str) -> None:
    if ipaddress.ip_address(address).is_loopback:
        raise ValueError(f"{address} is a private address")


async def test_one_client_serves_a_loop_until_it_is_closed(pool: HttpPool):
    first = pool.client()
    assert pool.client() is first
    await pool.close()
    assert first.closed
    await pool.close()
    assert pool.client() is not first


def test_every_loop_has_a_client_of_its_own():
    pool = HttpPool()

    async def use() -> int:
        client = pool.client()
        await pool.close()
        return id(client.connector) if client.connector else 0

    asyncio.run(use())
    asyncio.run(use())


async def test_connections_are_kept_and_bounded(agent: AgentServer):
    agent.answers = lambda _: Answer(json={"message": "ok"}, delay=0.01)
    async with HttpPool(limit=3) as pool:
        await asyncio.gather(*(ask(session_of(http_agent, pool, url=agent.url)) for _ in range(30)))
    assert len(agent.requests) == 30
    assert agent.peers <= 3


async def test_cookies_belong_to_one_run(pool: HttpPool, agent: AgentServer):
    agent.answers = lambda seen: Answer(
        json={"message": "ok"}, headers={"Set-Cookie": f"session={len(agent.requests)}; Path=/"}
    )
    one, other = (session_of(http_agent, pool, url=agent.url) for _ in range(2))
    for session in (one, other, one, other, one):
        await ask(session)
    cookies = [request.headers.get("cookie") for request in agent.requests]
    assert cookies == [None, None, "session=1", "session=2", "session=3"]


async def test_the_client_of_plugins_keeps_no_cookies(pool: HttpPool, agent: AgentServer):
    agent.answers = Answer(json={"message": "ok"}, headers={"Set-Cookie": "session=abc; Path=/"})

    async def plugin(ctx: ConnectorContext[Any]) -> Any:
        async with ctx.http.get(ctx.connector.base_url) as response:
            return (await response.json())["message"]

    session = session_of(connector_of(plugin), pool, url=agent.url)
    await ask(session)
    await ask(session)
    assert "cookie" not in agent.last.headers


async def test_proxy_settings_of_the_environment_are_ignored(
    pool: HttpPool, agent: AgentServer, monkeypatch: pytest.MonkeyPatch
):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await ask(session_of(http_agent, pool, url=agent.url))).messages[0].text == "Hello!"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_address_check_sees_literal_and_resolved_addresses(agent: AgentServer, host: str):
    url = agent.url.replace("127.0.0.1", host)
    seen: list[str] = []
    async with HttpPool(address_check=seen.append) as pool:
        assert (await ask(session_of(http_agent, pool, url=url))).messages[0].text == "Hello!"
    assert "127.0.0.1" in seen
    async with HttpPool(address_check=no_loopback) as pool:
        with pytest.raises(ConnectorError, match=r"may not be called: .*is a private address"):
            await ask(session_of(http_agent, pool, url=url))
    assert len(agent.requests) == 1


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0x7f000001", "[::ffff:127.0.0.1]"])
async def test_other_spellings_of_an_address_do_not_slip_past_the_check(agent: AgentServer, host: str):
    def refuse_all(address: str) -> None:
        raise ValueError(f"{address} is not allowed")

    async with HttpPool(address_check=refuse_all) as pool:
        with pytest.raises(ConnectorError):
            await ask(session_of(http_agent, pool, url=agent.url.replace("127.0.0.1", host)))
    assert agent.requests == []


async def test_a_refused_address_is_not_tried_again(agent: AgentServer):
    seen: list[str] = []

    def refuse(address: str) -> None:
        seen.append(address)
        raise PermissionError

    async with HttpPool(address_check=refuse) as pool:
        with pytest.raises(ConnectorError, match="this address is not allowed"):
            await ask(session_of(http_agent, pool, url=agent.url))
    assert seen == ["127.0.0.1"]


async def test_plugins_get_the_same_client_which_follows_no_redirect(pool: HttpPool, agent: AgentServer):
    agent.answers = [Answer(status=307, headers={"Location": "/secret"}), says("moved")]

    async def plugin(ctx: ConnectorContext[Any]) -> str:
        async with ctx.http.post(ctx.connector.base_url, headers=ctx.headers, json={}) as response:
            return await response.text()

    session = session_of(connector_of(plugin), pool, url=agent.url, headers={"X-Key": "abc123"})
    with pytest.raises(ConnectorError, match=r"a redirect \(307\), which is not followed"):
        await ask(session)
    assert [request.path for request in agent.requests] == ["/"]


async def test_plugins_read_bounded_answers_too(pool: HttpPool, agent: AgentServer):
    agent.answers = HUGE

    async def plugin(ctx: ConnectorContext[Any]) -> Any:
        async with ctx.http.get(ctx.connector.base_url) as response:
            return await response.json()

    with pytest.raises(ConnectorError, match="sent more than 10,000,000 bytes"):
        await ask(session_of(connector_of(plugin), pool, url=agent.url))


async def test_plugins_may_read_an_answer_twice(pool: HttpPool, agent: AgentServer):
    async def plugin(ctx: ConnectorContext[Any]) -> Any:
        async with ctx.http.get(ctx.connector.base_url) as response:
            await response.read()
            return (await response.json())["message"]

    assert (await ask(session_of(connector_of(plugin), pool, url=agent.url))).messages[0].text == "Hello!"


@pytest.mark.parametrize(("status", "tries"), [(503, 1), (429, 3), (422, 1)])
async def test_what_plugins_let_fly_is_understood_and_retried_alike(
    pool: HttpPool, agent: AgentServer, status: int, tries: int
):
    agent.answers = Answer(status=status, json={})

    async def plugin(ctx: ConnectorContext[Any]) -> Any:
        async with ctx.http.get(ctx.connector.base_url) as response:
            response.raise_for_status()

    with pytest.raises(ConnectorError, match=rf"\({status}\)"):
        await ask(session_of(connector_of(plugin), pool, url=agent.url))
    assert len(agent.requests) == tries


async def test_a_closed_pool_opens_again_for_a_session_that_goes_on(agent: AgentServer):
    pool = HttpPool()
    session = session_of(http_agent, pool, url=agent.url)
    await ask(session)
    await pool.close()
    await ask(session)
    await pool.close()
    assert len(agent.requests) == 2


def test_its_errors_are_client_errors():
    from evalstudio.connectors.http_client import AnswerTooLarge, Redirected

    assert issubclass(AnswerTooLarge, ClientError)
    assert issubclass(Redirected, ClientError)
