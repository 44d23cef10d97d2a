"""Messages: lenient in what they accept, OpenAI's shape in what they give."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evalstudio.base.json_text import json_text
from evalstudio.messages import (
    ContentBlock,
    Message,
    TokensUsage,
    ToolCall,
    UnreadableItem,
    read_messages,
    text_of,
    tool_calls_of,
)


def test_content_may_be_text_blocks_or_nothing() -> None:
    assert text_of(Message(role="assistant", content=None)) == ""
    assert text_of(Message(role="assistant", content="hi")) == "hi"
    blocks = Message.model_validate({"role": "assistant", "content": [{"type": "text", "text": "a"}, "b"]})
    assert text_of(blocks) == "a\nb"
    lone = Message.model_validate({"role": "assistant", "content": {"type": "text", "text": "x"}})
    assert text_of(lone) == "x"
    image = Message.model_validate(
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}
    )
    assert text_of(image) == ""
    assert text_of([ContentBlock(text="z")]) == "z"
    assert text_of(None) == ""


def test_unknown_fields_are_kept() -> None:
    message = Message.model_validate(
        {"role": "assistant", "content": "x", "refusal": None, "custom": {"a": 1}}
    )
    assert message.to_json()["custom"] == {"a": 1}


def test_tool_calls_come_in_several_shapes() -> None:
    ours = ToolCall.model_validate({"id": "1", "function": {"name": "f", "arguments": '{"a":1}'}})
    objects = ToolCall.model_validate({"id": "1", "function": {"name": "f", "arguments": {"a": 1}}})
    langchain = ToolCall.model_validate({"name": "f", "args": {"a": 1}, "id": "1", "type": "tool_call"})
    parts = ToolCall.model_validate({"toolName": "f", "args": {"a": 1}, "toolCallId": "1"})
    assert ours == objects == langchain == parts
    assert ours.arguments() == {"a": 1}
    assert ToolCall.model_validate({"name": "f"}).arguments() == {}


def test_arguments_that_are_not_json_say_so() -> None:
    call = ToolCall.model_validate({"function": {"name": "f", "arguments": "{oops"}})
    with pytest.raises(ValueError, match="arguments of f are not valid JSON"):
        call.arguments()


def test_content_parts_become_content_and_tool_calls() -> None:
    message = Message.model_validate(
        {
            "id": "m",
            "role": "assistant",
            "content": "one, two",
            "contentParts": [
                {"type": "text", "text": "one"},
                {"type": "tool_call", "toolCallId": "t", "toolName": "w", "args": {"x": 1}},
                {"type": "text", "text": "two"},
            ],
        }
    )
    assert text_of(message) == "one\ntwo"
    (call,) = tool_calls_of([message])
    assert (call.name, call.id, call.arguments()) == ("w", "t", {"x": 1})


def test_without_text_parts_the_flat_content_stands() -> None:
    fields = {"role": "assistant", "content": "flat", "contentParts": []}
    assert text_of(Message.model_validate(fields)) == "flat"
    calls = {"role": "assistant", "content": "flat", "contentParts": [{"type": "tool_call", "toolName": "f"}]}
    assert text_of(Message.model_validate(calls)) == "flat"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("I refunded you.", [{"type": "text", "text": "Hello."}]),
        ("two one", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]),
        ([{"type": "text", "text": "one"}], [{"type": "text", "text": "two"}]),
        ("flat", "nonsense"),
        ("flat", [7]),
        ("flat", {"type": "text", "text": "flat"}),
    ],
)
@pytest.mark.parametrize("name", ["contentParts", "parts"])
def test_content_beside_other_content_is_refused(content: object, parts: object, name: str) -> None:
    with pytest.raises(ValidationError, match=name if isinstance(parts, str | dict) else "content"):
        Message.model_validate({"role": "assistant", "content": content, name: parts})


def test_a_tool_result_part_becomes_a_tool_message() -> None:
    part = {"type": "tool_result", "toolCallId": "t", "result": {"ok": True}}
    message = Message.model_validate({"role": "tool", "contentParts": [part]})
    assert text_of(message) == '{"ok":true}'
    assert message.tool_call_id == "t"


def test_only_assistants_call_tools() -> None:
    fields = {"role": "user", "content": "x", "tool_calls": [{"name": "f"}]}
    assert tool_calls_of([Message.model_validate(fields)]) == []


@pytest.mark.parametrize(
    "given",
    [
        {"input_tokens": 3, "output_tokens": 4},
        {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        {"input": 3, "output": 4, "total": None},
        {"inputTokens": 3, "outputTokens": 4},
    ],
)
def test_token_counts_come_under_many_names(given: dict[str, int | None]) -> None:
    usage = TokensUsage.model_validate(given)
    assert usage == TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert (usage + usage).total_tokens == 14


def test_content_parts_are_read_the_same_from_a_stored_message() -> None:
    call = {"type": "tool_call", "toolName": "search", "args": {"q": "x"}}
    parts = [{"type": "text", "text": "Looking."}, call, call, {**call, "toolCallId": "2"}]
    message = Message.model_validate({"role": "assistant", "contentParts": parts})
    assert len(message.tool_calls or ()) == 3
    assert Message.model_validate(message.to_json()) == message


@pytest.mark.parametrize("given", [{}, {"content": "x"}, {"role": 7}, {"role": "user", "content": 5}])
def test_what_is_no_message_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Message.model_validate(given)


def test_json_text_survives_what_json_cannot_hold() -> None:
    assert json_text({"a": object(), 1: "x"}).startswith('{"a":"<object')
    assert json_text({"class": object, "function": len, "kept": 1}) == '{"kept":1}'


CALL = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "assistant", "content": "Booked."},
        {"content": None, "role": "assistant", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
        {"id": "m", "role": "tool", "content": "", "tool_call_id": "c1", "name": "book"},
        {"role": "assistant", "content": "x", "tool_calls": None},
        {"role": "assistant", "tool_calls": [{"function": {"arguments": "", "name": "book"}, "id": "c1"}]},
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "book", "arguments": {"a": 1}}}]},
    ],
)
def test_a_message_in_its_own_shape_is_what_validating_makes_of_it(fields: dict[str, Any]):
    (read,), validated = read_messages([fields]), Message.model_validate(fields)
    assert read == validated
    assert repr(read) == repr(validated)
    assert read.model_dump_json() == validated.model_dump_json()
    assert read.model_fields_set == validated.model_fields_set
    calls = zip(read.tool_calls or (), validated.tool_calls or (), strict=True)
    assert all(one.model_fields_set == other.model_fields_set for one, other in calls)


def test_a_name_that_is_no_text_is_still_refused():
    with pytest.raises(UnreadableItem, match="name"):
        read_messages([{"role": "assistant", "content": "x", "name": 3}])


def test_a_text_that_was_said_is_a_message_like_any_other():
    assert Message.said("user", "Hello") == Message(role="user", content="Hello")
    assert repr(Message.said("user", "Hello")) == repr(Message(role="user", content="Hello"))
