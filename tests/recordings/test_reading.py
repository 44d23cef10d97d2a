"""Files of recorded conversations, read one conversation after the other."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.messages import text_of
from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.reading import Read, Unreadable, read_conversations

CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is A1?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"order":"A1"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "on the way"},
        {"role": "assistant", "content": "It is on the way."},
        {"role": "user", "content": "Thanks"},
        {"role": "assistant", "content": "You are welcome."},
    ]
}


def written(folder: Path, *lines: object, name: str = "chats.jsonl") -> Path:
    path = folder / name
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def only(items: Iterator[Read]) -> RecordedConversation:
    (item,) = items
    assert isinstance(item, RecordedConversation), item
    return item


def problems(items: Iterator[Read]) -> list[str]:
    return [str(item) for item in items if isinstance(item, Unreadable)]


def ids(items: Iterator[Read]) -> list[str]:
    return [item.id if isinstance(item, RecordedConversation) else "unreadable" for item in items]


def test_fine_tuning_lines_are_conversations_with_turns(tmp_path: Path) -> None:
    conversation = only(read_conversations(written(tmp_path, CHAT)))
    assert [text_of(one) for one in conversation.seeds] == ["Be brief."]
    assert [[one.role for one in turn.all_messages] for turn in conversation.turns] == [
        ["user", "assistant", "tool", "assistant"],
        ["user", "assistant"],
    ]
    assert conversation.origin == f"{tmp_path}/chats.jsonl, line 1"
    assert conversation.id == f"{tmp_path}/chats.jsonl:1"


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, CHAT, '{"messages": [', "7", "", {"text": "x"}, CHAT)
    read = list(read_conversations(path))
    assert [isinstance(item, Unreadable) for item in read] == [False, True, True, True, False]
    assert problems(iter(read)) == [
        f"{path}:2: is not valid JSON: unexpected end of data (column 15)",
        f"{path}:3: is a JSON number, not a conversation",
        f"{path}:5: is in no known format (its fields: text); name where its messages are with fields",
    ]


def test_a_message_that_cannot_be_read_is_named_by_its_place(tmp_path: Path) -> None:
    odd = {"messages": [*CHAT["messages"], {"role": "wizard", "content": "x"}]}
    (problem,) = problems(read_conversations(written(tmp_path, odd)))
    assert 'message 8 has the role "wizard"' in problem


def test_reading_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "a", **CHAT}, "{", {"id": "b", **CHAT}, {"id": "c", **CHAT})
    assert ids(read_conversations(path, start=2)) == ["b", "c"]


def test_a_second_conversation_with_an_id_is_refused_and_the_first_named(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "a", **CHAT}, {"id": "a", **CHAT})
    assert problems(read_conversations(path)) == [f'{path}:2: has the id "a" of {path}, line 1']
    assert problems(read_conversations(path, start=1)) == [f'{path}:2: has the id "a" of {path}, line 1']


@pytest.mark.parametrize("begin", ["", "\ufeff", "\n\n", "  "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_marks_and_line_ends_do_not_matter(tmp_path: Path, begin: str, end: str) -> None:
    text = begin + json.dumps({"id": "a", **CHAT}) + end + json.dumps({"id": "b", **CHAT})
    (tmp_path / "x").write_bytes(text.encode())
    assert ids(read_conversations(tmp_path / "x")) == ["a", "b"]


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_list_and_a_lone_document_are_read_as_lines_are(tmp_path: Path, indent: int | None) -> None:
    both = [{"id": "a", **CHAT}, {"id": "b", **CHAT}]
    assert ids(read_conversations(written(tmp_path, json.dumps(both, indent=indent)))) == ["a", "b"]
    assert ids(read_conversations(written(tmp_path, json.dumps(both[0], indent=indent)))) == ["a"]
    after_each_other = "\n".join(json.dumps(one, indent=indent) for one in both)
    assert ids(read_conversations(written(tmp_path, after_each_other))) == ["a", "b"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_messages_is_one_conversation(tmp_path: Path, indent: int | None) -> None:
    path = written(tmp_path, json.dumps(CHAT["messages"], indent=indent))
    assert len(only(read_conversations(path)).turns) == 2
    lists = written(tmp_path, CHAT["messages"], CHAT["messages"])
    assert [len(one.turns) for one in read_conversations(lists) if isinstance(one, RecordedConversation)] == [
        2,
        2,
    ]


def test_packed_files_folders_and_patterns_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps({"id": "a", **CHAT}).encode()))
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep", {"id": "c", **CHAT}, name="c.json")
    written(tmp_path, {"id": "b", **CHAT}, name="b.log")
    written(tmp_path, {"id": "d", **CHAT}, name=".hidden")
    assert ids(read_conversations(tmp_path)) == ["a", "b", "c"]
    assert ids(read_conversations(tmp_path / "*.log")) == ["b"]
    assert ids(read_conversations([tmp_path / "deep", tmp_path / "b.log"])) == ["c", "b"]


def test_what_is_not_there_or_empty_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder").mkdir()
    for name, problem in [
        ("none.jsonl", "no such file"),
        ("empty.jsonl", "is empty; a recording holds at least one conversation"),
        ("folder", "the folder holds no file"),
        ("*.parquet", "no file is named like this"),
    ]:
        with pytest.raises(InvalidInput, match=problem):
            read_conversations(tmp_path / name)
    for text in ("[]", "\n\n", " "):
        (tmp_path / "blank").write_text(text)
        assert problems(read_conversations(tmp_path / "blank")) == [
            f"{tmp_path}/blank: holds no conversation"
        ]


def test_a_list_with_an_item_on_every_line_is_a_list(tmp_path: Path) -> None:
    items = (json.dumps({"id": name, **CHAT}) for name in "abc")
    path = written(tmp_path, "[" + ",\n".join(items) + "]")
    assert ids(read_conversations(path)) == ["a", "b", "c"]


def test_conversations_on_one_line_are_told_apart(tmp_path: Path) -> None:
    one = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    (tmp_path / "x").write_text(json.dumps([one, one, one]))
    assert [
        item.id for item in read_conversations(tmp_path / "x") if isinstance(item, RecordedConversation)
    ] == [
        f"{tmp_path}/x:1",
        f"{tmp_path}/x:1:2",
        f"{tmp_path}/x:1:3",
    ]
