"""Files made with the libraries of those who define the formats, read as one and the same conversation."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstudio.base.json_text import json_bytes
from evalstudio.messages import Message, TokensUsage, tool_calls_of
from evalstudio.recordings import archives
from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.formats import recognise
from evalstudio.recordings.own_export import written
from evalstudio.recordings.reading import conversations_in, read_conversations

SAMPLES = Path(__file__).parent / "samples"
ONCE = TokensUsage(input_tokens=50, output_tokens=5, total_tokens=55)
TWICE = TokensUsage(input_tokens=100, output_tokens=10, total_tokens=110)
WHOLE = (
    "openai_chat.jsonl",
    "openai_responses.jsonl",
    "anthropic.jsonl",
    "gemini.jsonl",
    "langgraph_snapshot.json",
    "langgraph_state.json",
    "langchain_messages.json",
    "langsmith_runs.jsonl",
    "inspect.json",
    "inspect.eval",
)


def read(name: str) -> list[RecordedConversation]:
    items = list(read_conversations(SAMPLES / name))
    assert all(isinstance(item, RecordedConversation) for item in items), items
    return [item for item in items if isinstance(item, RecordedConversation)]


def roles(messages: list[Message]) -> list[str]:
    return [message.role for message in messages]


@pytest.mark.parametrize("name", WHOLE)
def test_tools_turns_system_prompt_and_usage_are_read_from_every_format(name: str) -> None:
    conversation = read(name)[-1]
    first, second = conversation.turns
    assert [message.text for message in conversation.seeds] == ["You help customers of a shop."]
    assert roles(first.all_messages) == ["user", "assistant", "tool", "assistant"]
    (call,) = tool_calls_of(first.messages)
    assert (call.name, call.arguments()) == ("track", {"order": "A1"})
    assert "on the way" in first.messages[1].text
    assert [message.text for message in first.messages[-1:]] == ["It is on the way."]
    assert [message.text for message in second.all_messages] == ["Thanks!", "You are welcome."]
    assert second.tokens_usage == ONCE
    assert first.tokens_usage in (None, TWICE)


@pytest.mark.parametrize("name", [name for name in WHOLE if not name.startswith("lang")])
def test_schemas_of_tools_have_one_shape(name: str) -> None:
    (tool,) = read(name)[-1].tools
    function: dict[str, Any] = tool.get("function", tool)
    assert function["name"] == "track"
    assert "order" in function["parameters"]["properties"]


@pytest.mark.parametrize("name", ["inspect.json", "inspect.eval"])
def test_samples_and_epochs_of_inspect_are_tasks_and_trials(name: str) -> None:
    conversations = read(name)
    assert [(one.task_id, one.trial) for one in conversations] == [("shop/orders", 1), ("shop/orders", 2)]
    assert {one.ground_truth for one in conversations} == {"on the way"}
    assert all(list(one.tags) == ["shop"] and one.agent == "mockllm/model" for one in conversations)
    assert all(turn.latency_ms for one in conversations for turn in one.turns)


@pytest.mark.parametrize("name", ["promptfoo.json", "promptfoo.jsonl"])
def test_repetitions_of_a_promptfoo_test_are_one_task(name: str) -> None:
    conversations = read(name)
    first, again, cancelled, _ = (one.task_id for one in conversations)
    assert first == again != cancelled
    assert conversations[0].ground_truth == "It is on the way."
    assert conversations[0].turns[-1].latency_ms == 14
    assert conversations[0].turns[-1].tokens_usage == ONCE
    assert [call.name for call in tool_calls_of(conversations[2].turns[-1].messages)] == ["cancel"]
    assert conversations[2].metadata["vars"] == {"question": "Cancel order A1."}
    assert conversations[2].agent == "shop-agent"


def test_parts_of_a_langsmith_trace_are_no_conversations_of_their_own(tmp_path: Path) -> None:
    assert [len(one.turns) for one in read("langsmith_runs.jsonl")] == [1, 2]
    parts = (SAMPLES / "langsmith_runs.jsonl").read_text().splitlines()[:3]
    (tmp_path / "parts.jsonl").write_text("\n".join(parts))
    (problem,) = read_conversations(tmp_path / "parts.jsonl")
    assert "is only a part of the run" in str(problem)


def test_the_state_of_a_graph_comes_along() -> None:
    assert read("langgraph_state.json")[0].state == {"order": "A1"}
    assert read("langgraph_snapshot.json")[0].id == "t1"


def test_formats_are_recognised_by_what_is_in_them() -> None:
    ask = [{"role": "user", "content": "Hi"}]
    run = {"messages": ask, "turns": [{"turn": 1, "messageCount": 1}]}
    documents: dict[str, dict[str, Any]] = {
        "openai": {"messages": ask},
        "anthropic": {"messages": ask, "system": "Be kind."},
        "responses": {"input": "Hi", "output": []},
        "gemini": {"contents": [{"parts": [{"text": "Hi"}]}]},
        "langgraph": {"messages": [{"type": "human", "content": "Hi"}]},
        "langsmith": {"run_type": "chain", "inputs": {}},
        "inspect": {"eval": {"task": "x"}, "samples": []},
        "promptfoo": {"promptIdx": 0},
        "evalstudio": run,
    }
    recognised = {name: recognise(document) for name, document in documents.items()}
    assert {name: one and one.name for name, one in recognised.items()} == {name: name for name in documents}
    assert recognise({"text": "x"}) is None


def test_an_archive_that_needs_a_missing_package_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    # From 3.14 on Python's own library reads it.
    monkeypatch.setattr(archives, "sys", SimpleNamespace(version_info=(3, 11)))
    problems = list(read_conversations(SAMPLES / "inspect.eval"))
    assert len(problems) == 2
    assert all('pip install "evalstudio[inspect]"' in str(one) for one in problems)


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix[1:2] in "je"))
def test_what_is_sent_to_a_server_is_read_as_the_same_conversation(name: str) -> None:
    for conversation in read(name):
        conversation.expected_calls, conversation.tags = [{"name": "track"}], [*conversation.tags]
        document = json.loads(json_bytes(written(conversation)))
        (again,) = conversations_in([document], "request")
        assert isinstance(again, RecordedConversation)
        # Fields of a message that are null are not sent.
        assert written(again) == written(conversation)
        assert replace(again, turns=conversation.turns, seeds=conversation.seeds) == conversation


def test_a_conversation_without_a_turn_is_sent_with_its_error() -> None:
    lost = RecordedConversation("x", [], tags=[], error="broke off", started=datetime(2026, 1, 1, tzinfo=UTC))
    assert list(conversations_in([written(lost)], "request")) == [replace(lost, origin="request, line 1")]
