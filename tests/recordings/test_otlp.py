"""Conversations from spans: nothing twice, nothing lost, and what is missing is said."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.support.intake import any_value, chat_span, request_of

from evalstudio.recordings.otlp import assemble
from evalstudio.recordings.otlp_files import conversations_of
from evalstudio.recordings.reading import Unreadable, read_conversations
from evalstudio.recordings.spans import BadPayload, read_json


def conversation(*spans: dict[str, Any]) -> Any:
    (assembled,) = conversations_of(read_json(request_of(*spans), "traces"))
    return assembled.conversation


def shown(one: Any) -> list[list[str]]:
    return [
        [str(turn.user_message.content)]
        + [
            f"{message.role}: {message.text or [call.name for call in message.tool_calls or ()]}"
            for message in turn.messages
        ]
        for turn in one.turns
    ]


def flat_span(attributes: dict[str, Any], trace: int = 1, span: int = 1, **more: Any) -> dict[str, Any]:
    plain = chat_span(trace, span)
    listed = [{"key": key, "value": any_value(value)} for key, value in attributes.items()]
    return plain | {"attributes": listed, **more}


def test_the_history_that_every_call_repeats_is_there_once() -> None:
    first = chat_span(1, 1, said=[("user", "One")], answer="1")
    second = chat_span(2, 2, said=[("user", "One"), ("assistant", "1"), ("user", "Two")], answer="2")
    window = chat_span(3, 3, said=[("assistant", "2"), ("user", "Three")], answer="3")
    stateful = chat_span(4, 4, said=[("user", "Four")], answer="4")
    assert shown(conversation(second, stateful, first, window)) == [
        ["One", "assistant: 1"],
        ["Two", "assistant: 2"],
        ["Three", "assistant: 3"],
        ["Four", "assistant: 4"],
    ]


def test_numbers_of_flattened_messages_have_gaps_and_may_begin_anywhere() -> None:
    prefix = "llm.input_messages"
    span = flat_span(
        {
            "openinference.span.kind": "LLM",
            "session.id": "s",
            f"{prefix}.10.message.role": "tool",
            f"{prefix}.10.message.content": "sunny",
            f"{prefix}.10.message.tool_call_id": "c1",
            f"{prefix}.1.message.role": "user",
            f"{prefix}.1.message.contents.0.message_content.type": "text",
            f"{prefix}.1.message.contents.0.message_content.text": "Weather?",
            f"{prefix}.2.message.role": "assistant",
            f"{prefix}.2.message.tool_calls.1.tool_call.id": "c1",
            f"{prefix}.2.message.tool_calls.1.tool_call.function.name": "look",
            f"{prefix}.2.message.tool_calls.1.tool_call.function.arguments": "{}",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "Sunny.",
        }
    )
    one = conversation(span)
    assert one.error is None
    assert shown(one) == [["Weather?", "assistant: ['look']", "tool: sunny", "assistant: Sunny."]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"droppedAttributesCount": 273}, "dropped 273 attributes"),
        ({"droppedAttributesCount": "3"}, "dropped 3 attributes"),
    ],
)
def test_attributes_that_the_sender_dropped_make_it_an_error(change: Any, reason: str) -> None:
    assert reason in conversation(chat_span(1, 1) | change).error


def test_a_cut_list_of_messages_is_an_error() -> None:
    span = chat_span(1, 1)
    messages = next(one for one in span["attributes"] if one["key"] == "gen_ai.input.messages")
    messages["value"]["stringValue"] = messages["value"]["stringValue"][:30]
    assert "not a whole JSON list" in conversation(span).error


def test_calls_without_content_are_an_error() -> None:
    span = flat_span({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    assert "carries no messages" in conversation(span).error


def test_a_message_that_cannot_be_read_is_an_error() -> None:
    span = chat_span(1, 1)
    call = [{"role": "assistant", "parts": [{"type": "tool_call", "arguments": {}}]}]
    for one in span["attributes"]:
        if one["key"] == "gen_ai.output.messages":
            one["value"]["stringValue"] = json.dumps(call)
    assert "without the name of its tool" in conversation(span).error


def test_tools_that_no_message_shows_are_there_too() -> None:
    """A call that nobody sees would satisfy every check that forbids one."""
    chat = chat_span(1, 1, said=[("user", "Delete it")], answer="Done.")
    agent = flat_span({"openinference.span.kind": "AGENT", "output.value": "Done."}, span=9)
    start = int(chat["startTimeUnixNano"])
    tool = flat_span(
        {"openinference.span.kind": "TOOL", "tool.name": "delete", "input.value": '{"id": 1}'},
        span=2,
        startTimeUnixNano=str(start + 1),
        endTimeUnixNano=str(start + 2),
    )
    guard = chat_span(1, 3, said=[("user", "Is this safe: Done.")], answer="yes")
    one = conversation(chat, agent, tool, guard)
    assert shown(one) == [["Delete it", "assistant: ['delete']", "tool: []", "assistant: Done."]]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('{"id": 1, "id": 2}', '{"id": 1, "id": 2}'),
        ('{"id": 1}', '{"id": 1}'),
        ("number 1", '{"input":"number 1"}'),
    ],
)
def test_arguments_of_a_tool_that_can_be_read_in_two_ways_stay_as_they_are(given: str, kept: str) -> None:
    """Wrapped as a text they would be no call that is forbidden with one of them."""
    chat = chat_span(1, 1, said=[("user", "Delete it")], answer="Done.")
    start = int(chat["startTimeUnixNano"])
    tool = flat_span(
        {"openinference.span.kind": "TOOL", "tool.name": "delete", "input.value": given},
        span=2,
        startTimeUnixNano=str(start + 1),
        endTimeUnixNano=str(start + 2),
    )
    (turn,) = conversation(chat, tool).turns
    (call,) = turn.messages[0].tool_calls
    assert call.function.arguments == kept


def test_what_an_agent_inside_a_tool_called_is_there_and_what_it_said_is_not() -> None:
    chat = chat_span(1, 1, said=[("user", "Ask the expert")], answer="It is 4.")
    start = int(chat["startTimeUnixNano"])
    tool = flat_span(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "expert",
            "gen_ai.tool.call.result": "4",
        },
        span=2,
        startTimeUnixNano=str(start + 10),
        endTimeUnixNano=str(start + 90),
    )
    calls = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "x", "name": "drop", "arguments": {}}]}
    ]
    inner = chat_span(1, 3, said=[("user", "Two and two?")])
    for one in inner["attributes"]:
        if one["key"] == "gen_ai.output.messages":
            one["value"]["stringValue"] = json.dumps(calls)
    inner |= {
        "parentSpanId": tool["spanId"],
        "startTimeUnixNano": str(start + 20),
        "endTimeUnixNano": str(start + 30),
    }
    (turn,) = conversation(chat, tool, inner).turns
    names = [call.name for message in turn.messages for call in message.tool_calls or ()]
    assert sorted(names) == ["drop", "expert"]
    assert "Two and two?" not in [message.text for message in turn.messages]
    assert turn.messages[-1].text == "It is 4."


def test_an_error_of_the_whole_is_the_error_and_one_that_was_repeated_is_not() -> None:
    failed = flat_span(
        {"gen_ai.operation.name": "chat"},
        status={"code": 2, "message": "Boom\nTraceback (most recent call last)…"},
    )
    assert conversation(failed).error == "Boom"
    first: dict[str, Any] = chat_span(1, 1) | {"status": {"code": "STATUS_CODE_ERROR", "message": "timeout"}}
    first["attributes"] = [one for one in first["attributes"] if one["key"] != "gen_ai.output.messages"]
    again = chat_span(1, 2)
    one = conversation(first, again)
    assert one.error is None
    assert shown(one) == [["Hello", "assistant: Hi."]]


def test_ids_are_hexadecimal_or_base64() -> None:
    span = chat_span(7, 8)
    other = span | {
        "traceId": b64encode(bytes.fromhex(span["traceId"])).decode(),
        "spanId": b64encode(bytes.fromhex(span["spanId"])).decode(),
    }
    (one,), (two,) = (read_json(request_of(each), "traces") for each in (span, other))
    assert (one.trace_id, one.span_id) == (two.trace_id, two.span_id)
    with pytest.raises(BadPayload, match="hexadecimal digits or base64"):
        read_json(request_of(span | {"traceId": "0" * 32}), "traces")


def test_a_file_of_requests_is_read_as_conversations(tmp_path: Path) -> None:
    first = chat_span(1, 1, said=[("user", "One")], answer="1")
    second = chat_span(2, 2, said=[("user", "One"), ("assistant", "1"), ("user", "Two")], answer="2")
    path = tmp_path / "traces.jsonl"
    lines = [json.dumps(request_of(second)), json.dumps(request_of(first)), '{"resourceSpans": 3}']
    path.write_text("\n".join(lines))
    bad, one = read_conversations(path)
    assert isinstance(bad, Unreadable)
    assert bad.line == 3
    assert shown(one) == [["One", "assistant: 1"], ["Two", "assistant: 2"]]


def test_calls_that_could_be_compared_without_end_are_an_error() -> None:
    """Thousands of calls in one trace that begin alike: within seconds, and never taken for the whole."""
    said = [[("user", "Hello"), ("assistant", f"a{one}"), ("user", f"q{one}")] for one in range(1_000)]
    spans = [chat_span(1, one + 1, said=history, answer=f"b{one}") for one, history in enumerate(said)]
    request = request_of(*spans)
    assembled = assemble(read_json(request, "traces"), identity="x")
    assert "too many ways" in (assembled.conversation.error or "")
