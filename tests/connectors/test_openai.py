"""The ``openai`` connector: chat completions of any server that speaks them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer
from tests.support.model_server import ModelServer, Reply, refusal
from tests.support.sessions import ask, session_of, settings_of, talk, user

from evalstudio.base.problems import InvalidInput
from evalstudio.connectors.contract import ConnectorError
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.openai import openai_agent
from evalstudio.messages import Message, TokensUsage

MODEL = {"model": "m-1"}


def completion(**message: Any) -> Answer:
    return Answer(json={"choices": [{"message": message, "finish_reason": "stop"}]})


async def test_a_conversation_with_a_compatible_server(pool: HttpPool):
    async with ModelServer(Reply(text="Hello.", tokens=(7, 3))) as server:
        session = session_of(
            openai_agent, pool, MODEL, url=server.url, headers={"Authorization": "Bearer key-1"}
        )
        _, (first, _) = await talk(session, "Hi", "And?")
        assert server.requests[1].texts == ["Hi", "Hello.", "And?"]
        assert server.requests[0].headers["authorization"] == "Bearer key-1"
    assert first.messages[0].text == "Hello."
    assert first.tokens_usage == TokensUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    assert first.metadata == {"responseId": "reply-1", "model": "m-1", "finishReason": "stop"}


async def test_tool_calls_are_kept_in_openais_shape(pool: HttpPool):
    tools = [{"type": "function", "function": {"name": "find", "parameters": {}}}]
    async with ModelServer(Reply(tool={"id": 42})) as server:
        config = MODEL | {"extraBody": {"tools": tools}}
        reply = await ask(session_of(openai_agent, pool, config, url=server.url))
    assert reply.messages[0].tool_calls is not None
    (call,) = reply.messages[0].tool_calls
    assert (call.id, call.name, call.arguments()) == ("call-1", "find", {"id": 42})


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/openai/v1", "/openai/v1/chat/completions"),
        ("/proxy", "/proxy/v1/chat/completions"),
        ("/v1beta/openai/", "/v1beta/openai/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/deployments/x/chat/completions?api-version=1", "/deployments/x/chat/completions"),
    ],
)
async def test_the_address_may_name_the_server_the_version_or_the_endpoint(
    pool: HttpPool, agent: AgentServer, base: str, path: str
):
    agent.answers = completion(content="ok")
    await ask(session_of(openai_agent, pool, MODEL, url=agent.url + base))
    assert agent.last.path == path
    assert agent.last.query == ({"api-version": "1"} if "?" in base else {})


async def test_the_request_holds_what_is_configured_and_nothing_else(pool: HttpPool, agent: AgentServer):
    agent.answers = completion(role="assistant", content="ok")
    config = MODEL | {"temperature": 0, "maxTokens": 9, "systemPrompt": "Be brief.", "extraBody": {"seed": 1}}
    said = [Message.model_validate({"role": "user", "content": "Hi", "id": "x", "mood": "good"})]
    await session_of(openai_agent, pool, config, url=agent.url).invoke(said, said)
    assert agent.last.body == {
        "model": "m-1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "temperature": 0,
        "max_tokens": 9,
        "seed": 1,
    }
    await session_of(openai_agent, pool, MODEL, url=agent.url).invoke([user("Hi")], [])
    assert set(agent.last.body) == {"model", "messages"}


async def test_a_refusal_is_what_the_agent_said(pool: HttpPool, agent: AgentServer):
    agent.answers = completion(role="assistant", content=None, refusal="I will not.")
    assert (await ask(session_of(openai_agent, pool, MODEL, url=agent.url))).messages[0].text == "I will not."


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "wrong shape: no choices"),
        ({"choices": []}, "wrong shape: no choices"),
        ({"choices": [{}]}, "wrong shape: no choices"),
        ({"choices": [{"message": None}]}, "wrong shape: no choices"),
        ({"choices": "x"}, "wrong shape: no choices"),
        ([], "wrong shape: no choices"),
        ({"error": {"message": "model is loading"}}, "answered with an error: model is loading"),
        ({"error": "no such model"}, "answered with an error: no such model"),
        ({"choices": [{"message": {"content": 3}}]}, "message 1 of the answer is not valid"),
        ({"choices": [{"message": {"tool_calls": [{}]}}]}, "message 1 of the answer is not valid"),
        ({"choices": [{"message": {"role": "user", "content": "x"}}]}, "wrong roles"),
    ],
)
async def test_answers_of_another_shape_are_errors(
    pool: HttpPool, agent: AgentServer, answer: Any, words: str
):
    agent.answers = Answer(json=answer)
    with pytest.raises(ConnectorError, match=words):
        await ask(session_of(openai_agent, pool, MODEL, url=agent.url))


async def test_the_servers_own_words_are_shown(pool: HttpPool):
    async with ModelServer(refusal(400, "max_tokens is too large")) as server:
        with pytest.raises(ConnectorError, match="max_tokens is too large"):
            await ask(session_of(openai_agent, pool, MODEL, url=server.url))


@pytest.mark.parametrize("config", [{}, {"model": ""}, MODEL | {"temperature": 3}, MODEL | {"apiKey": "k"}])
def test_a_bad_config_is_refused_when_it_is_loaded(config: dict[str, Any]):
    with pytest.raises(InvalidInput):
        settings_of(openai_agent, config)
