"""Datasets in shards: every record in exactly one of them, whatever the sizes, and resumed after any stop."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.support.scoring_files import LENGTH_PLAN, PLAN, Folder, rows

from evalstudio.base.problems import InvalidInput
from evalstudio.scoring import shard_folders
from evalstudio.scoring import shards as cutting
from evalstudio.scoring.dataset_files import DatasetFile
from evalstudio.scoring.datasets import LONGEST_LINE, BadRecord, Chunk, DatasetError, read_chunks
from evalstudio.scoring.job import set_up
from evalstudio.scoring.results_file import UNFINISHED, read_note
from evalstudio.scoring.shard_folders import MANIFEST, LocalFolder, Start, is_current
from evalstudio.scoring.shard_results import MergedShards, ShardedResults, folder_of
from evalstudio.scoring.shard_scoring import ShardOutcome, score_shard
from evalstudio.scoring.sharded import score_in_shards
from evalstudio.scoring.shards import (
    Shard,
    ShardIndex,
    byte_shards,
    carried_shards,
    index_chunks,
    index_shard,
    numbered,
)
from evalstudio.scoring.summary import DatasetSummary


class Killed(BaseException):
    """The driver is gone: nothing of it runs any more."""


@dataclass
class WorkersHere:
    """Scores shards in this process, in any order; may stop after some, as a killed driver would."""

    job: Any
    seed: int = 0
    stop_after: int | None = None
    sends: bool = False
    reads: bool = True
    count: int = 2
    meanwhile: Callable[[], object] | None = None
    scored: list[int] = field(default_factory=list[int])

    def can_read(self, dataset: DatasetFile) -> bool:
        return self.reads

    def index(self, shards: Iterable[Shard]) -> Iterator[tuple[Shard, ShardIndex]]:
        for shard in shards:
            yield shard, index_shard(shard, DatasetFile(self.job.dataset_name))

    def score(self, shards: Iterator[Shard], results: ShardedResults) -> Iterator[ShardOutcome]:
        todo = list(shards)
        random.Random(self.seed).shuffle(todo)
        resources, dataset = set_up(self.job), DatasetFile(self.job.dataset_name)
        with asyncio.Runner() as loop:
            for shard in todo:
                if len(self.scored) == self.stop_after:
                    raise Killed
                if self.meanwhile is not None and self.scored:
                    self.meanwhile()
                folder = None if self.sends else results.folder
                send = self.sends and results.folder is not None
                outcome = loop.run(score_shard(resources, shard, dataset, folder, send=send))
                self.scored.append(shard.number)
                yield outcome


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstudio.scoring.sharded.shard_bytes", lambda *_, **__: 300)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.plan()
    return folder


def sharded(
    folder: Folder, dataset: str = "records.jsonl", **options: Any
) -> tuple[DatasetSummary, WorkersHere]:
    names = ("seed", "stop_after", "sends", "reads", "meanwhile")
    own = {name: options.pop(name) for name in names if name in options}
    job = folder.job(dataset, **options)
    workers = WorkersHere(job, **own)
    return score_in_shards(job, set_up(job), workers), workers


def told(summary: DatasetSummary) -> dict[str, Any]:
    return {**summary.to_json(), "resumed": 0}


def without_times(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: item for key, item in one.items() if key != "timestamp"} for one in results]


def both_ways(folder: Folder, dataset: str = "records.jsonl", **options: Any) -> None:
    """Scored in shards and as one: the same results, in the same order, and the same summary."""
    own = {name: options.pop(name) for name in ("seed", "sends", "reads") if name in options}
    expected = folder.score(dataset, **options)
    results = folder.results()
    folder.output.unlink()
    summary, workers = sharded(folder, dataset, **own, **options)
    assert len(workers.scored) > 1
    assert without_times(folder.results()) == without_times(results)
    assert told(summary) == told(expected)


LINES = some.lists(
    some.sampled_from([b'{"response":"a"}', b"", b"x" * 40, "é\u2028".encode(), b"\r"]), max_size=30
)


@given(LINES, some.integers(1, 90), some.booleans(), some.booleans())
@settings(max_examples=120)
def test_the_shards_of_json_lines_are_the_dataset(
    lines: list[bytes], size: int, with_end: bool, with_bom: bool
) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        content = b"\n".join(lines) + (b"\n" if with_end else b"")
        file.write((b"\xef\xbb\xbf" if with_bom else b"") + (content or b"\n"))
        file.flush()
        dataset = DatasetFile(file.name)
        shards = byte_shards(dataset, size, {})
        indexes = [index_shard(shard, dataset) for shard in shards]
        parts = [chunk for shard in numbered(shards, indexes) for chunk in shard.read(dataset, 16)]
        assert flat(parts) == flat(read_chunks(Path(file.name)))
        # Cut as it was before, up to a place, it is cut the same.
        ends = {shard.number: shard.end for shard in shards[: len(shards) // 2]}
        assert byte_shards(dataset, size, ends) == shards


@given(some.lists(some.integers(1, 5), max_size=12), some.integers(1, 200), some.data())
@settings(max_examples=80)
def test_shards_that_carry_their_records_hold_each_once(
    sizes: list[int], size: int, data: some.DataObject
) -> None:
    chunks, line = list[Chunk](), 1
    for count in sizes:
        # A record of a table may take several lines.
        numbers = [line + 2 * n for n in range(count)]
        chunks.append(Chunk(b"\n".join(b"{%d}" % n for n in numbers), numbers))
        line = numbers[-1] + 2
    shards = list(carried_shards(iter(chunks), size, {}))
    assert flat([chunk for shard in shards for chunk in shard.chunks]) == flat(chunks)
    assert [shard.number for shard in shards] == list(range(len(shards)))
    if shards:
        kept = data.draw(some.integers(0, len(shards)))
        ends = {shard.number: shard.end for shard in shards[:kept]}
        again = list(carried_shards(iter(chunks), size, ends))
        assert [flat(shard.chunks) for shard in again[:kept]] == [
            flat(shard.chunks) for shard in shards[:kept]
        ]
        assert flat([chunk for shard in again for chunk in shard.chunks]) == flat(chunks)


def flat(chunks: Iterable[Chunk]) -> list[tuple[int, bytes]]:
    return [line for chunk in chunks for line in chunk.lines()]


def test_shards_come_to_what_the_whole_comes_to(folder: Folder) -> None:
    records = [*rows(60), {"id": 'q"\\1', "response": "twice"}, {"response": "no id"}, *rows(3)]
    folder.dataset(records)
    both_ways(folder, seed=1)
    both_ways(folder, sends=True)
    both_ways(folder, reads=False)
    both_ways(folder, share=0.4, seed=3)
    both_ways(folder, limit=17)
    folder.output.unlink()
    assert told(score_without_output(folder)) == told(folder.score())


def score_without_output(folder: Folder) -> DatasetSummary:
    job = replace(folder.job(), output=None)
    return score_in_shards(job, set_up(job), WorkersHere(job, seed=2))


def test_tables_are_scored_in_shards_too(folder: Folder) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    table = "id,response,groundTruth\n" + "".join(f'r{n},"answer\n{n}",answer 1\n' for n in range(40))
    folder.dataset(table, "records.csv")
    both_ways(folder, "records.csv")
    columns = {name: [row[name] for row in rows(50)] for name in rows(1)[0]}
    parquet.write_table(arrow.table(columns), folder.path / "records.parquet", row_group_size=7)
    both_ways(folder, "records.parquet")


def test_an_address_is_read_like_a_path(folder: Folder) -> None:
    folder.dataset(rows(40))
    job = replace(folder.job(), address=f"file://{folder.path}/records.jsonl")
    summary = score_in_shards(job, set_up(job), WorkersHere(job))
    assert (summary.records, len(folder.results())) == (40, 40)
    for name, words in (("none.jsonl", "no such file"), ("x.csv", "read from a path")):
        folder.dataset(b"a\n1\n", "x.csv")
        gone = replace(job, address=f"file://{folder.path}/{name}")
        with pytest.raises(DatasetError, match=words):
            score_in_shards(gone, set_up(gone), WorkersHere(gone))
    unknown = replace(job, address="nowhere://bucket/records.jsonl")
    with pytest.raises(DatasetError, match=r"nowhere://bucket/.*: cannot be read"):
        score_in_shards(unknown, set_up(unknown), WorkersHere(unknown))


@pytest.mark.parametrize("reads", [True, False])
def test_a_killed_driver_is_resumed_with_every_record_once(folder: Folder, reads: bool) -> None:
    folder.dataset(rows(120))
    expected = told(folder.score())
    folder.output.unlink()
    for round_number, stop_after in enumerate((0, 3, 4, 1)):
        with pytest.raises(Killed):
            sharded(folder, seed=round_number, stop_after=stop_after, resume=bool(round_number), reads=reads)
        assert (read_note(folder.output) or {})["partial"] == UNFINISHED
    leave_torn_files(folder)
    summary, workers = sharded(folder, seed=9, resume=True)
    assert [one["line"] for one in folder.results()] == list(range(1, 121))
    assert told(summary) == expected
    assert summary.resumed > 0
    assert "partial" not in (read_note(folder.output) or {})
    assert not list(folder_of(folder.output).glob("*.jsonl"))
    again, workers = sharded(folder, resume=True)
    assert (told(again), workers.scored, again.resumed) == (expected, [], 120)


def test_a_dataset_that_is_rewritten_meanwhile_is_noticed(folder: Folder) -> None:
    folder.dataset(rows(60))
    path = folder.path / "records.jsonl"
    changed = path.read_text().replace("answer", "ANSWER")
    with pytest.raises(DatasetError, match=r"records.jsonl:\d+: its records are not those that it had"):
        sharded(folder, meanwhile=lambda: path.write_text(changed))


def test_row_groups_that_are_rewritten_meanwhile_are_noticed(folder: Folder) -> None:
    import pyarrow
    import pyarrow.parquet

    def write(said: str) -> None:
        table = pyarrow.Table.from_pylist([{"response": f"{said} {n}"} for n in range(60)])
        pyarrow.parquet.write_table(table, folder.path / "d.parquet", row_group_size=5)

    write("yes")
    folder.plan(LENGTH_PLAN)
    with pytest.raises(DatasetError, match=r"d.parquet:\d+: its records are not those that it had"):
        sharded(folder, "d.parquet", meanwhile=lambda: write("no!"))


@pytest.mark.parametrize("over", [-1, 0, 1, 20_000, 70_000])
def test_whether_a_line_is_too_long_does_not_depend_on_how_it_is_read(tmp_path: Path, over: int) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"response":"a"}\n' + b"x" * (LONGEST_LINE + over) + b'\n{"response":"b"}\n')
    dataset = DatasetFile(str(path))
    shard = Shard(0, "bytes", 0, dataset.size)
    digests = set[str]()
    for size in (1 << 13, 1 << 16, 1 << 18, 1_000_003):
        chunks = list(shard.read(dataset, size))
        assert [(one.line, one.message) for chunk in chunks for one in chunk.bad] == (
            [(2, "the line is longer than 16 MB")] if over > 0 else []
        )
        assert [line for line, _ in flat(chunks)] == ([1, 3] if over > 0 else [1, 2, 3])
        digests.add(index_chunks(iter(chunks), 1).digest)
    assert len(digests) == 1


def test_moments_out_of_range_cost_their_own_records_in_shards_too(folder: Folder) -> None:
    import pyarrow
    import pyarrow.parquet

    moments = pyarrow.array([0 if n % 20 else 2**60 for n in range(60)]).cast(pyarrow.timestamp("us"))
    said = pyarrow.array([f"answer {n}" for n in range(60)])
    table = pyarrow.Table.from_arrays([said, moments], names=["response", "when"])
    pyarrow.parquet.write_table(table, folder.path / "d.parquet", row_group_size=5)
    folder.plan(LENGTH_PLAN)
    with pytest.raises(Killed):
        sharded(folder, "d.parquet", skip_bad=True, stop_after=3)
    summary, _ = sharded(folder, "d.parquet", skip_bad=True, resume=True)
    assert (summary.records, summary.bad) == (57, 3)


def test_a_line_that_is_too_long_may_stand_anywhere_when_it_is_resumed(folder: Folder) -> None:
    lines = [json.dumps(row) for row in rows(20)]
    lines[10] = f'"{"x" * LONGEST_LINE}"'
    folder.dataset("\n".join(lines))
    with pytest.raises(Killed):
        sharded(folder, stop_after=3, skip_bad=True)
    summary, _ = sharded(folder, resume=True, skip_bad=True)
    assert (summary.records, summary.bad, summary.left_out[0][0]) == (19, 1, 11)


def leave_torn_files(folder: Folder) -> None:
    """What a power cut leaves: half a line appended, results nobody vouches for."""
    with folder.output.open("ab") as file:
        file.write(b'{"recordId":"r')
    (folder_of(folder.output) / "000001-0-dead.jsonl").write_bytes(b'{"recordId":"r1","li')
    (folder_of(folder.output) / ".000001-0-dead.json.dead").write_bytes(b"{")


def test_a_dataset_may_grow_before_it_is_resumed(folder: Folder) -> None:
    folder.dataset(rows(30))
    sharded(folder)
    folder.dataset([{**row, "response": "changed"} for row in rows(30)])
    with pytest.raises(InvalidInput, match="another dataset"):
        sharded(folder, resume=True)
    assert "partial" not in (read_note(folder.output) or {}), "what is refused leaves all as it was"
    folder.dataset(rows(60))
    with pytest.raises(Killed):
        sharded(folder, resume=True, stop_after=3)
    assert (read_note(folder.output) or {})["partial"] == UNFINISHED
    summary, _ = sharded(folder, resume=True)
    assert [one["recordId"] for one in folder.results()] == [f"r{n}" for n in range(60)]
    assert summary.records == 60 > summary.resumed > 30


def test_a_limit_may_grow_before_it_is_resumed(folder: Folder) -> None:
    folder.dataset(rows(60))
    sharded(folder, limit=10)
    assert len(folder.results()) == 10
    sharded(folder, limit=25, resume=True)
    sharded(folder, limit=5, resume=True)
    assert len(folder.results()) == 25
    sharded(folder, resume=True)
    assert [one["line"] for one in folder.results()] == list(range(1, 61))


def test_another_dataset_and_other_settings_are_not_resumed(folder: Folder) -> None:
    folder.dataset(rows(60))
    with pytest.raises(Killed):
        sharded(folder, stop_after=4)
    folder.dataset([{**row, "response": "changed"} for row in rows(60)])
    with pytest.raises(InvalidInput, match=r"another dataset: lines \d+ to \d+ of .* have changed"):
        sharded(folder, resume=True)
    folder.dataset(rows(2))
    with pytest.raises(InvalidInput, match="another dataset"):
        sharded(folder, resume=True)
    folder.dataset(rows(60))
    folder.plan({**PLAN, "evaluators": PLAN["evaluators"][:1]})
    with pytest.raises(InvalidInput, match="scored with another plan"):
        sharded(folder, resume=True)
    folder.plan()
    with pytest.raises(InvalidInput, match="--on ray"):
        folder.score(resume=True)
    assert sharded(folder, resume=True)[0].records == 60
    folder.score()
    with pytest.raises(InvalidInput, match="--on local"):
        sharded(folder, resume=True)


def test_results_that_lost_a_part_are_not_resumed(folder: Folder) -> None:
    folder.dataset(rows(30))
    sharded(folder)
    folder.output.write_bytes(folder.output.read_bytes()[:100])
    with pytest.raises(InvalidInput, match="shorter than what was written"):
        sharded(folder, resume=True)
    (folder_of(folder.output) / "manifest.json").write_bytes(b"{")
    with pytest.raises(InvalidInput, match=r"results.jsonl.shards cannot be read"):
        sharded(folder, resume=True)


def descriptions(folder: Folder) -> list[Path]:
    return sorted(folder_of(folder.output).glob("0*.json"))


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


DAMAGE: dict[str, tuple[Callable[[Folder], object], str]] = {
    "results outside of the folder": (
        lambda folder: change(descriptions(folder)[-1], results="../secret.jsonl", size=5),
        "results: ",
    ),
    "a shard that is not described": (
        lambda folder: descriptions(folder)[0].unlink(),
        "shard 0 is not described",
    ),
    "a result that was changed": (
        lambda folder: folder.output.write_bytes(folder.output.read_bytes().replace(b"r1", b"\xff\xfe", 1)),
        "it was changed, or is shorter",
    ),
    "a result that is gone": (
        lambda folder: folder.output.write_bytes(folder.output.read_bytes().split(b"\n", 1)[1]),
        "of 5 results there are 4",
    ),
    "more shards than there are": (
        lambda folder: change(folder_of(folder.output) / "manifest.json", merged=10**9),
        "is not described",
    ),
    "a pipe in the place of the manifest": (
        lambda folder: (
            (folder_of(folder.output) / "manifest.json").unlink(),
            os.mkfifo(folder_of(folder.output) / "manifest.json"),
        ),
        "is a pipe, not a file",
    ),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGE.values(), ids=DAMAGE.keys())
def test_what_was_changed_beside_the_results_is_refused(
    folder: Folder, damage: Callable[[Folder], object], words: str
) -> None:
    folder.dataset(rows(60))
    (folder.path / "secret.jsonl").write_text("mine\n")
    with pytest.raises(Killed):
        sharded(folder, seed=4, stop_after=8)
    assert 0 < len(folder.results()) < 60
    damage(folder)
    before = folder.output.read_bytes()
    with pytest.raises(InvalidInput, match=words):
        sharded(folder, resume=True)
    assert (folder.path / "secret.jsonl").read_text() == "mine\n"
    assert folder.output.read_bytes() == before


def test_what_a_worker_of_another_job_still_writes_is_not_taken(folder: Folder) -> None:
    folder.dataset(rows(60))
    with pytest.raises(Killed):
        sharded(folder, seed=4, stop_after=8)
    late = [(one.name, one.read_bytes()) for one in folder_of(folder.output).glob("0*")]
    folder.plan({**PLAN, "evaluators": PLAN["evaluators"][:1]})
    with pytest.raises(Killed):
        sharded(folder, stop_after=0)
    for name, data in late:
        (folder_of(folder.output) / name).write_bytes(data)
    summary, _ = sharded(folder, resume=True)
    assert (summary.records, summary.resumed, list(summary.evaluators)) == (60, 0, ["rule-based"])


@pytest.mark.parametrize(("torn", "current"), [(1, True), (4, True), (9, False)])
def test_a_manifest_that_is_written_while_it_is_read_is_read_again(
    torn: int, current: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_folders, "_PAUSE_SECONDS", 0.0)
    parts = iter([b'{"token":"a"}n":"b"}'] * torn)
    whole = LocalFolder(tmp_path, Start("0", "a"))
    whole.write(MANIFEST, b'{"token":"a"}')
    read = LocalFolder.read
    monkeypatch.setattr(LocalFolder, "read", lambda self, name: next(parts, None) or read(self, name))
    assert is_current(whole) == current


def test_a_place_that_lies_behind_is_no_end_of_a_shard() -> None:
    chunks = [Chunk(b"{}\n{}", [1, 2]), Chunk(b"{}\n{}", [3, 4])]
    shards = list(carried_shards(iter(chunks), 4, {1: 2}))
    assert flat([chunk for shard in shards for chunk in shard.chunks]) == flat(chunks)
    assert [shard.number for shard in shards] == [0, 1]


def test_the_first_bad_record_is_told_and_mended(folder: Folder) -> None:
    lines = [json.dumps(row) for row in rows(60)]
    broken = [*lines]
    broken[20], broken[45] = "{", "[]"
    folder.dataset("\n".join(broken))
    for seed in range(3):
        with pytest.raises(BadRecord, match=r"records.jsonl:21: "):
            sharded(folder, seed=seed)
        assert not [one for one in folder_of(folder.output).glob("*.jsonl") if int(one.name[:6]) > 5]
    broken[20] = lines[20]
    folder.dataset("\n".join(broken))
    with pytest.raises(BadRecord, match=r"records.jsonl:46: "):
        sharded(folder, resume=True)
    both_ways(folder, skip_bad=True)


def killed(*_: object) -> None:
    raise Killed


def test_errors_are_retried_and_counted_anew(folder: Folder) -> None:
    plugin = "from evalstudio import define_evaluator\nfrom pathlib import Path\n\n"
    plugin += "@define_evaluator('moody', kind='assertion')\ndef moody(ctx):\n"
    plugin += "    if Path(__file__).with_name('broken').exists() and '7' in ctx.response:\n"
    plugin += "        raise RuntimeError('not now')\n    return {'success': True}\n"
    (folder.path / "moody.py").write_text(plugin)
    folder.plan({"plugins": ["./moody.py"], "evaluators": [{"type": "moody"}]})
    folder.dataset(rows(40))
    (folder.path / "broken").touch()
    assert sharded(folder)[0].outcomes["error"] == 4
    (folder.path / "broken").unlink()
    # A kill when the results are replaced, and longer or shorter than they were, costs none of them.
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(MergedShards, "finish", killed)
        sharded(folder, resume=True, retry_errors=True)
    summary, _ = sharded(folder, resume=True, retry_errors=True)
    assert (summary.outcomes["pass"], summary.retried) == (40, 0)
    again, _ = sharded(folder, resume=True)
    assert (again.outcomes["pass"], again.records, len(folder.results())) == (40, 40, 40)


def test_shards_are_few_and_each_is_done_soon() -> None:
    size = cutting.shard_bytes
    assert size(6 << 30, 2, asks_models=False) == 1 << 24
    assert size(1000, 2, asks_models=False) == 1 << 18
    assert size(6 << 30, 2, asks_models=True) == (6 << 30) // 5000
    assert size(1 << 20, 4, asks_models=True) == 1 << 14
    assert size(1 << 24, 1, asks_models=True) == 1 << 18
    assert size(1 << 24, 1, asks_models=True, has_budget=True) == 1 << 14
