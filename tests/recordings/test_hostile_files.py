"""Files that are broken, huge, deep or packed to burst: each is named, and what is good beside it is read."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.json_stream import LONGEST
from evalstudio.recordings.reading import Unreadable, read_conversations

GOOD = '{"id":"good","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}'


def outcome(path: Path) -> tuple[list[str], list[str]]:
    items = list(read_conversations(path))
    read = [item.id for item in items if isinstance(item, RecordedConversation)]
    return read, [str(item) for item in items if isinstance(item, Unreadable)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"messages":', "is not valid JSON"),
        (b"\xff\xfe{}", "is not UTF-8 text"),
        (b'{"x":' + b"[" * 300 + b"]" * 300 + b"}", "is nested deeper than 200 levels"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is not valid JSON"),
        (b'{"messages":[{"role":"user","content":"a","n":NaN}]}', "messages[0].n is nan"),
        (b'{"messages":[{"role":"user","content":"a","content":"b"}]}', '"content" is there twice'),
        (b'{"messages":[],"n":NaN,"n":1}', '"n" is there twice'),
        (b'{"messages":"text"}', "is in no known format"),
        (b'{"messages":[]}', "has no message of the user"),
        (b'{"messages":[7]}', "message 1 is an int"),
        (b'{"messages":[{"role":"user","content":"a"}],"trial":-1}', "trial is a JSON number"),
        (b"null", "is a JSON null, not a conversation"),
    ],
)
def test_a_bad_line_costs_itself_alone(tmp_path: Path, line: bytes, problem: str) -> None:
    (tmp_path / "x").write_bytes(
        GOOD.replace("good", "before").encode() + b"\n" + line + b"\n" + GOOD.encode()
    )
    read, problems = outcome(tmp_path / "x")
    assert read == ["before", "good"]
    assert len(problems) == 1
    assert f"{tmp_path}/x:2: " in problems[0]
    assert problem in problems[0]


@pytest.mark.parametrize("end", ["", "\n"])
def test_an_object_by_itself_that_says_something_twice_is_refused(tmp_path: Path, end: str) -> None:
    said = '[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]'
    (tmp_path / "x").write_text(f'{{"messages":{said},\n"messages":{said}}}{end}')
    read, problems = outcome(tmp_path / "x")
    assert read == []
    assert '"messages" is there twice' in problems[0]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_conversation_that_is_too_large_is_passed_over(tmp_path: Path, indent: int | None) -> None:
    huge = {"messages": [{"role": "user", "content": 'x"\\' * (LONGEST // 4)}]}
    (tmp_path / "list").write_text(json.dumps([huge, json.loads(GOOD)], indent=indent))
    (tmp_path / "lines").write_text(f"{json.dumps(huge)}\n{GOOD}\n")
    for name in ("list", "lines"):
        read, problems = outcome(tmp_path / name)
        assert read == ["good"]
        assert len(problems) == 1
        assert f"than {LONGEST >> 20} MB" in problems[0]


def test_a_list_that_ends_in_the_middle_gives_what_came_before(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f"[\n{GOOD},\n" + GOOD[:40])
    read, problems = outcome(tmp_path / "x")
    assert read == ["good"]
    assert "it ends in the middle" in problems[0]


def test_nan_in_what_others_measured_does_not_matter(tmp_path: Path) -> None:
    sample = {"id": 1, "epoch": 1, "uuid": "u", "messages": json.loads(GOOD)["messages"]}
    log = {"eval": {"task": "t"}, "samples": [{**sample, "scores": {"s": {"value": float("nan")}}}]}
    (tmp_path / "log.json").write_text(json.dumps(log, indent=2))
    assert outcome(tmp_path / "log.json") == (["u"], [])


def test_packed_files_are_read_and_bombs_are_not(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", GOOD)
        archive.writestr("bomb.jsonl", b" " * (LONGEST * 2))
    read, problems = outcome(tmp_path / "x.zip")
    assert read == ["good"]
    assert problems == [f"{tmp_path}/x.zip/bomb.jsonl: unpacks to more than 500 times its size"]
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GOOD.encode() * 1)[:-9])
    assert "cannot be read to its end" in outcome(tmp_path / "cut.gz")[1][-1]
    (tmp_path / "cut.zip").write_bytes((tmp_path / "x.zip").read_bytes()[:200])
    assert "is no whole zip archive" in outcome(tmp_path / "cut.zip")[1][0]


def test_what_is_no_json_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("role: user\n" * 1000)
    assert outcome(tmp_path / "x")[1] == [f'{tmp_path}/x:1: is not JSON: it begins with "role: user"']


def test_unknown_formats_and_targets_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(GOOD)
    with pytest.raises(InvalidInput, match='"opnai" is no format; did you mean openai'):
        read_conversations(tmp_path / "x", format="opnai")
    with pytest.raises(InvalidInput, match="is no target"):
        read_conversations(tmp_path / "x", fields={"groundtruth": "a"})
    with pytest.raises(InvalidInput, match="is not a path"):
        read_conversations(tmp_path / "x", fields={"id": "a[b"})
