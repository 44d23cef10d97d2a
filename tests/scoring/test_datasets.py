"""Datasets, broken ones above all: every fault is named by file and line, and can be skipped and counted."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import COMMAND
from tests.support.scoring_files import LENGTH_PLAN, PLAN, Folder, command, rows

from evalstudio.scoring import datasets
from evalstudio.scoring.datasets import BadRecord, Chunk, read_chunks

GOOD = b'{"id": "a", "response": "hello"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.plan(LENGTH_PLAN)
    return made


def jsonl(*lines: bytes) -> bytes:
    return b"".join(lines)


BROKEN: dict[str, tuple[str, bytes, int, str, int, int]] = {
    # name: (file, content, line of the fault, words of the message, bad, records)
    "bad JSON on line 7": ("d.jsonl", GOOD * 6 + b'{"id": \n' + GOOD * 3, 7, "is not valid JSON", 1, 9),
    "a missing field": (
        "d.jsonl",
        GOOD + b'{"id": "b", "prompt": "x"}\n',
        2,
        'has no "response" field',
        1,
        1,
    ),
    "a null response": ("d.jsonl", GOOD + b'{"response": null}\n', 2, 'has no "response" field', 1, 1),
    "a wrong type": ("d.jsonl", GOOD + b'{"response": "x", "context": 5}\n', 2, "context: ", 1, 1),
    "a wrong usage": ("d.jsonl", GOOD + b'{"response": "x", "latencyMs": -1}\n', 2, "latencyMs: ", 1, 1),
    "a list instead of an object": (
        "d.jsonl",
        GOOD + b"[1]\n" + GOOD,
        2,
        "is a JSON list, not an object",
        1,
        2,
    ),
    "text instead of an object": ("d.jsonl", b'"hello"\n' + GOOD, 1, "is a JSON text", 1, 1),
    "a number too large": (
        "d.jsonl",
        GOOD + b'{"response": ' + b"9" * 400 + b"}\n",
        2,
        "not valid JSON",
        1,
        1,
    ),
    "latin-1": (
        "d.jsonl",
        GOOD + '{"response": "Grüße"}\n'.encode("latin-1") + GOOD,
        2,
        "is not UTF-8 text",
        1,
        2,
    ),
    "UTF-16 inside": ("d.jsonl", GOOD + '{"response": "x"}'.encode("utf-16-be") + b"\n", 2, "is not", 1, 1),
    "half a character": ("d.jsonl", GOOD + b'{"response": "\\ud800"}\n', 2, "is not valid JSON", 1, 1),
    "two objects on a line": ("d.jsonl", GOOD + GOOD.strip() * 2 + b"\n", 2, "is not valid JSON", 1, 1),
    "nested too deep": (
        "d.jsonl",
        GOOD + b'{"response":' + b"[" * 5000 + b"]" * 5000 + b"}\n",
        2,
        "is not",
        1,
        1,
    ),
    "too few cells": (
        "d.csv",
        b"id,response\na,hello\nb\nc,hi there\n",
        3,
        "has 1 cells where the header has 2",
        1,
        2,
    ),
    "too many cells": (
        "d.csv",
        b"id,response\na,hello\nb,x,y\n",
        3,
        "has 3 cells where the header has 2",
        1,
        1,
    ),
    "latin-1 CSV": ("d.csv", b"id,response\na,hello\nb,Gr\xfc\xdfe\nc,fine\n", 3, "is not UTF-8 text", 1, 2),
    "a stray quote": ("d.csv", b'id,response\na,hello\nb,"x"y\nc,fine\n', 3, "is not valid CSV", 1, 2),
    "an open quote": (
        "d.csv",
        b'id,response\na,hello\nb,"never closed\nc,fine\n',
        3,
        "is not valid CSV",
        1,
        1,
    ),
    "a bad cell of JSON": ("d.csv", b"id,response,context\na,hello,{}\nb,hi,{oops\n", 3, "context: ", 1, 1),
    "a wrong row of TSV": ("d.tsv", b"id\tresponse\na\thello\nb\n", 3, "has 1 cells", 1, 1),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_record_is_named_by_line_and_can_be_skipped_and_counted(
    folder: Folder, capsys: pytest.CaptureFixture[str], case: tuple[str, bytes, int, str, int, int]
) -> None:
    name, content, line, words, bad, records = case
    dataset = folder.dataset(content, name)
    said = command(capsys, "score", dataset, "-c", folder.path / "plan.json")
    assert said.code == 2
    assert f"{dataset}:{line}: " in said.err
    assert words in said.err
    assert "--skip-bad" in said.err
    assert "Traceback" not in said.err
    skipped = command(capsys, "score", dataset, "-c", folder.path / "plan.json", "--skip-bad", "--json")
    assert skipped.code == 0
    assert {key: json.loads(skipped.out)[key] for key in ("bad", "records")} == {
        "bad": bad,
        "records": records,
    }


UNREADABLE: dict[str, tuple[str, bytes, str]] = {
    "empty": ("d.jsonl", b"", ":1: is empty"),
    "only blank lines": ("d.jsonl", b"\n  \n\r\n\t\n", ":1: holds no records"),
    "only a byte order mark": ("d.jsonl", b"\xef\xbb\xbf", ":1: holds no records"),
    "empty CSV": ("d.csv", b"", ":1: is empty"),
    "blank CSV": ("d.csv", b"\n\n", ":1: the first line must name the columns"),
    "only a header": ("d.csv", b"id,response\n", ":1: holds no records"),
    "a column twice": ("d.csv", b"id,response,id\na,b,c\n", ':1: column "id" appears twice'),
    "a column inside a column": ("d.csv", b"response,context,context.a\na,{},c\n", 'reaches into "context"'),
    "CSV in UTF-16": ("d.csv", "id,response\na,hello\n".encode("utf-16"), ":1: is not UTF-8 text"),
    "CSV in UTF-16 without a mark": (
        "d.csv",
        "id,response\n".encode("utf-16-be"),
        ":1: the first line must name",
    ),
    "no Parquet": ("d.parquet", b"PAR1 nothing", "is not a readable Parquet file"),
}


@pytest.mark.parametrize("more", [[], ["--skip-bad"]])
@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_dataset_without_a_readable_record_is_an_error_either_way(
    folder: Folder, capsys: pytest.CaptureFixture[str], case: tuple[str, bytes, str], more: list[str]
) -> None:
    name, content, words = case
    dataset = folder.dataset(content, name)
    said = command(capsys, "score", dataset, "-c", folder.path / "plan.json", *more)
    assert said.code == 2
    assert str(dataset) in said.err
    assert words in said.err


def test_a_dataset_in_another_encoding_is_counted_line_by_line_and_still_an_error(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = folder.dataset('{"response": "hello"}\n{"response": "there"}\n'.encode("utf-16"))
    said = command(capsys, "score", dataset, "-c", folder.path / "plan.json")
    assert said.code == 2
    assert f"{dataset}:1: is not UTF-8 text" in said.err
    skipped = command(capsys, "score", dataset, "-c", folder.path / "plan.json", "--skip-bad")
    assert skipped.code == 2
    assert "3 unreadable records" in skipped.out
    assert "not one of its 3 records could be read" in skipped.err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path / "missing.jsonl", "cannot be read: No such file"),
        (lambda path: path, "is a folder"),
    ],
)
def test_a_dataset_that_is_not_there_is_an_error_and_touches_no_results(
    folder: Folder, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Path], words: str
) -> None:
    folder.output.write_text("earlier results\n")
    said = command(capsys, "score", make(folder.path), "-c", folder.path / "plan.json", "-o", folder.output)
    assert said.code == 2
    assert words in said.err
    assert folder.output.read_text() == "earlier results\n"


WELL_FORMED: dict[str, tuple[str, bytes, list[str]]] = {
    "a byte order mark": ("d.jsonl", b"\xef\xbb\xbf" + GOOD + GOOD, ["a", "a"]),
    "CRLF": ("d.jsonl", (GOOD + GOOD).replace(b"\n", b"\r\n"), ["a", "a"]),
    "no last newline": ("d.jsonl", GOOD + GOOD.strip(), ["a", "a"]),
    "blank lines between": ("d.jsonl", b"\n\n" + GOOD + b" \n" + GOOD, ["a", "a"]),
    "no id: the line is one": ("d.jsonl", b'\n{"response": "x"}\n{"response": "y"}\n', ["2", "3"]),
    "numbers as ids": ("d.jsonl", b'{"id": 5, "response": "x"}\n', ["5"]),
    "an unknown suffix is JSON lines": ("d.log", GOOD, ["a"]),
    "an unknown column": ("d.jsonl", b'{"id": "a", "response": "x", "mood": "good"}\n', ["a"]),
    "CSV": ("d.csv", b"id,response\na,hello\nb,hi\n", ["a", "b"]),
    "CSV with a mark, CRLF and blank rows": (
        "d.csv",
        b"\xef\xbb\xbfid,response\r\na,hello\r\n\r\nb,hi",
        ["a", "b"],
    ),
    "cells of several lines": ("d.csv", b'id,response\na,"one\ntwo, ""three""\n"\nb,hi\n', ["a", "b"]),
    "an upper-case suffix": ("D.CSV", b"id,response\na,hello\n", ["a"]),
    "TSV": ("d.tsv", b"id\tresponse\na\thello, you\n", ["a"]),
}


@pytest.mark.parametrize("case", WELL_FORMED.values(), ids=WELL_FORMED.keys())
def test_every_well_formed_dataset_is_read(folder: Folder, case: tuple[str, bytes, list[str]]) -> None:
    name, content, ids = case
    summary = folder.score(folder.dataset(content, name))
    assert summary.bad == 0
    assert [result["recordId"] for result in folder.results()] == ids


def test_the_line_of_every_record_is_the_line_in_the_file(folder: Folder) -> None:
    folder.dataset(b'id,response\na,"one\ntwo\n"\nb,hi\n\nc,"x\ny"\nd,z\n', "d.csv")
    folder.score("d.csv")
    assert [result["line"] for result in folder.results()] == [2, 5, 7, 9]


def test_cells_may_hold_json(folder: Folder) -> None:
    folder.plan(
        {
            "criteria": [{"name": "found"}],
            "evaluators": [
                {
                    "type": "keyword-coverage",
                    "criterionName": "found",
                    "keywordsSourceField": "context.words",
                },
                {"type": "token-usage"},
            ],
        }
    )
    with open(folder.path / "d.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["response", "context", "tokensUsage"])
        usage = json.dumps({"input_tokens": 3, "output_tokens": 4})
        table.writerow(["hello there", json.dumps({"words": ["hello"]}), usage])
    summary = folder.score("d.csv")
    assert summary.criteria["found"].mean == 1.0
    assert summary.metrics["token-usage"].mean == 7.0


def test_dotted_columns_reach_into_objects(folder: Folder) -> None:
    folder.plan(
        {
            "criteria": [{"name": "same", "scale": "numeric"}],
            "evaluators": [
                {
                    "type": "lexical-similarity",
                    "criterionName": "same",
                    "referenceField": "context.order.text",
                }
            ],
        }
    )
    folder.dataset("response,context.order.text,context.order.id\nhello,hello,7\nhello,,8\n", "d.csv")
    summary = folder.score("d.csv")
    assert summary.criteria["same"].mean == 1.0
    assert summary.criterion_errors == {"same": 1}


def parquet(folder: Folder, given: list[dict[str, Any]], **options: Any) -> Path:
    import pyarrow
    import pyarrow.parquet

    path = folder.path / "d.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(given), path, **options)
    return path


def test_parquet_is_read_with_nested_values(folder: Folder) -> None:
    folder.plan(PLAN)
    given = [{**row, "context": {"n": n}, "metadata": {"tags": ["a"]}} for n, row in enumerate(rows(600))]
    summary = folder.score(parquet(folder, given, row_group_size=100))
    assert summary.records == 600
    assert [result["line"] for result in folder.results()] == list(range(1, 601))


def test_a_parquet_row_without_a_response_is_named_by_its_number(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = parquet(folder, [{"response": "a"}, {"response": None}, {"response": "c"}])
    said = command(capsys, "score", dataset, "-c", folder.path / "plan.json")
    assert (said.code, f"{dataset}:2: " in said.err) == (2, True)
    assert folder.score(dataset, skip_bad=True).bad == 1


def test_what_parquet_holds_that_cannot_be_read_is_told(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow
    import pyarrow.parquet

    far = pyarrow.array([2**55], pyarrow.timestamp("ms"))
    answer = pyarrow.array(["yes"])
    for columns, names, words in (
        ([answer, far], ["response", "when"], ":1: holds a value that cannot be read: "),
        ([answer, answer], ["response", "response"], ':1: column "response" appears twice'),
    ):
        table = pyarrow.Table.from_arrays(columns, names=names)
        pyarrow.parquet.write_table(table, folder.path / "d.parquet")
        said = command(capsys, "score", folder.path / "d.parquet", "-c", folder.path / "plan.json")
        assert (said.code, words in said.err) == (2, True), said.err


def test_one_value_of_parquet_that_cannot_be_read_costs_its_record_alone(folder: Folder) -> None:
    import pyarrow
    import pyarrow.parquet

    times = pyarrow.array([0, 2**55, 0], pyarrow.timestamp("ms"))
    table = pyarrow.Table.from_arrays([pyarrow.array(["a", "b", "c"]), times], names=["response", "when"])
    pyarrow.parquet.write_table(table, folder.path / "d.parquet")
    summary = folder.score(folder.path / "d.parquet", skip_bad=True)
    assert (summary.records, summary.bad, summary.left_out[0][0]) == (2, 1, 2)


def test_bytes_in_parquet_are_texts_where_they_can_be(folder: Folder) -> None:
    folder.plan(PLAN)
    given = [{"id": "a", "response": "grüße".encode(), "groundTruth": "grüße", "image": b"\xff"}]
    assert folder.score(parquet(folder, given)).criteria["close"].mean == 1.0


def test_without_pyarrow_the_error_says_what_to_install(
    folder: Folder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    said = command(capsys, "score", folder.dataset(b"PAR1", "d.parquet"), "-c", folder.path / "plan.json")
    assert said.code == 2
    assert 'pip install "evalstudio[parquet]"' in said.err


MEASURES = """
import sys
from pathlib import Path
from evalstudio.scoring.job import ScoringJob
from evalstudio.scoring.job import score_dataset
from tests.support.memory import peak_megabytes
summary, _ = score_dataset(ScoringJob(Path(sys.argv[1]), Path(sys.argv[2]), skip_bad=True))
print(summary.bad, summary.records, peak_megabytes())
"""


@pytest.mark.parametrize(
    ("name", "before", "after", "line"),
    [("d.jsonl", GOOD, b'"}\n' + GOOD, 2), ("d.csv", b"id,response\na,hello\n", b"\nb,hi\n", 3)],
)
def test_a_line_of_100_megabytes_is_named_and_skipped_in_bounded_memory(
    folder: Folder, capsys: pytest.CaptureFixture[str], name: str, before: bytes, after: bytes, line: int
) -> None:
    dataset = folder.path / name
    with open(dataset, "wb") as file:
        file.write(before + b'{"response": "')
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(after)
    said = command(capsys, "score", dataset, "-c", folder.path / "plan.json")
    assert said.code == 2
    assert f"{dataset}:{line}: the line is longer than 16 MB" in said.err
    done = subprocess.run(
        [sys.executable, "-c", MEASURES, str(dataset), str(folder.path / "plan.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    bad, records, megabytes = map(int, done.stdout.split())
    assert (bad, records) == (1, 2)
    assert megabytes < 160


def test_a_long_line_at_the_end_without_a_newline_is_named(
    folder: Folder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "LONGEST_LINE", 1000)
    dataset = folder.dataset(GOOD + b'{"response": "' + b"x" * 400_000)
    said = command(capsys, "score", dataset, "-c", folder.path / "plan.json")
    assert f"{dataset}:2: the line is longer" in said.err


def test_a_file_full_of_bad_rows_is_cut_into_chunks_too(folder: Folder) -> None:
    dataset = folder.dataset(b"id,response\n" + b"x\n" * 5000, "d.csv")
    chunks = list(read_chunks(dataset))
    assert len(chunks) > 3
    assert sum(len(chunk.bad) for chunk in chunks) == 5000


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_chunks_lose_nothing_wherever_they_are_cut(folder: Folder, chunk_bytes: int, ending: bytes) -> None:
    content = b"\n".join(b'{"n": %d, "t": "%s"}' % (n, b"x" * (n * 13 % 90)) for n in range(50)) + ending
    found = [
        (number, json.loads(text)["n"])
        for chunk in read_chunks(folder.dataset(content), chunk_bytes=chunk_bytes)
        for number, text in chunk.lines()
    ]
    assert found == [(n + 1, n) for n in range(50)]


def test_the_share_read_grows_to_the_whole(folder: Folder) -> None:
    for dataset in (
        folder.dataset(rows(3000)),
        folder.dataset("id,response\n" + "a,hello there\n" * 30_000, "d.csv"),
        parquet(folder, rows(9000)),
    ):
        shares = [chunk.share for chunk in read_chunks(dataset, chunk_bytes=1 << 14)]
        assert shares == sorted(shares)
        assert shares[0] < 0.5
        assert shares[-1] == 1.0


def test_a_part_of_a_chunk_keeps_its_lines_and_its_faults() -> None:
    bad = [BadRecord("d", line, "x") for line in (3, 9)]
    chunk = Chunk(b"a\nb\nc\nd", [2, 4, 6, 8], bad)
    part = chunk.between(2, 6)
    assert list(part.lines()) == [(4, b"b"), (6, b"c")]
    assert [problem.line for problem in part.bad] == [3]
    assert chunk.last_line == 9


@pytest.mark.parametrize("lead", [b"", b"\xef\xbb\xbf"])
def test_a_pipe_is_a_dataset_too(folder: Folder, lead: bytes) -> None:
    said = subprocess.run(
        [COMMAND, "score", "/dev/stdin", "-c", "plan.json", "-o", "/dev/null", "--json"],
        cwd=folder.path,
        input=lead + GOOD * 3,
        capture_output=True,
        check=True,
    )
    assert json.loads(said.stdout)["records"] == 3


def test_an_empty_cell_is_an_empty_answer_as_in_json_lines(folder: Folder) -> None:
    folder.plan({"evaluators": [{"type": "regex", "config": {"pattern": "refund"}}]})
    folder.score(folder.dataset("id,response\na,a refund\nb,\n", "d.csv"))
    from_csv = [(one["recordId"], one["outcome"]) for one in folder.results()]
    folder.score(folder.dataset([{"id": "a", "response": "a refund"}, {"id": "b", "response": ""}]))
    assert [(one["recordId"], one["outcome"]) for one in folder.results()] == from_csv
    assert from_csv == [("a", "pass"), ("b", "fail")]


def test_an_empty_cell_of_another_name_is_an_empty_answer_too(folder: Folder) -> None:
    plan = {"evaluators": [{"type": "regex", "config": {"pattern": "x"}}], "fields": {"response": "answer"}}
    folder.plan(plan)
    summary = folder.score(folder.dataset("id,answer,groundTruth\na,,\n", "d.csv"))
    assert summary.outcomes["fail"] == 1


def test_a_missing_column_is_an_error(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = folder.dataset("id,reply\na,hello\n", "d.csv")
    said = command(capsys, "score", dataset, "-c", folder.path / "plan.json")
    assert said.code == 2
    assert 'd.csv:2: has no "response" field to score' in said.err
