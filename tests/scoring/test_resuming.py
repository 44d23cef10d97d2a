"""A stopped run goes on where it left off: no record missing, none twice, whatever stopped it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.command_line import COMMAND, heed_ctrl_c
from tests.support.scoring_files import LENGTH_PLAN, PLAN, Folder, command, rows

from evalstudio.base.problems import InvalidInput
from evalstudio.scoring.datasets import BadRecord
from evalstudio.scoring.results_file import note_of

SLOW = """
import asyncio
from evalstudio import define_evaluator

@define_evaluator
async def slow(ctx) -> bool:
    await asyncio.sleep(0.02)
    return True
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.plan()
    return made


def ids(folder: Folder) -> list[str]:
    return [result["recordId"] for result in folder.results()]


def slow_plan(folder: Folder) -> None:
    (folder.path / "slow.py").write_text(SLOW)
    folder.plan(
        {
            **PLAN,
            "plugins": ["./slow.py"],
            "evaluators": [*PLAN["evaluators"], {"type": "slow"}],
            "concurrency": 2,
        }
    )


def start(folder: Folder, *more: str) -> subprocess.Popen[str]:
    """The real command, in a session of its own as in a terminal."""
    return subprocess.Popen(
        [COMMAND, "score", "records.jsonl", "-c", "plan.json", "-o", "results.jsonl", *more],
        cwd=folder.path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,
    )


