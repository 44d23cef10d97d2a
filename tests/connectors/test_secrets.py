"""References are looked up at use; what they stand for is never shown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer
from tests.support.sessions import ask, connector_of, session_of

from evalstudio.base.addresses import shown_address
from evalstudio.connectors.contract import ConnectorContext, ConnectorError
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool

KEY = 'sk-"very"-secret-0123456789'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", KEY + "\n")


async def failure(session: Any) -> str:
    with pytest.raises(ConnectorError) as caught:
        await ask(session)
    return str(caught.value)


async def test_references_in_headers_and_address_are_looked_up_at_use(
    pool: HttpPool, agent: AgentServer, monkeypatch: pytest.MonkeyPatch
):
    session = session_of(
        http_agent,
        pool,
        url="${AGENT_URL}/chat",
        headers={"Authorization": "Bearer ${AGENT_KEY}"},
        extra_headers={"X-Also": "${AGENT_KEY}"},
    )
    monkeypatch.setenv("AGENT_URL", agent.url)
    await ask(session)
    assert agent.last.headers["authorization"] == f"Bearer {KEY}"
    assert agent.last.headers["x-also"] == KEY
    assert agent.last.path == "/chat"


@pytest.mark.parametrize("value", [None, "", "  "])
async def test_a_missing_variable_is_named(
    pool: HttpPool, monkeypatch: pytest.MonkeyPatch, value: str | None
):
    if value is not None:
        monkeypatch.setenv("NO_KEY", value)
    session = session_of(http_agent, pool, url="http://127.0.0.1", headers={"X-Key": "${NO_KEY}"})
    assert "the header X-Key refers to the environment variable NO_KEY" in await failure(session)
    session = session_of(http_agent, pool, url="http://${NO_KEY}/")
    assert "baseUrl refers to the environment variable NO_KEY" in await failure(session)


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_an_agent_that_echoes_the_key_does_not_reveal_it(
    pool: HttpPool, agent: AgentServer, status: int
):
    agent.answers = lambda seen: Answer(
        status=status, json={"bad key": seen.headers["authorization"], "pad": "x" * 270, "again": KEY}
    )
    session = session_of(http_agent, pool, url=agent.url, headers={"Authorization": "Bearer ${AGENT_KEY}"})
    message = await failure(session)
    assert "***" in message
    assert "secret" not in message


async def test_a_key_cut_by_the_excerpts_end_is_not_shown_in_part(pool: HttpPool, agent: AgentServer):
    for pad in range(260, 300, 3):
        agent.answers = Answer(status=400, body=b"y" * pad + KEY.encode())
        session = session_of(http_agent, pool, url=agent.url, headers={"X-Key": KEY})
        assert "sk-" not in await failure(session)


async def test_html_and_broken_json_with_the_key_do_not_reveal_it(pool: HttpPool, agent: AgentServer):
    for body in (f"<html><body>{KEY}</body></html>", f"{{{KEY}"):
        agent.answers = Answer(body=body.encode())
        session = session_of(http_agent, pool, url=agent.url, headers={"X-Key": KEY})
        assert "secret" not in await failure(session)


async def test_an_answer_of_the_wrong_shape_with_the_key_does_not_reveal_it(
    pool: HttpPool, agent: AgentServer
):
    agent.answers = Answer(json={"you sent": KEY})
    session = session_of(http_agent, pool, url=agent.url, headers={"X-Key": KEY})
    message = await failure(session)
    assert "wrong shape" in message
    assert "secret" not in message


async def test_what_a_plugin_raises_with_the_key_does_not_reveal_it(pool: HttpPool):
    async def leaky(ctx: ConnectorContext[Any]) -> str:
        raise ValueError(f"could not log in with {ctx.headers['Authorization']} at {ctx.connector.base_url}")

    session = session_of(
        connector_of(leaky),
        pool,
        url="http://me:hunter22@127.0.0.1/?token=tok-998877",
        headers={"Authorization": "Bearer ${AGENT_KEY}"},
    )
    with pytest.raises(ConnectorError) as caught:
        await session.invoke([], [])
    kept = f"{caught.value}\n{caught.value.traceback}".replace("test_secrets.py", "this file")
    assert kept.count("could not log in with") >= 2
    for secret in ("secret", "hunter22", "tok-998877"):
        assert secret not in kept


async def test_an_address_from_the_environment_is_shown_as_its_reference(
    pool: HttpPool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_URL", "http://user:pass-word@127.0.0.1:9")
    message = await failure(session_of(http_agent, pool, {"path": "chat"}, url="${AGENT_URL}"))
    assert "${AGENT_URL}/chat refused the connection" in message
    assert "127.0.0.1" not in message
    assert "pass-word" not in message


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://a.example/x?key=1#f", "http://a.example/x"),
        ("https://u:p@a.example:8443/x", "https://a.example:8443/x"),
        ("${URL}", "${URL}"),
        ("http://u:p%40@a/@b", "http://a/@b"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_credentials_and_query(address: str, shown: str):
    assert shown_address(address) == shown


async def test_a_header_with_a_line_break_is_refused(pool: HttpPool, agent: AgentServer):
    message = await failure(session_of(http_agent, pool, url=agent.url, headers={"X-A": "a\r\nX-B: b"}))
    assert "could not be asked" in message
    assert agent.requests == []
