"""Each request to an agent has a key: the same when a call is sent again, another for every other call."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer, says
from tests.support.sessions import session_of, user

from evalstudio.connectors.contract import ConnectorContext, ConnectorError, RunInfo, define_connector
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.langgraph import langgraph_agent
from evalstudio.connectors.openai import openai_agent

KEY = "idempotency-key"
BUSY = Answer(json={}, status=503, headers={"Retry-After": "0"})
COMPLETION = Answer(json={"choices": [{"message": {"role": "assistant", "content": "Hi"}}]})


def keys(server: AgentServer) -> list[str]:
    return [request.headers[KEY] for request in server.requests]


CONNECTORS: list[Any] = [
    (http_agent, {"responsePath": "message"}, says("Hi")),
    (openai_agent, {"model": "m"}, COMPLETION),
]


@pytest.mark.parametrize(("definition", "config", "answer"), CONNECTORS, ids=["http", "openai"])
async def test_a_call_that_is_sent_again_has_the_same_key(
    definition: Any, config: Any, answer: Answer
) -> None:
    async with HttpPool() as pool, AgentServer([BUSY, BUSY, answer]) as server:
        session = session_of(definition, pool, config, url=server.url)
        await session.invoke([user("hi")], [user("hi")])
        await session.invoke([user("hi")], [user("hi")])
        other = session_of(definition, pool, config, url=server.url, run=RunInfo(id="run-1-2"))
        await other.invoke([user("hi")], [user("hi")])
        first, second, third, next_turn, next_attempt = keys(server)
    assert first == second == third
    assert len({first, next_turn, next_attempt}) == 3


async def test_a_call_of_several_requests_has_a_key_for_each() -> None:
    state = {"messages": [{"type": "ai", "id": "a1", "content": "Hi"}]}
    answers = [Answer(json={"thread_id": "t1"}), BUSY, Answer(json=state)]
    async with HttpPool() as pool, AgentServer(answers) as server:
        session = session_of(langgraph_agent, pool, url=server.url)
        await session.setup()
        await session.invoke([user("hi")], [user("hi")])
        thread, run, run_again = keys(server)
    assert run == run_again
    assert thread != run


async def test_a_header_of_ones_own_is_sent_in_its_place() -> None:
    async with HttpPool() as pool, AgentServer() as server:
        headers = {"idempotency-key": "mine"}
        session = session_of(http_agent, pool, {"responsePath": "message"}, url=server.url, headers=headers)
        await session.invoke([user("hi")], [user("hi")])
        assert keys(server) == ["mine"]


async def test_a_connector_of_ones_own_sees_the_key_of_its_call() -> None:
    seen: list[str] = []

    @define_connector("flaky")
    def flaky(ctx: ConnectorContext[Any]) -> str:
        seen.append(ctx.idempotency_key)
        if len(seen) == 1:
            raise ConnectorError("busy", again=True)
        return "Hi"

    async with HttpPool() as pool:
        session = session_of(flaky, pool)
        await session.invoke([user("hi")], [user("hi")])
        await session.invoke([user("hi")], [user("hi")])
    assert seen[0] == seen[1] != seen[2]
