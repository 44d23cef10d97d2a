"""Files of any size are read in the same memory, in every format, whether of lines or of one document."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.recordings.test_round_trips import WRITERS, Turns, inspect, langsmith, promptfoo
from tests.support.intake import chat_span, request_of

from evalstudio.recordings import documents, json_stream
from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.otlp_files import SpanGroups
from evalstudio.recordings.reading import Unreadable, read_conversations
from evalstudio.recordings.spans import read_json

_FILE_BYTES = 200_000_000
_MOST_MEGABYTES = 60
_NUMBER = "NUMBER"
_READ = """
import sys
from pathlib import Path
from tests.support.memory import peak_megabytes
from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.reading import read_conversations
before = peak_megabytes()
items = ((isinstance(one, RecordedConversation), one) for one in read_conversations(Path(sys.argv[1])))
count, bad = 0, ""
for is_read, one in items:
    count += is_read
    bad = bad or ("" if is_read else str(one)[:300])
print(count, peak_megabytes() - before, bad)
"""

Write = Callable[[Turns], dict[str, Any]]


def otlp(turns: Turns) -> dict[str, Any]:
    """A request with a call of a model for every turn, each of which has the history before it."""
    spans, said = list[dict[str, Any]](), list[tuple[str, str]]()
    for place, (question, _, answer) in enumerate(turns, 1):
        said.append(("user", question))
        spans.append(chat_span(1, place, conversation=_NUMBER, said=said, answer=answer))
        said.append(("assistant", answer))
    return request_of(*spans)


def wrapped(write: Write) -> tuple[str, str]:
    """What stands before and after the conversations where all of them are one document."""
    if write is inspect:
        return '{"eval": {"task": "t"}, "samples": [', "]}"
    if write is promptfoo:
        return '{"evalId": "e", "results": {"results": [', "]}}"
    if write is langsmith:
        return '{"runs": [', "]}"
    if write is otlp:
        return '{"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [', "]}]}]}"
    return "[", "]"


def texts(write: Write, *, is_document: bool, turns: Turns) -> list[str]:
    """A conversation as text, with a number in it; as one document, the items of the list that it is in."""
    whole = write(turns)
    if write is inspect:
        whole["samples"][0]["id"] = _NUMBER
        whole["eval"]["eval_id"] = _NUMBER
    items: list[Any] = [whole]
    if is_document and write is inspect:
        items = whole["samples"]
    if is_document and write is otlp:
        items = whole["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return [json.dumps(item) for item in items]


def written(path: Path, write: Write, *, is_document: bool, size: int, turns: Turns) -> int:
    """Write conversations until the file is as large as this; how many there are."""
    pieces, number, length = texts(write, is_document=is_document, turns=turns), 0, 0
    before, after = wrapped(write) if is_document else ("", "")
    # Traces are told apart too.
    trace = f'"traceId": "{1:032x}"'
    with path.open("w") as file:
        file.write(before + "\n" if is_document else "")
        while length < size:
            number += 1
            own = (
                one.replace(_NUMBER, f"n{number}").replace(trace, f'"traceId": "{number:032x}"')
                for one in pieces
            )
            text = ("," if is_document and number > 1 else "") + (",\n" if is_document else "\n").join(own)
            file.write(text + "\n")
            length += len(text)
        file.write(after)
    return number


def read_apart(path: Path) -> tuple[int, int, str]:
    """How many conversations a process of its own read, how much memory it needed for it, what was bad."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    count, megabytes, *bad = done.stdout.split(maxsplit=2)
    return int(count), int(megabytes), "".join(bad).strip()


@pytest.mark.soak
@pytest.mark.parametrize("is_document", [True, False])
@pytest.mark.parametrize("write", [*WRITERS, otlp])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, write: Write, is_document: bool) -> None:
    turns: Turns = [("q" * 3_000, {}, "a" * 3_000)] * 2
    count = written(tmp_path / "x", write, is_document=is_document, size=_FILE_BYTES, turns=turns)
    read, megabytes, bad = read_apart(tmp_path / "x")
    print(f"\n{write.__name__}, document: {is_document}: {read:,} read with {megabytes} MB")
    assert (read, bad) == (count, "")
    assert megabytes < _MOST_MEGABYTES


