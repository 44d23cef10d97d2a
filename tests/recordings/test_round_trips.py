"""A conversation written in each format and read back has the same messages; so have many."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.reading import read_conversations

Turns = list[tuple[str, dict[str, str], str]]
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=20)
TURNS = st.lists(st.tuples(TEXT, st.dictionaries(TEXT, TEXT, max_size=2), TEXT), min_size=1, max_size=3)


def openai(turns: Turns) -> dict[str, Any]:
    return {"messages": [message for number, turn in enumerate(turns) for message in _openai(number, *turn)]}


def _openai(number: int, question: str, order: dict[str, str], answer: str) -> list[dict[str, Any]]:
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "f", "arguments": json.dumps(order)},
    }
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "r"},
        {"role": "assistant", "content": answer},
    ]


def anthropic(turns: Turns) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for number, (question, order, answer) in enumerate(turns):
        use = {"type": "tool_use", "id": f"c{number}", "name": "f", "input": order}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "r"}
        messages += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": answer}]},
        ]
    return {"system": "s", "messages": messages}


def responses(turns: Turns) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for number, (question, order, answer) in enumerate(turns):
        items += [
            {"role": "user", "content": [{"type": "input_text", "text": question}]},
            {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": json.dumps(order)},
            {"type": "function_call_output", "call_id": f"c{number}", "output": "r"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]},
        ]
    return {"input": items[:-1], "output": items[-1:]}


def gemini(turns: Turns) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for question, order, answer in turns:
        contents += [
            {"role": "user", "parts": [{"text": question}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": order}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}]},
            {"role": "model", "parts": [{"text": answer}]},
        ]
    return {"contents": contents}


def langgraph(turns: Turns) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for number, (question, order, answer) in enumerate(turns):
        call = {"id": f"c{number}", "name": "f", "args": order, "type": "tool_call"}
        messages += [
            {"type": "human", "content": question},
            {"type": "ai", "content": "", "tool_calls": [call]},
            {"type": "tool", "content": "r", "tool_call_id": f"c{number}"},
            {"type": "ai", "content": answer},
        ]
    return {"values": {"messages": messages}}


def langsmith(turns: Turns) -> dict[str, Any]:
    messages = langgraph(turns)["values"]["messages"]
    return {"run_type": "chain", "inputs": {"messages": messages[:1]}, "outputs": {"messages": messages}}


def inspect(turns: Turns) -> dict[str, Any]:
    return {"eval": {"task": "t"}, "samples": [openai(turns)]}


def promptfoo(turns: Turns) -> dict[str, Any]:
    messages = openai(turns)["messages"]
    answer = {"output": messages[-1]["content"], "metadata": {"messages": messages}}
    return {"promptIdx": 0, "prompt": {"raw": "p"}, "vars": {}, "response": answer}


def evalstudio(turns: Turns) -> dict[str, Any]:
    counted = [{"turn": number, "messageCount": 4} for number in range(1, len(turns) + 1)]
    return {**openai(turns), "turns": counted}


WRITERS: list[Callable[[Turns], dict[str, Any]]] = [
    openai,
    anthropic,
    responses,
    gemini,
    langgraph,
    langsmith,
    inspect,
    promptfoo,
    evalstudio,
]


def said(conversation: object) -> list[tuple[str, dict[str, str], str]]:
    assert isinstance(conversation, RecordedConversation), conversation
    read: list[tuple[str, dict[str, str], str]] = []
    for turn in conversation.turns:
        question, asked, _, answer = turn.all_messages
        assert asked.tool_calls
        read.append((question.text, asked.tool_calls[0].arguments(), answer.text))
    return read


@pytest.mark.parametrize("write", WRITERS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=TURNS)
def test_what_is_written_is_read(
    tmp_path: Path, write: Callable[[Turns], dict[str, Any]], turns: Turns
) -> None:
    (tmp_path / "x").write_text(json.dumps(write(turns)))
    (conversation,) = read_conversations(tmp_path / "x")
    assert said(conversation) == turns


@pytest.mark.parametrize("write", WRITERS)
def test_a_thousand_of_each_are_read(tmp_path: Path, write: Callable[[Turns], dict[str, Any]]) -> None:
    lines = (json.dumps(write([(f"q{number}", {"n": str(number)}, "a")])) for number in range(1000))
    (tmp_path / "x").write_text("\n".join(lines))
    # Samples of one log have ids by sample and epoch; here every line is a log of its own.
    read = list(
        read_conversations(tmp_path / "x", fields={"id": "messages[0].content"} if write is inspect else None)
    )
    assert [said(one)[0][0] for one in read] == [f"q{number}" for number in range(1000)]
