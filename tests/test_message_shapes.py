"""Messages of every provider and framework become the same messages; what cannot be read is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.support.message_shapes import ARGUMENTS, CALLS, UNREADABLE

from evalstudio.messages import (
    Message,
    ToolCall,
    UnreadableItem,
    UnreadableMessage,
    read_answer,
    read_messages,
    tool_calls_of,
)
from evalstudio.messages.shapes import messages_in


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_read_whoever_wrote_it(name: str) -> None:
    messages = read_messages([CALLS[name]])
    (call,) = tool_calls_of(messages)
    assert (call.name, call.arguments()) == ("refund", ARGUMENTS)
    assert read_messages([message.to_json() for message in messages]) == messages


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_looks_like_a_call_or_a_message_and_is_not_readable_is_quoted(name: str) -> None:
    item, words = UNREADABLE[name]
    with pytest.raises(UnreadableItem) as caught:
        read_messages([Message(role="user", content="Hi"), item])
    assert str(caught.value).startswith("message 2 is not valid: ")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {"type": "web_search_call", "id": "w", "action": {"query": "q"}},
            ("web_search", {"action": {"query": "q"}}),
        ),
        (
            {"type": "computer_call", "call_id": "c", "action": {"type": "click"}},
            ("computer", {"action": {"type": "click"}}),
        ),
        (
            {"type": "code_interpreter_call", "id": "i", "code": "1", "outputs": [2]},
            ("code_interpreter", {"code": "1"}),
        ),
        ({"type": "mcp_approval_request", "name": "refund", "arguments": "{}"}, ("refund", {})),
        (
            {"role": "model", "parts": [{"executableCode": {"code": "1"}}]},
            ("code_execution", {"code": "1"}),
        ),
    ],
)
def test_tools_at_the_provider_are_calls_too(item: dict[str, Any], expected: tuple[str, Any]) -> None:
    (call,) = tool_calls_of(read_messages([item]))
    assert (call.name, call.arguments()) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "function_call_output", "call_id": "c", "output": "ok"}, ("ok", "c", None)),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]},
            ("ok", "c", None),
        ),
        ({"role": "user", "type": "tool_result", "tool_use_id": "c", "content": "ok"}, ("ok", "c", None)),
        (
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
            ('{"a":1}', None, "f"),
        ),
        (
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"json": 1}]}}]},
            ('[{"json":1}]', "c", None),
        ),
        ({"type": "tool", "content": "ok", "tool_call_id": "c", "name": "f"}, ("ok", "c", "f")),
        (
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c",
                        "toolName": "f",
                        "output": {"type": "text", "value": "ok"},
                    }
                ],
            },
            ("ok", "c", "f"),
        ),
        (
            {"role": "tool", "tool_call_id": 3, "content": {"name": "f", "arguments": {}}},
            ('{"name":"f","arguments":{}}', "3", None),
        ),
    ],
)
def test_a_tools_result_is_a_message_of_its_own(item: dict[str, Any], expected: tuple[Any, Any, Any]) -> None:
    (message,) = read_messages([item])
    assert message.role == "tool"
    assert (message.text, message.tool_call_id, message.name) == expected


def test_results_beside_a_text_are_told_apart_and_stay_in_order() -> None:
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in "ab"]
    messages = read_messages([{"role": "user", "content": [*results, {"type": "text", "text": "And?"}]}])
    assert [(message.role, message.text) for message in messages] == [
        ("tool", "a"),
        ("tool", "b"),
        ("user", "And?"),
    ]
    roles = [message.role for message in read_messages([CALLS["Anthropic, at the provider"]])]
    assert roles == ["assistant", "tool", "assistant"]
    with pytest.raises(ValueError, match="holds 3 messages"):
        Message.model_validate(CALLS["Anthropic, at the provider"])


@pytest.mark.parametrize(
    ("role", "ours"),
    [
        ("model", "assistant"),
        ("ai", "assistant"),
        ("bot", "assistant"),
        ("AI", "assistant"),
        ("human", "user"),
    ],
)
def test_roles_have_one_name(role: str, ours: str) -> None:
    assert read_messages([{"role": role, "content": "x"}])[0].role == ours


def test_a_role_nobody_knows_is_refused() -> None:
    with pytest.raises(UnreadableItem, match='message 1 has the role "narrator"; known are assistant, user'):
        read_messages([{"role": "narrator", "content": "x"}])


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "refund"},
        {"type": "reasoning", "text": "refund"},
        {"text": "refund", "thought": True},
        {"type": "image_url", "image_url": {"url": "refund"}},
        {"type": "input_audio", "input_audio": {"data": "refund"}},
        {"type": "file", "text": "refund"},
        {"inlineData": {"data": "refund"}},
    ],
)
def test_thoughts_and_media_are_kept_and_not_said(block: dict[str, Any]) -> None:
    (message,) = read_messages([{"role": "assistant", "content": [block, {"type": "text", "text": "Hi"}]}])
    assert message.text == "Hi"
    assert "refund" in str(message.to_json())


@pytest.mark.parametrize(
    "block",
    [
        {"type": "output_text", "text": "refund"},
        {"type": "refusal", "refusal": "refund"},
        {"type": "text", "text": {"value": "refund", "annotations": []}},
        {"type": "markdown", "text": "refund"},
        {"text": "refund"},
    ],
)
def test_text_of_any_kind_is_said(block: dict[str, Any]) -> None:
    assert read_messages([{"role": "assistant", "content": [block]}])[0].text == "refund"


def test_equal_calls_are_two_and_a_repeated_one_is_one() -> None:
    twice = {"role": "assistant", "tool_calls": [{"name": "f"}, {"name": "f"}]}
    assert len(tool_calls_of(read_messages([twice]))) == 2
    listed = {**twice, "content": [{"type": "tool_use", "name": "f", "input": {}}] * 2}
    assert len(tool_calls_of(read_messages([listed]))) == 2
    more = {**twice, "content": [{"type": "tool_use", "name": "f", "input": {}}] * 3}
    assert len(tool_calls_of(read_messages([more]))) == 3


def test_models_of_other_libraries_are_read() -> None:
    class Block(BaseModel):
        type: str = "tool_use"
        id: str = "t"
        name: str = "refund"
        input: dict[str, int] = ARGUMENTS

    class Answer(BaseModel):
        role: str = "assistant"
        content: list[Block] = [Block()]

    (call,) = tool_calls_of(read_messages([Answer()]))
    assert call.name == "refund"


def test_an_answer_is_told_from_data() -> None:
    assert read_answer("text") is None
    assert read_answer({"total": 7}) is None
    assert read_answer(["a", "b"]) is None
    message = (read_answer({"content": "Hi"}) or [])[0]
    assert (message.role, message.text) == ("assistant", "Hi")
    texts = [
        message.text
        for message in read_answer(["Hi", {"type": "text", "text": "there"}, CALLS["Gemini"]]) or ()
    ]
    assert texts == ["Hi", "there", "Ok"]


KEYS = [
    "role",
    "content",
    "type",
    "text",
    "parts",
    "contentParts",
    "tool_calls",
    "function_call",
    "functionCall",
    "name",
    "args",
    "input",
    "id",
    "function",
    "arguments",
    "toolName",
    "kwargs",
    "data",
    "tool_result",
    "toolInvocations",
    "additional_kwargs",
    "output",
]
WORDS = ["assistant", "model", "user", "tool", "ai", "text", "tool_use", "tool-x", "function_call"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=3),
            inner | st.sampled_from(WORDS),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_value_is_read_or_refused(value: object) -> None:
    try:
        messages = read_messages([value], speaker="assistant")
    except UnreadableMessage:
        return
    stored = [message.to_json() for message in messages]
    assert [message.to_json() for message in read_messages(stored)] == stored


NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=12)


@given(NAMES, st.sampled_from(sorted(CALLS)), JSON)
def test_no_name_under_a_call_is_lost(name: str, shape: str, arguments: Any) -> None:
    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: renamed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if value == "tool-refund":
            return f"tool-{name}"
        return name if value == "refund" else arguments if value == ARGUMENTS else value

    try:
        messages = read_messages([renamed(CALLS[shape])])
    except UnreadableMessage:
        return
    assert [call.name for call in tool_calls_of(messages)] == [name]


def test_a_call_alone_is_read_in_every_shape() -> None:
    shapes = (
        {"name": "f"},
        {"toolName": "f"},
        {"function": "f"},
        {"function": {"name": "f"}},
        {"type": "f_call"},
    )
    assert [ToolCall.model_validate(shape).name for shape in shapes] == ["f"] * 5


_CALLS: list[dict[str, Any]] = [
    {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}},
    {"id": "c1", "function": {"name": "book", "arguments": None}},
    {"id": 7, "type": "function", "function": {"name": "book", "arguments": {"people": 2}}},
    {"id": "c1", "function": {"name": "book", "arguments": "{}"}, "output": "booked"},
    {"id": None, "function": {"name": "book", "arguments": "{}"}},
]


@pytest.mark.parametrize("calls", [None, [], *([call] for call in _CALLS), _CALLS])
@pytest.mark.parametrize("more", [{}, {"id": "m1", "name": "Bo"}, {"tool_call_id": 4}])
def test_the_short_way_for_openais_shape_reads_what_the_long_one_does(
    calls: Any, more: dict[str, Any]
) -> None:
    item = {"role": "assistant", "content": "Done.", "tool_calls": calls, **more}
    long_way = [Message.model_validate(one).to_json() for one in messages_in(item)]
    assert [message.to_json() for message in read_messages([item])] == long_way
