"""Agents on a cassette: replies, errors, set-up and end state come back without any agent."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_server import DROP, HTML, AgentServer, Answer, Recorded, says
from tests.support.sessions import QUICK, settings_of, talk, user

from evalstudio.cassettes import Cassette, CassetteError, CassetteMiss
from evalstudio.connectors.cassette_session import CassetteSession, Session, open_session
from evalstudio.connectors.contract import (
    ConnectorContext,
    ConnectorDefinition,
    ConnectorError,
    ConnectorResponse,
    RunInfo,
    define_connector,
)
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.session import AgentSession
from evalstudio.messages import Message

CLOSED = HttpPool()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassette.jsonl"


def opened(
    cassette: Cassette | None,
    url: str,
    pool: HttpPool = CLOSED,
    *,
    definition: ConnectorDefinition = http_agent,
    config: Mapping[str, Any] | None = None,
    run_key: str = "",
    persona: Mapping[str, str] | None = None,
    run: RunInfo | None = None,
    **where: Any,
) -> Session:
    return open_session(
        definition,
        settings_of(definition, config, url=url, **where),
        pool=pool,
        run=run or RunInfo(id="run-1"),
        extra_headers=persona,
        policy=QUICK,
        cassette=cassette,
        run_key=run_key,
    )


def text_in(path: Path) -> str:
    return path.read_text()


def booking(request: Recorded) -> Answer:
    if len(request.body["messages"]) == 1:
        call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"to":"Bern"}'}}
        messages = [
            {"role": "assistant", "content": None, "tool_calls": [call], "id": "m1"},
            {"role": "tool", "content": "2 flights", "tool_call_id": "c1"},
            {"role": "assistant", "content": "Two flights: Grüße 🎉", "id": "m2", "score": 0.5},
        ]
        return Answer(json={"messages": messages, "threadId": "t-1", "usage": {"input": 5, "output": 6}})
    return says("Booked.", threadId="t-1")


async def test_without_a_cassette_it_is_the_plain_session() -> None:
    assert isinstance(opened(None, "http://127.0.0.1:1"), AgentSession)


async def test_a_conversation_is_played_back_as_it_was_with_the_server_gone(
    path: Path, pool: HttpPool
) -> None:
    async with AgentServer(booking) as server:
        with Cassette.record(path) as cassette:
            session = opened(cassette, server.url, pool)
            assert isinstance(session, CassetteSession)
            assert session.live is not None
            recorded = await talk(session, "To Bern", "The first")  # pyright: ignore[reportArgumentType]
    for number in range(2):
        run = RunInfo(id=f"another-{number}")
        again = opened(Cassette.replay(path), server.url, run=run)
        assert isinstance(again, CassetteSession)
        assert again.live is None
        await again.setup()
        assert await talk(again, "To Bern", "The first") == recorded  # pyright: ignore[reportArgumentType]
        assert await again.state() is None
        assert (run.thread_id, run.turn, run.thread_message_count) == ("t-1", 3, 6)
    assert recorded[1][0].tokens_usage is not None
    assert recorded[1][0].messages[2].model_extra == {"score": 0.5}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=500, json={"detail": "boom"}),
        Answer(status=404),
        HTML,
        DROP,
        Answer(json={"messages": []}),
    ],
)
async def test_an_error_is_played_back_as_that_error(path: Path, pool: HttpPool, answer: Answer) -> None:
    said = [user("Hi")]
    async with AgentServer(answer) as server:
        with Cassette.record(path) as cassette, pytest.raises(ConnectorError) as first:
            await opened(cassette, server.url, pool).invoke(said, said)
    with pytest.raises(ConnectorError) as second:
        await opened(Cassette.replay(path), server.url).invoke(said, said)
    assert str(second.value) == str(first.value)
    assert (second.value.again, second.value.retry_after) == (first.value.again, first.value.retry_after)


def hooked() -> tuple[ConnectorDefinition, list[str]]:
    called: list[str] = []

    @define_connector(type="hooked")
    async def agent(ctx: ConnectorContext[Any]) -> ConnectorResponse:
        called.append("invoke")
        return ConnectorResponse([{"role": "assistant", "content": "Done."}], metadata={"odd": "x"})

    @agent.setup
    async def prepare(ctx: ConnectorContext[Any]) -> None:
        called.append("setup")

    @agent.state
    async def state(ctx: ConnectorContext[Any]) -> dict[str, Any]:
        called.append("state")
        return {"orders": [{"id": 7}], "run": called.count("state")}

    return agent, called


async def test_set_up_and_end_state_are_played_back_without_their_hooks(path: Path, pool: HttpPool) -> None:
    definition, called = hooked()

    async def whole(session: Session) -> dict[str, Any] | None:
        await session.setup()
        await talk(session, "Order it")  # pyright: ignore[reportArgumentType]
        return await session.state()

    with Cassette.record(path) as cassette:
        states = [await whole(opened(cassette, "", pool, definition=definition)) for _ in range(2)]
    calls = list(called)
    cassette = Cassette.replay(path)
    assert [await whole(opened(cassette, "", definition=definition)) for _ in range(2)] == states
    assert [state and state["run"] for state in states] == [1, 2]
    assert called == calls


async def test_a_failing_set_up_fails_again(path: Path, pool: HttpPool) -> None:
    definition, _ = hooked()

    @definition.setup
    async def broken(ctx: ConnectorContext[Any]) -> None:
        raise ConnectorError("the sandbox is down")

    with Cassette.record(path) as cassette, pytest.raises(ConnectorError):
        await opened(cassette, "", pool, definition=definition).setup()
    with pytest.raises(ConnectorError, match='Connector "hooked": the sandbox is down'):
        await opened(Cassette.replay(path), "", definition=definition).setup()
    assert broken is definition.setup_hook


async def test_ids_headers_and_limits_are_not_part_of_a_call(path: Path, pool: HttpPool) -> None:
    async with AgentServer() as server:
        with Cassette.record(path) as cassette:
            said = [Message(role="user", content="Hi", id="u-1")]
            session = opened(
                cassette, server.url, pool, headers={"X-Trace": "1"}, config={"timeoutSeconds": 9}
            )
            first = await session.invoke(said, said)
    said = [Message(role="user", content="Hi", id="u-2")]
    session = opened(Cassette.replay(path), f"{server.url}?key=9", persona={"X-Trace": "2"})
    assert await session.invoke(said, said) == first


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"config": {"path": "/other"}}, "config.path: asked"),
        ({"url": "http://elsewhere:1"}, 'baseUrl: asked "http://elsewhere:1"'),
        ({"text": "Hello there!"}, 'newMessages[0].content: asked "Hello there!", recorded "Hello you!"'),
    ],
)
async def test_a_miss_is_told_with_the_nearest_call(
    path: Path, pool: HttpPool, change: dict[str, Any], where: str
) -> None:
    async with AgentServer() as server:
        with Cassette.record(path) as cassette:
            said = [user("Hello you!")]
            await opened(cassette, server.url, pool).invoke(said, said)
    said = [user(change.get("text", "Hello you!"))]
    session = opened(Cassette.replay(path), change.get("url", server.url), config=change.get("config"))
    with pytest.raises(CassetteMiss) as caught:
        await session.invoke(said, said)
    assert f"{path} holds no answer to this agent request: invoke of http, last said" in str(caught.value)
    assert where in str(caught.value)


async def test_personas_that_say_the_same_get_their_own_answers_back(path: Path, pool: HttpPool) -> None:
    def balance(request: Recorded) -> Answer:
        return says(f"Yours is {request.headers['x-user']}")

    async def ask(cassette: Cassette, url: str, who: str) -> str:
        session = opened(cassette, url, pool, run_key=who, persona={"X-User": who})
        said = [user("My balance?")]
        return (await session.invoke(said, said)).messages[0].text

    names = [f"user-{number:02}" for number in range(20)]
    async with AgentServer(balance) as server:
        with Cassette.record(path) as cassette:
            heard = await asyncio.gather(*(ask(cassette, server.url, who) for who in names))
    cassette = Cassette.replay(path)
    again = await asyncio.gather(*(ask(cassette, server.url, who) for who in reversed(names)))
    assert list(again) == list(reversed(heard))
    assert len(set(again)) == 20


async def test_secrets_never_reach_the_file_and_the_conversation_goes_on(
    path: Path, pool: HttpPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "BEARER": "bearer-secret-1",
        "TENANT": "tenant-secret-2",
        "literal": "literal-secret-3",
        "config": "config-secret-4",
        "password": "url-secret-5",
        "query": "query-secret-6",
        "session": "session-secret-7",
        "basic": b64encode(b"me:url-secret-5").decode(),
    }
    monkeypatch.setenv("BEARER", secrets["BEARER"])
    monkeypatch.setenv("TENANT", secrets["TENANT"])
    headers = {"X-Auth-Token": "Bearer ${BEARER}", "X-Tenant": "${TENANT}", "X-Api-Key": secrets["literal"]}
    headers["X-Session"] = secrets["session"]

    answered: list[str] = []

    def echo(request: Recorded) -> Answer:
        held = [*request.headers.values(), *request.query.values(), str(request.body["messages"][0])]
        answered.append(f"I see {held} {secrets['password']} {secrets['config']}")
        return says(answered[-1])

    body = {"messages": "{{messages}}", "auth": {"accessToken": secrets["config"]}}
    given: dict[str, Any] = {"config": {"requestTemplate": body}, "headers": headers}
    async with AgentServer(echo) as server:
        url = f"{server.url.replace('//', '//me:' + secrets['password'] + '@')}?k={secrets['query']}"
        with Cassette.record(path) as cassette:
            _, live = await talk(opened(cassette, url, pool, **given), "Hi", "Again")  # pyright: ignore[reportArgumentType]
    assert all(secret in answered[0] for secret in secrets.values())
    # A part of the query that is not named like a secret is none in an answer, and still not recorded.
    assert [name for name, secret in secrets.items() if secret in live[0].messages[0].text] == ["query"]
    assert not [secret for secret in (*secrets.values(), "X-Auth", "accessToken") if secret in text_in(path)]
    for name in ("BEARER", "TENANT"):
        monkeypatch.delenv(name)
    _, replies = await talk(opened(Cassette.replay(path), url, **given), "Hi", "Again")  # pyright: ignore[reportArgumentType]
    assert [reply.messages[0].text.startswith("I see [") for reply in replies] == [True, True]
    assert "***" in replies[0].messages[0].text


async def test_a_missing_usage_is_played_back_with_its_reason(path: Path, pool: HttpPool) -> None:
    said = [user("Hi")]
    async with AgentServer(says("Ok", usage={"input_tokens": -1})) as server:
        with Cassette.record(path) as cassette:
            recorded = await opened(cassette, server.url, pool).invoke(said, said)
    again = await opened(Cassette.replay(path), server.url).invoke(said, said)
    assert again.usage_missing == recorded.usage_missing == "input_tokens is not a number of tokens: -1"


async def test_a_recorded_answer_that_is_empty_or_unreadable_is_refused(path: Path, pool: HttpPool) -> None:
    said = [user("Hi")]
    async with AgentServer(says("Hello!")) as server:
        with Cassette.record(path) as cassette:
            await opened(cassette, server.url, pool).invoke(said, said)
    whole = text_in(path)
    path.write_text(whole.replace('"Hello!"', '" "'))
    with pytest.raises(ConnectorError, match="neither text nor a tool call"):
        await opened(Cassette.replay(path), server.url).invoke(said, said)
    config = {"allowEmpty": True}
    assert (await opened(Cassette.replay(path), server.url, config=config).invoke(said, said)).messages
    path.write_text(whole.replace('"Hello!"', '[{"type":"tool_use"}]'))
    with pytest.raises(CassetteError, match="a tool call without the name of its tool"):
        await opened(Cassette.replay(path), server.url).invoke(said, said)


async def test_a_recorded_answer_broken_by_hand_is_told(path: Path, pool: HttpPool) -> None:
    said = [user("Hi")]
    async with AgentServer() as server:
        with Cassette.record(path) as cassette:
            await opened(cassette, server.url, pool).invoke(said, said)
    path.write_text(text_in(path).replace('"latencyMs":', '"took":'))
    with pytest.raises(CassetteError, match=r"cassette\.jsonl cannot be used"):
        await opened(Cassette.replay(path), server.url).invoke(said, said)


async def test_a_cancelled_call_leaves_nothing_on_the_cassette(path: Path, pool: HttpPool) -> None:
    said = [user("Hi")]
    async with AgentServer(Answer(delay=60)) as server:
        with Cassette.record(path) as cassette:
            call = asyncio.create_task(opened(cassette, server.url, pool).invoke(said, said))
            await asyncio.sleep(0.1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert text_in(path) == ""
