"""LangChain's message shapes in OpenAI's, and servers that only look like LangGraph."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer, Recorded
from tests.support.sessions import ask, session_of, talk

from evalstudio.connectors.contract import ConnectorError
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.langgraph import langgraph_agent, to_openai, usage_of
from evalstudio.messages import Message, TokensUsage


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "ai", "content": "Hi", "id": "1"}, {"role": "assistant", "content": "Hi", "id": "1"}),
        ({"type": "AIMessageChunk", "content": "Hi"}, {"role": "assistant", "content": "Hi"}),
        ({"type": "system", "content": "S"}, {"role": "system", "content": "S"}),
        ({"role": "assistant", "content": "Hi"}, {"role": "assistant", "content": "Hi"}),
        ({"type": "human", "content": "mine"}, None),
        ({"role": "user", "content": "mine"}, None),
        ({"type": "remove", "id": "x"}, None),
        ({"type": "remove", "id": "x", "content": ""}, None),
        (
            {
                "type": "ai",
                "content": "",
                "additional_kwargs": {"function_call": {"name": "f", "arguments": ""}},
            },
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
        ),
        (
            {"type": "tool", "content": "boom", "tool_call_id": "c", "name": "f", "status": "error"},
            {"role": "tool", "content": "boom", "name": "f", "tool_call_id": "c", "status": "error"},
        ),
        (
            {"type": "ai", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": "one"},
        ),
        ({"type": "ai", "content": []}, {"role": "assistant"}),
    ],
)
def test_messages_are_brought_to_openais_shape(given: dict[str, Any], expected: dict[str, Any] | None):
    assert to_openai(given) == ([] if expected is None else [expected])


def test_tool_calls_are_taken_once_and_broken_ones_too():
    (message,) = to_openai(
        {
            "type": "ai",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "a", "name": "find", "input": {"q": "ü"}},
            ],
            "tool_calls": [{"name": "find", "args": {"q": "ü"}, "id": "a", "type": "tool_call"}],
            "invalid_tool_calls": [{"name": "book", "args": "{oops", "id": "b", "error": "no JSON"}],
        }
    )
    read = Message.model_validate(message)
    assert read.content == "Looking."
    assert read.tool_calls is not None
    assert [(c.id, c.name, c.function.arguments) for c in read.tool_calls] == [
        ("a", "find", '{"q":"ü"}'),
        ("b", "book", "{oops"),
    ]


def test_reasoning_and_images_stay_blocks_and_are_not_text():
    blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "A"}, "B"]
    message = Message.model_validate(to_openai({"type": "ai", "content": blocks})[0])
    assert message.text == "A\nB"


@pytest.mark.parametrize("item", ["text", None, 3, [], {}])
def test_what_is_no_message_is_refused(item: Any):
    with pytest.raises(ConnectorError, match="message 1 of the graph's state is"):
        to_openai(item)


def test_usage_is_summed_over_the_messages_that_have_it():
    one = {"usage_metadata": {"input_tokens": 2, "output_tokens": 1, "total_tokens": 3}}
    assert usage_of([one, {"type": "tool"}, {"usage_metadata": None}, one]) == TokensUsage(
        input_tokens=4, output_tokens=2, total_tokens=6
    )
    assert usage_of([{}, "x"]) is None


def test_a_usage_that_cannot_be_read_makes_the_whole_unknown():
    many = {"input_tokens": "many"}
    one = {"usage_metadata": {"input_tokens": 2, "output_tokens": 1, "total_tokens": 3}}
    assert usage_of([one, {"usage_metadata": many}, one]) == many


def graph(state: Any) -> Any:
    """A server that makes a thread and then answers with this state."""
    return lambda seen: Answer(json={"thread_id": "t/1"} if seen.path == "/threads" else state)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, r"no list of messages \(its keys: none\)"),
        ({"output": "x"}, r"no list of messages \(its keys: output\)"),
        ([], "no list of messages"),
        ({"messages": []}, "the graph added no message"),
        ({"messages": [{"type": "human", "content": "Hi", "id": "run-1-0"}]}, "the graph added no message"),
        ({"messages": ["x", "y"]}, "message 2 of the graph's state is a str"),
        ({"messages": [{"type": "alien", "content": "?", "id": "z"}]}, "is not valid: role: is missing"),
        ({"__error__": "kaput"}, "the graph failed: kaput"),
        ({"messages": [], "__interrupt__": [{"value": "Approve?"}]}, r"it waits for .*Approve\?"),
    ],
)
async def test_states_of_another_shape_are_errors(pool: HttpPool, agent: AgentServer, state: Any, words: str):
    agent.answers = graph(state)
    with pytest.raises(ConnectorError, match=words):
        await ask(session_of(langgraph_agent, pool, url=agent.url))


@pytest.mark.parametrize("answer", [{}, {"thread_id": 3}, {"thread_id": ""}, [], "t"])
async def test_a_server_without_threads_is_reported(pool: HttpPool, agent: AgentServer, answer: Any):
    agent.answers = Answer(json=answer)
    with pytest.raises(ConnectorError, match="is it a LangGraph server"):
        await ask(session_of(langgraph_agent, pool, url=agent.url))


BUSY = Answer(status=503, headers={"Retry-After": "0"})


async def test_the_thread_is_made_once_even_if_the_first_run_must_be_repeated(
    pool: HttpPool, agent: AgentServer
):
    said = {"messages": [{"type": "ai", "content": "Hi", "id": "m1"}]}
    agent.answers = [Answer(json={"thread_id": "t/1"}), BUSY, Answer(json=said)]
    await ask(session_of(langgraph_agent, pool, url=agent.url))
    assert [request.path for request in agent.requests] == [
        "/threads",
        "/threads/t/1/runs/wait",
        "/threads/t/1/runs/wait",
    ]
    assert agent.requests[1].body == agent.requests[2].body


async def test_messages_without_ids_are_told_apart_by_their_place(pool: HttpPool, agent: AgentServer):
    state: list[dict[str, Any]] = []

    def echo(seen: Recorded) -> Answer:
        if seen.path == "/threads":
            return Answer(json={"thread_id": "t"})
        for message in seen.body["input"]["messages"]:
            state.append({"type": "human", "content": message["content"]})
            state.append({"type": "ai", "content": f"re: {message['content']}"})
        return Answer(json={"messages": state})

    agent.answers = echo
    messages, _ = await talk(session_of(langgraph_agent, pool, url=agent.url), "a", "b", "c")
    assert [message.text for message in messages] == ["a", "re: a", "b", "re: b", "c", "re: c"]


async def test_what_a_message_holds_does_not_shift_the_places_of_others(pool: HttpPool, agent: AgentServer):
    searched = [
        {"type": "server_tool_use", "id": "s", "name": "search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": "found"},
        {"type": "text", "text": "first"},
    ]
    first = [{"type": "human", "content": "a"}, {"type": "ai", "content": searched}]
    second = [{"type": "human", "content": "b"}, {"type": "ai", "content": "second"}]
    states = iter([first, [*first, *second]])
    agent.answers = lambda seen: Answer(
        json={"thread_id": "t"} if seen.path == "/threads" else {"messages": next(states)}
    )
    _, replies = await talk(session_of(langgraph_agent, pool, url=agent.url), "a", "b")
    assert [[m.role for m in reply.messages] for reply in replies] == [
        ["assistant", "tool", "assistant"],
        ["assistant"],
    ]
    assert replies[1].messages[0].text == "second"


async def test_the_configuration_goes_to_the_graph(pool: HttpPool, agent: AgentServer):
    agent.answers = graph({"messages": [{"type": "ai", "content": "Hi", "id": "m1"}]})
    config = {"assistantId": "booker", "configurable": {"tenant": "ü"}}
    await ask(session_of(langgraph_agent, pool, config, url=agent.url))
    body = agent.last.body
    assert body["assistant_id"] == "booker"
    assert body["config"] == {"configurable": {"tenant": "ü"}}
    assert body["input"]["messages"] == [{"role": "user", "content": "Hi", "id": "run-1-0"}]
