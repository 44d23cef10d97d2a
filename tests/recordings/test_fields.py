"""``fields`` says where the parts of a conversation stand in a format nobody knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.reading import read_conversations

ODD = {
    "meta": {"key": 7, "answer": "42", "task": "t1", "at": "2026-01-01T12:00:00Z"},
    "data": {
        "turns": [
            {"who": "customer", "said": "a", "at": 1767268800},
            {"who": "bot", "said": "b", "at": 1767268802.5},
        ]
    },
}


def read(path: Path, document: Any, **fields: str) -> RecordedConversation:
    path.write_text(json.dumps(document))
    (item,) = read_conversations(path, fields={name.replace("__", "."): to for name, to in fields.items()})
    assert isinstance(item, RecordedConversation), item
    return item


def test_every_part_is_taken_from_its_path(tmp_path: Path) -> None:
    conversation = read(
        tmp_path / "x",
        ODD,
        messages="data.turns",
        messages__role="who",
        messages__content="said",
        messages__timestamp="at",
        roles__customer="user",
        id="meta.key",
        groundTruth="meta.answer",
        taskId="meta.task",
        startedAt="meta.at",
        metadata__first="data.turns[0].said",
    )
    assert [(one.role, one.text) for one in conversation.turns[0].all_messages] == [
        ("user", "a"),
        ("assistant", "b"),
    ]
    assert conversation.turns[0].latency_ms == 2500
    assert (conversation.id, conversation.ground_truth, conversation.task_id) == ("7", "42", "t1")
    assert conversation.metadata == {"first": "a"}
    assert conversation.started is not None


def test_a_known_format_is_completed(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    conversation = read(tmp_path / "x", {"messages": messages, "gold": "b"}, groundTruth="gold")
    assert conversation.ground_truth == "b"


def test_messages_that_are_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(json.dumps(ODD))
    (item,) = read_conversations(tmp_path / "x", fields={"messages": "data.said"})
    assert 'has nothing at "data.said"' in str(item)