@pytest.mark.soak
def test_memory_does_not_grow_with_an_archive(tmp_path: Path) -> None:
    turns: Turns = [("q" * 3_000, {}, "a" * 3_000)] * 2
    (sample,) = texts(inspect, is_document=True, turns=turns)
    with zipfile.ZipFile(tmp_path / "x.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t", "eval_id": "e"}}))
        for number in range(_FILE_BYTES // len(sample)):
            archive.writestr(f"samples/{number}_epoch_1.json", sample.replace(_NUMBER, f"n{number}"))
    read, megabytes, bad = read_apart(tmp_path / "x.eval")
    print(f"\nan archive: {read:,} read with {megabytes} MB")
    assert (read, bad) == (_FILE_BYTES // len(sample), "")
    assert megabytes < _MOST_MEGABYTES


@pytest.fixture
def small_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 20 kB were as much as is held of a file at once."""
    for module in (documents, json_stream):
        monkeypatch.setattr(module, "LONGEST", 20_000)


@pytest.mark.usefixtures("small_values")
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("write", [*WRITERS, otlp])
def test_a_document_larger_than_what_is_held_is_read(
    tmp_path: Path, write: Write, indent: int | None
) -> None:
    path, turns = tmp_path / "x", [("question", dict[str, str](), "answer")]
    count = written(path, write, is_document=True, size=50_000, turns=turns)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=indent))
    items = list(read_conversations(path))
    assert [one for one in items if isinstance(one, Unreadable)] == []
    assert len(items) == count


@pytest.mark.usefixtures("small_values")
def test_a_line_longer_than_what_is_held_is_read_span_by_span(tmp_path: Path) -> None:
    turns: Turns = [(f"question {number}", {}, "answer " * 50) for number in range(12)]
    (line,) = texts(otlp, is_document=False, turns=turns)
    lines = [line.replace(_NUMBER, f"n{number}").replace(f"{1:032x}", f"{number:032x}") for number in (1, 2)]
    small = json.dumps(request_of(chat_span(3, 1, conversation="n3")))
    (tmp_path / "x").write_text("\n".join([small, *lines, small[:-9]]))
    bad, *read = read_conversations(tmp_path / "x")
    assert isinstance(bad, Unreadable)
    assert bad.line == 4
    turns_read = {one.id: len(one.turns) for one in read if isinstance(one, RecordedConversation)}
    assert turns_read == {"n1": 12, "n2": 12, "n3": 1}


@pytest.mark.usefixtures("small_values")
def test_what_cannot_be_split_says_how_it_can_be_read(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "x" * 9_000}, {"role": "assistant", "content": "y" * 9_000}]
    log = {"conversations": [{"messages": messages}] * 5}
    (tmp_path / "x").write_text(json.dumps(log, indent=1))
    (problem,) = read_conversations(tmp_path / "x")
    assert "every line is a document of its own (JSON lines)" in str(problem)


def test_a_conversation_of_too_many_spans_is_an_error_that_says_so() -> None:
    for limits in ({"most_spans": 2}, {"most_bytes": 700}):
        groups = SpanGroups("x", **limits)
        groups.add(read_json(request_of(*(chat_span(1, place) for place in range(1, 5))), "traces"))
        (one,) = groups.conversations()
        assert "spans were left out" in str(one.conversation.error)


def test_spans_that_were_sent_twice_count_once() -> None:
    request = request_of(chat_span(1, 1), chat_span(2, 2, conversation=None, answer="Other"))
    groups = SpanGroups("x")
    for _ in range(2):
        groups.add(read_json(request, "traces"))
    shown: Iterator[Any] = groups.conversations()
    assert [[turn.messages[-1].text for turn in one.conversation.turns] for one in shown] == [
        ["Hi."],
        ["Other"],
    ]
