"""What an agent hands back is read whole, or refused in words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.message_shapes import CALLS, UNREADABLE
from tests.support.sessions import QUICK, ask, connector_of, session_of
from tests.test_message_shapes import JSON

from evalstudio.connectors.contract import (
    ConnectorContext,
    ConnectorError,
    ConnectorResponse,
    ConnectorSettings,
)
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.replies import AgentReply, read_reply, read_test
from evalstudio.connectors.session import test_connector
from evalstudio.messages import MOST_TOKENS, Message, TokensUsage, read_usage, tool_calls_of

SAID = [{"role": "assistant", "content": "Hello"}]


def read(returned: object, **more: Any) -> AgentReply:
    return read_reply(returned, 1.0, 1_000, **more)


@pytest.mark.parametrize(
    "result",
    [
        {"success": True, "messages": SAID, "latencyMs": 5, "threadId": "t", "metadata": {"a": 1}},
        {"success": np.True_, "messages": SAID, "latency_ms": 5, "thread_id": "t", "metadata": {"a": 1}},
        {"messages": SAID, "latencyMs": 5.0, "threadId": "t", "metadata": {"a": 1}, "error": None},
        ConnectorResponse(SAID, 5, None, "t", {"a": 1}),
    ],
)
def test_a_result_object_is_a_reply(result: object) -> None:
    reply = read(result)
    assert [message.text for message in reply.messages] == ["Hello"]
    assert (reply.latency_ms, reply.thread_id, reply.metadata) == (5.0, "t", {"a": 1})


@pytest.mark.parametrize("name", ["tokensUsage", "tokenUsage", "tokens_usage", "token_usage"])
def test_the_usage_of_a_result_comes_under_all_its_names(name: str) -> None:
    reply = read({"success": True, "messages": SAID, name: {"input": 3, "output": 4}})
    assert reply.tokens_usage == TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"success": False, "error": "no beds left", "messages": SAID}, "no beds left"),
        ({"success": False, "error": {"code": 7}}, '{"code":7}'),
        ({"success": False}, "reports success: false, without an error"),
        ({"success": np.False_, "error": "down", "messages": SAID}, "down"),
        ({"success": "false", "messages": SAID}, 'success must be true or false, not "false"'),
        ({"success": 0, "messages": SAID}, "success must be true or false, not 0"),
        ({"success": None, "messages": SAID}, "success must be true or false, not null"),
        ({"messages": SAID, "error": "down"}, "success: true beside an error: down"),
        ({"success": True}, "success: true and no messages"),
        ({"success": True, "messages": []}, "the answer holds no message"),
        ({"success": True, "messages": "Hello"}, "messages must be a list, not a str"),
        ({"success": True, "messages": SAID, "error": "but"}, "success: true beside an error: but"),
        ({"success": True, "messages": SAID, "latncy": 5}, 'not known: "latncy"; did you mean latencyMs?'),
        ({"success": True, "message": "Hello"}, 'not known: "message"; did you mean messages'),
        ({"messages": SAID, "next": "x", "more": 1}, 'not known: "next", "more"'),
        ({"success": False, "role": "assistant", "content": "Hello", "error": "no"}, "no"),
        ({"success": True, "messages": SAID, "latencyMs": True}, "latency_ms must be"),
        ({"success": True, "messages": SAID, "latencyMs": 10**400}, "latency_ms must be"),
        (ConnectorResponse(success=False, error="no beds left"), "no beds left"),
        (ConnectorResponse(SAID, success=False), "reports success: false"),
        (ConnectorResponse(SAID, success="false"), "success must be true or false"),  # pyright: ignore[reportArgumentType]
        (ConnectorResponse(SAID, error="but"), "success: true beside an error: but"),
        (ConnectorResponse(), "the answer holds no message"),
    ],
)
def test_a_result_object_that_does_not_say_success_is_refused(result: object, words: str) -> None:
    with pytest.raises(ConnectorError) as caught:
        read(result)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_read_in_answers_alone_and_in_lists(name: str) -> None:
    for answer in (CALLS[name], [CALLS[name]], {"messages": [CALLS[name]]}, ConnectorResponse([CALLS[name]])):
        assert [call.name for call in tool_calls_of(read(answer).messages)] == ["refund"]


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_the_agents_fault(name: str) -> None:
    item, words = UNREADABLE[name]
    with pytest.raises(ConnectorError, match="message 2 of the answer is not valid") as caught:
        read(["Ok", item])
    assert words in str(caught.value)


@pytest.mark.parametrize("role", ["tool", "system", "developer"])
def test_only_the_assistant_calls_tools_in_an_answer(role: str) -> None:
    call = {"role": role, "content": "x", "tool_calls": [{"name": "refund"}]}
    with pytest.raises(ConnectorError, match=rf"a message of the role {role} calls tools \(refund\)"):
        read(["Ok", call])


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n\t\u00a0\u2003",
        "\u200b\ufeff\u2060\u00ad",
        "\u3164\u2800",
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": [{"type": "text", "text": " "}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]},
        {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}]},
        [{"role": "tool", "content": "found", "tool_call_id": "1"}],
        [{"role": "system", "content": "reset"}],
    ],
)
def test_an_answer_that_says_and_does_nothing_is_a_fault_unless_it_is_allowed(answer: object) -> None:
    with pytest.raises(ConnectorError, match=r"neither text nor a tool call; .* set allowEmpty: true"):
        read(answer)
    assert read(answer, allow_empty=True).messages


async def test_every_connector_may_allow_empty_answers(pool: HttpPool) -> None:
    def silent(ctx: ConnectorContext[Any]) -> str:
        return ""

    connector = connector_of(silent)
    assert "allowEmpty" in connector.config.schema["properties"]
    assert (await ask(session_of(connector, pool, {"allowEmpty": True}))).messages[0].text == ""
    with pytest.raises(ConnectorError, match="neither text nor a tool call"):
        await ask(session_of(connector, pool))
    with pytest.raises(ValueError, match="allowEmpty"):
        session_of(connector, pool, {"allowEmpty": "perhaps"})


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ({}, "holds no count that is known: {}"),
        ({"tokens": 5}, "holds no count that is known"),
        ([], "not an object of numbers: []"),
        ("many", 'not an object of numbers: "many"'),
        ({"input_tokens": -1, "output_tokens": 1}, "input_tokens is not a number of tokens: -1"),
        ({"input_tokens": 1.5, "output_tokens": 1}, "input_tokens is not a number of tokens: 1.5"),
        ({"total": float("nan")}, "total_tokens is not a number of tokens"),
        ({"total": float("inf")}, "total_tokens is not a number of tokens"),
        ({"total": "many"}, "total_tokens is not a number of tokens"),
        ({"total": "12"}, "total_tokens is not a number of tokens"),
        ({"total": True}, "total_tokens is not a number of tokens"),
        ({"total": MOST_TOKENS + 1}, "total_tokens is not a number of tokens"),
        ({"total": 10**400}, "total_tokens is not a number of tokens"),
        ({"input": MOST_TOKENS, "output": MOST_TOKENS}, "more than any agent uses"),
        ({"input": 900, "output": 900, "total": 1}, "fewer than 1,800 of input and output together"),
        ({"input": 5}, "neither a total nor output_tokens"),
        (TokensUsage.model_construct(input_tokens=-5, output_tokens=0, total_tokens=-5), "input_tokens"),
    ],
)
def test_usage_that_says_nothing_usable_is_missing_with_a_reason(usage: Any, words: str) -> None:
    reply = read(ConnectorResponse(SAID, tokens_usage=usage))
    assert reply.tokens_usage is None
    assert words in str(reply.usage_missing)


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 3, "output_tokens": 4.0},
        {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
        {"promptTokens": np.int64(3), "completionTokens": 4},
        TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7),
    ],
)
def test_usage_of_every_provider_is_read(usage: Any) -> None:
    assert read_usage(usage) == (TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7), None)
    assert read_usage(None) == (None, None)


@given(st.lists(st.integers(0, MOST_TOKENS), min_size=1, max_size=50))
def test_a_sum_of_usages_can_always_be_stored(counts: list[int]) -> None:
    usages = [TokensUsage(input_tokens=0, output_tokens=0, total_tokens=count) for count in counts]
    assert sum(usages, TokensUsage()).total_tokens == min(sum(counts), MOST_TOKENS)


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        (None, ""),
        (True, ""),
        (np.True_, ""),
        ("fine", "fine"),
        ({"success": True, "response": "v2 healthy", "latencyMs": 3, "error": None}, "v2 healthy"),
        ({"success": True}, ""),
        ({"success": True, "response": {"version": 2}}, '{"version":2}'),
        (ConnectorResponse(SAID), "Hello"),
        (Message(role="assistant", content="Hello"), "Hello"),
    ],
)
def test_a_test_says_that_the_agent_is_healthy(answer: object, response: str) -> None:
    assert read_test(answer) == response


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (False, "its test says that the agent is not usable"),
        (np.False_, "its test says that the agent is not usable"),
        ({"success": False, "error": "no database"}, "no database"),
        ({"success": False, "response": "v2"}, "not usable, without an error"),
        ({"success": "false"}, 'success must be true or false, not "false"'),
        ({"success": 1}, "success must be true or false"),
        ({"response": "fine"}, "the test's result has no success"),
        ({"success": True, "status": "red"}, 'not known: "status"'),
        ({"success": True, "error": "but"}, "beside an error: but"),
        ({}, "has no success"),
        (7, "its test returned an int; expected a text, true or false"),
        ([], "its test returned a list"),
        (ConnectorResponse(success=False, error="down"), "down"),
        (ConnectorResponse([]), "holds no message"),
    ],
)
async def test_a_test_that_does_not_say_so_is_unhealthy(pool: HttpPool, answer: object, words: str) -> None:
    connector = connector_of(lambda ctx: "never asked")
    connector.test(lambda ctx: answer)
    check = await test_connector(connector, ConnectorSettings({}), pool=pool, policy=QUICK)
    assert not check.success
    assert words in str(check.error)


@given(JSON)
def test_any_value_yields_a_reply_or_a_connector_error(value: object) -> None:
    for reading in (read, read_test):
        with suppress(ConnectorError):
            reading(value)