def wait_for_results(folder: Folder, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while not (folder.output.exists() and folder.output.stat().st_size > 0):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def children_of(pid: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_is_resumed_without_a_gap_or_a_repeat(folder: Folder, workers: int) -> None:
    slow_plan(folder)
    folder.dataset({**row, "prompt": "x" * 300} for row in rows(400))
    running = start(folder, "--workers", str(workers))
    wait_for_results(folder, running)
    helpers = children_of(running.pid)
    running.kill()
    running.communicate()
    kept = folder.output.read_bytes().count(b"\n")
    assert 0 < kept < 400
    summary = folder.score(resume=True, workers=workers)
    assert ids(folder) == [f"r{n}" for n in range(400)]
    assert [result["line"] for result in folder.results()] == list(range(1, 401))
    assert summary.records == summary.criteria["ok"].count == 400
    assert summary.resumed == kept
    assert bool(helpers) == (workers > 1)
    deadline = time.monotonic() + 10
    while not all(is_gone(pid) for pid in helpers):
        assert time.monotonic() < deadline, "workers outlived their parent"
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_whole_lines_and_says_how_to_go_on(folder: Folder, workers: int) -> None:
    slow_plan(folder)
    folder.dataset({**row, "prompt": "x" * 300} for row in rows(400))
    running = start(folder, "--workers", str(workers))
    wait_for_results(folder, running)
    # A terminal sends it to every process of the command.
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in out + err
    assert "--resume" in err
    assert folder.output.read_bytes().endswith(b"\n")
    kept = ids(folder)
    assert 0 < len(kept) < 400
    assert kept == [f"r{n}" for n in range(len(kept))]
    assert folder.score(resume=True).records == 400
    assert ids(folder) == [f"r{n}" for n in range(400)]


# -- the end of the file says where to go on


@pytest.mark.parametrize(
    "torn", [b"", b'{"recordId":"r5","li', b'{"recordId"\n', b'{"a": 1}\n', b"\0\0\0\n", b"5\n"]
)
def test_a_torn_end_is_cut_off_and_scored_again(folder: Folder, torn: bytes) -> None:
    folder.score(folder.dataset(rows(12)), limit=5)
    with open(folder.output, "ab") as file:
        file.write(torn)
    summary = folder.score(resume=True)
    assert ids(folder) == [f"r{n}" for n in range(12)]
    assert summary.records == 12


def test_a_finished_run_is_not_run_again(folder: Folder) -> None:
    folder.score(folder.dataset(rows(12)))
    before = folder.output.read_bytes()
    summary = folder.score(resume=True)
    assert folder.output.read_bytes() == before
    assert summary.records == summary.resumed == 12


def test_a_grown_dataset_is_scored_from_where_it_ended(folder: Folder) -> None:
    folder.score(folder.dataset(rows(5)))
    assert folder.score(folder.dataset(rows(9)), resume=True).records == 9
    assert ids(folder) == [f"r{n}" for n in range(9)]


def test_a_limit_may_grow_and_a_smaller_one_adds_nothing(folder: Folder) -> None:
    folder.dataset(rows(20))
    folder.score(limit=5)
    assert folder.score(limit=9, resume=True).records == 9
    assert folder.score(limit=3, resume=True).records == 9
    assert ids(folder) == [f"r{n}" for n in range(9)]


def test_bad_and_unsampled_records_are_counted_over_both_parts(folder: Folder) -> None:
    lines = [b'{"id": "r%d", "response": "hello", "groundTruth": "x"}\n' % n for n in range(40)]
    for place in (3, 7, 30):
        lines.insert(place, b"oops\n")
    dataset = folder.dataset(b"".join(lines))
    whole = folder.score(dataset, skip_bad=True, share=0.5).to_json()
    complete = ids(folder)
    folder.score(dataset, skip_bad=True, share=0.5, limit=8)
    resumed = folder.score(dataset, skip_bad=True, share=0.5, resume=True).to_json()
    assert ids(folder) == complete
    assert resumed["resumed"] == 8
    assert {**resumed, "resumed": 0} == whole
    assert whole["bad"] == 3


def test_a_bad_record_stops_the_run_and_mending_it_goes_on(folder: Folder) -> None:
    good = b'{"id": "r%d", "response": "hello", "groundTruth": "x"}\n'
    folder.dataset(b"".join(good % n for n in range(4)) + b"oops\n" + good % 5)
    with pytest.raises(BadRecord):
        folder.score()
    assert ids(folder) == ["r0", "r1", "r2", "r3"]
    folder.dataset(b"".join(good % n for n in range(6)))
    assert folder.score(resume=True).records == 6
    assert ids(folder) == [f"r{n}" for n in range(6)]


def test_csv_is_resumed_too(folder: Folder) -> None:
    folder.plan(LENGTH_PLAN)
    folder.dataset("id,response\n" + "".join(f'r{n},"two\nlines {n}"\n' for n in range(30)), "d.csv")
    folder.score("d.csv", limit=11)
    folder.score("d.csv", resume=True)
    assert ids(folder) == [f"r{n}" for n in range(30)]


def test_resuming_what_was_never_begun_begins(folder: Folder) -> None:
    assert folder.score(folder.dataset(rows(3)), resume=True).records == 3
    folder.output.write_bytes(b"")
    folder.output.with_name("results.jsonl.job.json").unlink()
    assert folder.score(resume=True).records == 3


# -- what may change in between

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another criterion": ({"criteria": [*PLAN["criteria"], {"name": "more"}]}, {}, "plan"),
    "another evaluator": ({"evaluators": PLAN["evaluators"][:1]}, {}, "plan"),
    "another mapping": ({"fields": {"prompt": "x"}}, {}, "plan"),
    "another model": ({"llmSettings": {"models": {"evaluation": "big"}}}, {}, "plan"),
    "another choice of evaluators": ({}, {"only": ["fast"]}, "only"),
    "another sample": ({}, {"share": 0.5}, "sample"),
    "another seed": ({}, {"seed": "7"}, "seed"),
    "other manners with bad records": ({}, {"skip_bad": True}, "skipBad"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_run_with_other_settings_is_refused_and_nothing_is_touched(
    folder: Folder, case: tuple[dict[str, Any], dict[str, Any], str]
) -> None:
    plan, settings, word = case
    folder.score(folder.dataset(rows(12)), limit=5)
    before = folder.output.read_bytes()
    folder.plan({**PLAN, **plan})
    with pytest.raises(InvalidInput, match=f"scored with another {word}"):
        folder.score(resume=True, **settings)
    assert folder.output.read_bytes() == before


def edited(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "response": "something else"}


CHANGED: dict[str, tuple[Callable[[list[dict[str, Any]]], list[dict[str, Any]]], str]] = {
    "a record before the first": (
        lambda old: [{**old[0], "id": "new"}, *old],
        '"r0" at line 1 was scored, and RECORDS has "new" at line 1',
    ),
    "one less": (lambda old: old[1:], '"r0" at line 1 was scored, and RECORDS has "r1" at line 1'),
    "two swapped": (lambda old: [old[1], old[0], *old[2:]], '"r0" at line 1 was scored'),
    "another answer": (
        lambda old: [edited(old[0]), *old[1:]],
        "RECORDS has other records up to line 5, though with the same ids",
    ),
    "the last that was scored": (
        lambda old: [*old[:4], edited(old[4]), *old[5:]],
        "RECORDS has other records up to line 5",
    ),
    "cut short": (lambda old: old[:4], '"r4" at line 5 was scored, and RECORDS has nothing more'),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED.keys())
def test_another_dataset_of_the_same_name_is_refused(
    folder: Folder,
    case: tuple[Callable[[list[dict[str, Any]]], list[dict[str, Any]]], str],
    workers: int,
) -> None:
    change, message = case
    dataset = folder.dataset(rows(12))
    folder.score(limit=5)
    before = folder.output.read_bytes()
    folder.dataset(change(list(rows(12))))
    with pytest.raises(InvalidInput, match="the results of another dataset") as refused:
        folder.score(resume=True, workers=workers)
    assert message.replace("RECORDS", str(dataset)) in str(refused.value)
    assert folder.output.read_bytes() == before


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_records_under_another_name_go_on(folder: Folder, workers: int) -> None:
    folder.score(folder.dataset(rows(12)), limit=5)
    folder.dataset([*rows(5), *map(edited, rows(20)[5:])], "moved.jsonl")
    assert folder.score("moved.jsonl", resume=True, workers=workers).records == 20
    assert ids(folder) == [f"r{n}" for n in range(20)]


def test_what_was_not_scored_may_change_whatever_the_sample(folder: Folder) -> None:
    """The hash ends at the last record that was scored, in the middle of what was read at once."""
    for done in range(1, 9):
        folder.score(folder.dataset(rows(40)), share=0.5, limit=done)
        last = folder.results()[-1]["line"]
        folder.dataset([*rows(last), *map(edited, rows(50)[last:])])
        resumed = folder.score(share=0.5, resume=True)
        assert ids(folder)[:done] == [result["recordId"] for result in folder.results()[:done]]
        assert len(ids(folder)) == len(set(ids(folder))) == resumed.records


def test_what_is_piped_in_is_compared_too(folder: Folder) -> None:
    lines = [orjson.dumps(row) + b"\n" for row in rows(30)]
    options = ["/dev/stdin", "-c", "plan.json", "-o", "results.jsonl"]

    def pipe(text: bytes, *more: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [COMMAND, "score", *options, *more], cwd=folder.path, input=text, capture_output=True, check=False
        )

    pipe(b"".join(lines), "--limit", "5")
    refused = pipe(b"".join(lines[1:]), "--resume")
    assert refused.returncode == 2
    assert b"/dev/stdin has other records up to line 5" in refused.stderr
    pipe(b"".join(lines), "--resume")
    assert ids(folder) == [f"r{n}" for n in range(30)]


def test_results_that_a_power_cut_left_ahead_of_the_note_are_scored_again(folder: Folder) -> None:
    folder.score(folder.dataset(rows(12)), limit=5)
    note = folder.output.with_name("results.jsonl.job.json")
    old = note.read_bytes()
    folder.score(limit=9, resume=True)
    note.write_bytes(old)
    summary = folder.score(resume=True)
    assert (summary.resumed, summary.records) == (5, 12)
    assert ids(folder) == [f"r{n}" for n in range(12)]


def test_what_does_not_change_a_score_may_change(folder: Folder) -> None:
    llm = {"apiKey": "one", "timeoutSeconds": 5}
    folder.plan({**PLAN, "llmSettings": llm})
    folder.score(folder.dataset(rows(12)), limit=5)
    again = {"thresholds": {"ok": 0.9}, "failUnder": 0.1, "concurrency": 2}
    folder.plan({**PLAN, **again, "llmSettings": {**llm, "apiKey": "two", "timeoutSeconds": 50}})
    assert folder.score(resume=True, workers=1).records == 12


def test_results_nobody_vouches_for_are_not_resumed(folder: Folder) -> None:
    folder.dataset(rows(3))
    folder.output.write_text('{"recordId": "r0", "line": 1}\n')
    with pytest.raises(InvalidInput, match=r"results\.jsonl\.job\.json is missing"):
        folder.score(resume=True)
    assert folder.output.read_text() == '{"recordId": "r0", "line": 1}\n'


def test_results_of_which_one_is_gone_are_not_resumed(folder: Folder) -> None:
    folder.dataset(rows(9))
    folder.score(limit=5)
    lines = folder.output.read_bytes().splitlines(keepends=True)
    folder.output.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    with pytest.raises(InvalidInput, match="of 5 records up to its last result there are 4"):
        folder.score(resume=True)
    folder.output.write_bytes(b"".join(lines))
    assert folder.score(resume=True).records == 9


@pytest.mark.parametrize("note", [[], {"scored": []}, {"scored": {"line": "5", "digest": ""}}, None])
def test_notes_that_were_changed_are_refused(folder: Folder, note: Any) -> None:
    folder.dataset(rows(9))
    folder.score(limit=5)
    path = note_of(folder.output)
    if note is None:
        path.unlink()
        os.mkfifo(path)
    else:
        known = orjson.loads(path.read_bytes())
        path.write_bytes(orjson.dumps({**known, **note} if note else note))
    with pytest.raises(InvalidInput, match="cannot be resumed"):
        folder.score(resume=True)


@pytest.mark.parametrize("name", ["records.jsonl", "plan.json"])
def test_inputs_are_never_written_over(folder: Folder, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder.dataset(rows(3))
    before = (folder.path / name).read_bytes()
    target = folder.path / "sub" / ".." / name
    (folder.path / "sub").mkdir()
    said = command(
        capsys, "score", folder.path / "records.jsonl", "-c", folder.path / "plan.json", "-o", target
    )
    assert said.code == 2
    assert "name another file for the results" in said.err
    assert (folder.path / name).read_bytes() == before


def test_two_runs_never_write_to_one_file(folder: Folder) -> None:
    slow_plan(folder)
    folder.dataset(rows(400))
    running = start(folder)
    try:
        wait_for_results(folder, running)
        with pytest.raises(InvalidInput, match="another run is writing"):
            folder.score(resume=True)
    finally:
        running.kill()
        running.communicate()


def test_without_resume_a_run_starts_over(folder: Folder) -> None:
    folder.score(folder.dataset(rows(9)))
    folder.score(folder.dataset(rows(3)))
    assert ids(folder) == ["r0", "r1", "r2"]
