"""The ``langgraph`` connector against a real LangGraph server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.sessions import ask, session_of, settings_of, talk, user

from evalstudio.connectors.connection import CallPolicy
from evalstudio.connectors.contract import ConnectorError, RunInfo
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.langgraph import langgraph_agent
from evalstudio.connectors.session import AgentSession, test_connector
from evalstudio.messages import Message, TokensUsage

PATIENT = CallPolicy(timeout_seconds=30, backoff_seconds=0.05)


def session(pool: HttpPool, url: str, run_id: str = "run-1", **config: Any) -> AgentSession:
    return session_of(langgraph_agent, pool, config, url=url, run=RunInfo(id=run_id), policy=PATIENT)


async def held(pool: HttpPool, url: str, thread_id: str | None) -> list[dict[str, Any]]:
    """The messages of a thread as the server holds them."""
    async with pool.client().get(f"{url}/threads/{thread_id}/state") as answer:
        return (await answer.json())["values"]["messages"]


async def test_a_conversation_of_several_turns_stays_on_one_thread(pool: HttpPool, langgraph_url: str):
    opened = session(pool, langgraph_url, "multi")
    await opened.setup()
    thread_id = opened.run.thread_id
    _, replies = await talk(opened, "Hi", "What about booking 4711?", "Thanks")
    assert {reply.thread_id for reply in replies} == {thread_id}
    assert [reply.messages[-1].text for reply in replies] == [
        "Hello! I have heard 1 of your messages.",
        "I found it. Booking 4711: Lisbon, two nights, confirmed.",
        "Hello! I have heard 3 of your messages.",
    ]


async def test_only_new_messages_go_out_and_echoed_ones_do_not_come_back(pool: HttpPool, langgraph_url: str):
    opened = session(pool, langgraph_url, "only-new")
    messages, replies = await talk(opened, "Hi", "What about booking 4711?", "Thanks")
    assert [len(reply.messages) for reply in replies] == [1, 3, 1]
    on_server = await held(pool, langgraph_url, opened.run.thread_id)
    assert len(on_server) == len(messages) == opened.run.thread_message_count == 8
    assert len({message["id"] for message in on_server}) == 8
    assert [message["type"] for message in on_server].count("human") == 3


async def test_tool_calls_and_tokens_come_back_in_openais_shape(pool: HttpPool, langgraph_url: str):
    reply = await ask(session(pool, langgraph_url, "tools"), "Is booking 42 confirmed?")
    calling, result, answer = reply.messages
    assert [message.role for message in reply.messages] == ["assistant", "tool", "assistant"]
    assert calling.content == "Let me look."
    assert calling.to_json()["tool_calls"] == [
        {
            "id": "call-1",
            "type": "function",
            "function": {"name": "find_booking", "arguments": '{"number":"42"}'},
        }
    ]
    assert (result.tool_call_id, result.name) == ("call-1", "find_booking")
    assert answer.text == "I found it. Booking 42: Lisbon, two nights, confirmed."
    assert reply.tokens_usage == TokensUsage(input_tokens=31, output_tokens=19, total_tokens=50)


async def test_each_reply_counts_only_its_own_tokens(pool: HttpPool, langgraph_url: str):
    _, (_, second) = await talk(session(pool, langgraph_url, "tokens"), "Booking 1?", "Hi")
    assert second.tokens_usage == TokensUsage(input_tokens=5, output_tokens=3, total_tokens=8)


async def test_ten_runs_at_once_have_ten_threads(pool: HttpPool, langgraph_url: str):
    async def converse(number: int) -> tuple[str | None, list[str]]:
        opened = session(pool, langgraph_url, f"run-{number}")
        _, replies = await talk(opened, f"Booking {number}?", "Hi")
        return opened.run.thread_id, [reply.messages[-1].text for reply in replies]

    outcomes = await asyncio.gather(*(converse(number) for number in range(10)))
    assert len({thread_id for thread_id, _ in outcomes}) == 10
    for number, (thread_id, texts) in enumerate(outcomes):
        assert texts == [
            f"I found it. Booking {number}: Lisbon, two nights, confirmed.",
            "Hello! I have heard 2 of your messages.",
        ]
        assert len(await held(pool, langgraph_url, thread_id)) == 6


async def test_seeds_with_tool_calls_are_understood_by_the_graph(pool: HttpPool, langgraph_url: str):
    call = {
        "id": "c9",
        "type": "function",
        "function": {"name": "find_booking", "arguments": '{"number":"9"}'},
    }
    seeds = [
        user("Booking 9?"),
        Message.model_validate({"role": "assistant", "content": None, "tool_calls": [call]}),
        Message.model_validate({"role": "tool", "content": "Booking 9: Rome", "tool_call_id": "c9"}),
    ]
    opened = session(pool, langgraph_url, "seeds")
    reply = await opened.invoke(seeds, seeds)
    assert [message.text for message in reply.messages] == ["I found it. Booking 9: Rome."]
    assert len(await held(pool, langgraph_url, opened.run.thread_id)) == 4


async def test_a_repeated_call_adds_no_message_of_the_user_twice(pool: HttpPool, langgraph_url: str):
    opened = session(pool, langgraph_url, "repeated")
    said = [user("Hi")]
    await opened.invoke(said, said)
    opened.run.thread_message_count = 0
    again = session_of(
        langgraph_agent,
        pool,
        url=langgraph_url,
        run=RunInfo("repeated", opened.run.thread_id),
        policy=PATIENT,
    )
    await again.invoke(said, said)
    on_server = await held(pool, langgraph_url, opened.run.thread_id)
    assert [message["type"] for message in on_server].count("human") == 1


async def test_a_failing_graph_is_an_error_with_its_words(pool: HttpPool, langgraph_url: str):
    with pytest.raises(ConnectorError, match="the graph failed: ValueError: the booking system is on fire"):
        await ask(session(pool, langgraph_url, "broken", assistantId="broken"))


async def test_an_unknown_assistant_is_an_error_with_the_servers_words(pool: HttpPool, langgraph_url: str):
    with pytest.raises(ConnectorError, match=r"refused the request \(422\).*graphs: agent, broken"):
        await ask(session(pool, langgraph_url, "unknown", assistantId="nope"))


async def test_the_connection_can_be_tested(pool: HttpPool, langgraph_url: str):
    settings = settings_of(langgraph_agent, {}, url=langgraph_url)
    check = await test_connector(langgraph_agent, settings, pool=pool, policy=PATIENT)
    assert check.success
    assert check.response == "Hello! I have heard 1 of your messages."
