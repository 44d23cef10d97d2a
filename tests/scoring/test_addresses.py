"""Datasets and results at addresses: an S3 server of the tests, and ``file://`` where any will do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.s3_server import SECRET, S3Server, running_s3
from tests.support.scoring_files import CommandResult, Folder, command, rows

from evalstudio.base.problems import InvalidInput
from evalstudio.scoring import shards_here
from evalstudio.scoring.datasets import DatasetError
from evalstudio.scoring.plan import ScoringJob
from evalstudio.scoring.shards_here import score_shards_here


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with pytest.MonkeyPatch.context() as variables, running_s3(variables) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.plan()
    return folder


@pytest.fixture
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstudio.scoring.sharded.shard_bytes", lambda *_, **__: 600)


def score(
    capsys: pytest.CaptureFixture[str], folder: Folder, dataset: str | Path, *more: str | Path
) -> CommandResult:
    return command(capsys, "score", dataset, "--plan", folder.path / "plan.json", "--json", *more)


def compared(lines: list[bytes]) -> list[dict[str, Any]]:
    """Results without what says when they were made and of which file."""
    results = [orjson.loads(line) for line in lines]
    for one in results:
        del one["timestamp"], one["inputSnapshot"]["dataset"]
    return results


@pytest.mark.usefixtures("_small_shards")
def test_a_bucket_comes_to_what_a_file_comes_to(
    s3: S3Server, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    records = [*rows(40), *rows(2)]
    here = folder.dataset(records)
    columns = {name: [row[name] for row in records] for name in records[0]}
    table = folder.path / "data.parquet"
    parquet.write_table(arrow.table(columns), table, row_group_size=7)
    for path in (here, table):
        s3.put(f"data{path.suffix}", path.read_bytes())
        expected = score(capsys, folder, path, "-o", folder.output)
        lines = compared(folder.output.read_bytes().splitlines())
        for more in ((), ("--workers", "2"))[: 2 if path == here else 1]:
            there = score(capsys, folder, f"s3://evals/data{path.suffix}", "-o", "s3://evals/results/", *more)
            assert (there.code, json.loads(there.out)) == (0, json.loads(expected.out)), there.err
            assert compared(s3.lines("results/")) == lines
        # From a bucket to a path: one file, as ever.
        back = score(capsys, folder, f"s3://evals/data{path.suffix}", "-o", folder.output)
        assert json.loads(back.out) == json.loads(expected.out)
        assert compared(folder.output.read_bytes().splitlines()) == lines
    manifest = json.loads(s3.get("results/manifest.json"))
    files = [f"results/{name}" for name in manifest["results"]]
    assert manifest["isComplete"]
    assert [name for name in s3.names("results/") if name.endswith(".jsonl")] == files
    assert len(files) > 1


def test_secrets_are_in_nothing_that_is_kept_or_said(
    s3: S3Server, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    s3.put("own.jsonl", folder.dataset(rows(5)).read_bytes())
    query = f"endpoint_override={s3.url.removeprefix('http://')}&scheme=http&region=us-east-1"
    signed = f"s3://tester:{SECRET}@evals"
    done = score(capsys, folder, f"{signed}/own.jsonl?{query}", "-o", f"{signed}/own/?{query}")
    assert done.code == 0, done.err
    said = [done.out, done.err]
    for dataset, output in ((f"{signed}/gone.jsonl?{query}", "own"), (f"{signed}/own.jsonl?{query}", "a b")):
        failed = score(capsys, folder, dataset, "-o", f"s3://tester:{SECRET}@{output}/x/?{query}")
        assert failed.code == 2
        said += [failed.out, failed.err]
    said += [s3.get(name).decode(errors="replace") for name in s3.names()]
    assert [text for text in said if SECRET in text] == []
    assert "s3://evals/gone.jsonl: there is no such file" in said[3]


def test_what_cannot_be_done_at_an_address_is_told(
    s3: S3Server, folder: Folder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("few.jsonl", folder.dataset(rows(3)).read_bytes())
    s3.put("mine/letter.txt", b"dear")
    report = folder.path / "report.md"
    for words, more in (
        ("end it with /", ("-o", "s3://evals/results.jsonl")),
        ("s3://evals/mine/: holds something, but no results", ("-o", "s3://evals/mine/")),
        ("s3://nowhere/x/: cannot be written", ("-o", "s3://nowhere/x/")),
        ("--report needs --output", ("--report", f"md={report}")),
        ("--retry-errors goes with --resume", ("-o", "s3://evals/r/", "--retry-errors")),
    ):
        said = score(capsys, folder, "s3://evals/few.jsonl", *more)
        assert (said.code, words in said.err) == (2, True), said
    assert s3.names("mine/") == ["mine/letter.txt"]
    assert not report.exists()
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    said = score(capsys, folder, "s3://evals/few.jsonl")
    assert (said.code, 'pip install "evalstudio[s3]"' in said.err) == (2, True)


class Stopped(BaseException):
    """The command is gone."""


def job_at(folder: Folder, **more: Any) -> ScoringJob:
    return replace(folder.job(**more), output=None, output_address=f"file://{folder.path}/results/")


def stopped_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    score_shard, scored = shards_here.score_shard, list[int]()

    async def score(*arguments: Any) -> Any:
        if len(scored) == count:
            raise Stopped
        scored.append(1)
        return await score_shard(*arguments)

    monkeypatch.setattr(shards_here, "score_shard", score)


def results_in(folder: Folder) -> list[dict[str, Any]]:
    files = sorted((folder.path / "results").glob("*.jsonl"))
    return compared(b"".join(one.read_bytes() for one in files).splitlines())


@pytest.mark.usefixtures("_small_shards")
def test_shards_at_an_address_are_resumed_with_every_record_once(folder: Folder) -> None:
    folder.dataset([*rows(60), *rows(1)])
    summary = folder.score()
    expected = compared(folder.output.read_bytes().splitlines())
    for number, count in enumerate((2, 3)):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
            stopped_after(count, patch)
            score_shards_here(job_at(folder, resume=number > 0))
    # What a killed worker leaves.
    (folder.path / "results" / "000001-0-dead.jsonl").write_bytes(b'{"recordId":"r1","li')
    resumed, _ = score_shards_here(job_at(folder, resume=True))
    assert {**resumed.to_json(), "resumed": 0} == summary.to_json()
    assert 0 < resumed.resumed < 61
    assert results_in(folder) == expected
    again, _ = score_shards_here(job_at(folder, resume=True))
    assert (again.resumed, results_in(folder)) == (61, expected)
    folder.dataset([{**row, "response": "changed"} for row in rows(61)])
    with pytest.raises(InvalidInput, match="another dataset"):
        score_shards_here(job_at(folder, resume=True))
    folder.plan({**json.loads((folder.path / "plan.json").read_text()), "criteria": []})
    with pytest.raises(InvalidInput, match=r"results/: cannot be resumed: it was scored with another plan"):
        score_shards_here(job_at(folder, resume=True))


@pytest.mark.usefixtures("_small_shards")
def test_two_commands_do_not_mix_in_one_folder(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.dataset(rows(20))
    score_shard, entered = shards_here.score_shard, list[int]()

    async def score(*arguments: Any) -> Any:
        if not entered:
            entered.append(1)
            manifest = folder.path / "results" / "manifest.json"
            manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "token": "another"}))
        return await score_shard(*arguments)

    monkeypatch.setattr(shards_here, "score_shard", score)
    with pytest.raises(DatasetError, match=r"results/: another command has begun to write there"):
        score_shards_here(job_at(folder))
