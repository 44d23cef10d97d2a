"""``evalstudio score``: what it prints, how it ends, and what it shows on the way."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.command_line import COMMAND, evalstudio
from tests.support.scoring_files import LENGTH_PLAN, PLAN, CommandResult, Folder, command, rows

EXAMPLE = Path(__file__).parents[2] / "examples" / "scoring"
SLOW = """
import time
from evalstudio import define_evaluator

@define_evaluator
def slow(ctx) -> bool:
    time.sleep(0.02)
    return True
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.plan()
    made.dataset(rows(20))
    return made


def score(folder: Folder, capsys: pytest.CaptureFixture[str], *more: str | Path) -> CommandResult:
    return command(capsys, "score", folder.path / "records.jsonl", "-c", folder.path / "plan.json", *more)


def test_the_example_prints_a_table_and_misses_its_threshold(tmp_path: Path) -> None:
    said = evalstudio(
        "score", "records.jsonl", "-c", "plan.yaml", "-o", str(tmp_path / "r.jsonl"), cwd=EXAMPLE
    )
    assert said.returncode == 1
    assert re.search(r"polite +0\.833 +6 +100% +0 ", said.stdout)
    assert re.search(r"helpful +0\.500 +2 +33% +0 ", said.stdout)
    assert "6 records: overall 0.715 (4 pass, 2 fail, 0 error)" in said.stdout
    assert '"polite" must be at least 0.9; it is 0.833.' in said.stderr
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 6


def test_json_is_the_whole_summary_and_nothing_else(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    said = score(folder, capsys, "--json")
    shown = json.loads(said.out)
    assert (said.code, said.err) == (0, "")
    assert shown["records"] == 20
    assert shown["criteria"]["ok"] == {
        "mean": 1.0,
        "interval": [0.838874842, 1.0],
        "n": 20,
        "coverage": 1.0,
        "errors": 0,
        "histogram": [0] * 9 + [20],
    }
    assert sum(shown["criteria"]["close"]["histogram"]) == 20


def test_errors_and_missing_scores_are_shown_and_counted(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.dataset([{"response": "hello"}] * 3 + [{"response": "hello", "groundTruth": "hello"}])
    said = score(folder, capsys)
    assert said.code == 3
    assert re.search(r"close +1\.000 +1 +25% +3 ", said.out)
    assert '3 × no text at "groundTruth"' in said.out
    assert "4 records: overall 1.000 (1 pass, 0 fail, 3 error)" in said.out
    folder.dataset([{"response": "hello"}])
    assert re.search(r"close +- +0 +0% +1", score(folder, capsys).out)
    assert json.loads(score(folder, capsys, "--json").out)["criteria"]["close"]["n"] == 0


@pytest.mark.parametrize(
    ("plan", "options", "code"),
    [
        ({}, [], 0),
        ({}, ["--fail-under", "0.5"], 0),
        ({}, ["--fail-under", "1"], 1),
        ({"failUnder": 1}, [], 1),
        ({"failUnder": 1}, ["--fail-under", "0.1"], 0),
        ({"thresholds": {"ok": 1}}, [], 0),
        ({"thresholds": {"close": 0.99}}, [], 1),
        ({"thresholds": {"unscored": 0}, "criteria": [*PLAN["criteria"], {"name": "unscored"}]}, [], 1),
    ],
)
def test_scores_below_the_bar_end_with_1(
    folder: Folder, capsys: pytest.CaptureFixture[str], plan: dict[str, object], options: list[str], code: int
) -> None:
    folder.plan({**PLAN, **plan})
    said = score(folder, capsys, *options)
    assert said.code == code
    assert ("must be at least" in said.err) == bool(code)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sample", "lots"], "is not a share"),
        (["--sample", "0%"], "must be more than nothing"),
        (["--sample", "101%"], "at most 100%"),
        (["--sample", "nan"], "must be more than nothing"),
        (["--resume"], "--resume needs --output"),
        (["--limit", "0"], "--limit"),
        (["--workers", "0"], "--workers"),
        (["--fail-under", "2"], "--fail-under"),
        (["--only", "nothing-like-it"], "leave no evaluator"),
        (["--config", "missing.json"], "missing.json"),
    ],
)
def test_options_that_make_no_sense_end_with_2(
    folder: Folder, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    said = score(folder, capsys, *options)
    assert said.code == 2
    assert words in re.sub(r"\x1b\[[0-9;]*m", "", said.err)


@pytest.mark.parametrize("share", ["25%", "0.25", " 25 %".replace(" ", "")])
def test_a_sample_says_how_much_it_left_out(
    folder: Folder, capsys: pytest.CaptureFixture[str], share: str
) -> None:
    folder.dataset(rows(400))
    said = score(folder, capsys, "--sample", share, "--json")
    shown = json.loads(said.out)
    assert 60 < shown["records"] < 140
    assert shown["records"] + shown["notSampled"] == 400
    assert (
        f"{shown['notSampled']:,} records were not in the sample"
        in score(folder, capsys, "--sample", share).out
    )


def test_only_fast_leaves_out_the_rest(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.plan({**PLAN, "evaluators": [*PLAN["evaluators"], {"type": "criteria-judge"}]})
    assert score(folder, capsys).code == 2
    assert score(folder, capsys, "--only", "fast").code == 0


def test_a_resumed_run_says_so(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    score(folder, capsys, "-o", folder.output, "--limit", "5")
    said = score(folder, capsys, "-o", folder.output, "--resume")
    assert "20 records" in said.out
    assert "5 of them were scored before this run" in said.out


def test_an_output_that_cannot_be_written_ends_with_2(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "plain").write_text("")
    for target in (folder.path, folder.path / "plain" / "r.jsonl"):
        said = score(folder, capsys, "-o", target)
        assert said.code == 2
        assert f"{target}: cannot be written" in said.err


def test_a_full_disk_ends_with_2_and_says_how_to_go_on(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    output = folder.path / "full.jsonl"
    output.symlink_to("/dev/full")
    said = score(folder, capsys, "-o", output)
    assert said.code == 2
    assert "No space left on device" in said.err
    assert "--resume" in said.err


def test_folders_of_the_output_are_made(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(folder, capsys, "-o", folder.path / "a" / "b" / "r.jsonl").code == 0


def test_plugins_of_the_project_are_found_beside_the_plan(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "slow.py").write_text(SLOW)
    (folder.path / "evalstudio.config.json").write_text(json.dumps({"plugins": ["./slow.py"]}))
    folder.plan({**LENGTH_PLAN, "evaluators": [{"type": "slow"}]})
    assert score(folder, capsys, "--limit", "2").code == 0


# -- progress


def on_a_terminal(folder: Folder, *more: str) -> str:
    """What the command shows on a terminal while it works."""
    leader, follower = pty.openpty()
    running = subprocess.Popen(
        [COMMAND, "score", "records.jsonl", "-c", "plan.json", *more],
        cwd=folder.path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    running.communicate(timeout=30)
    os.close(leader)
    return shown.decode(errors="replace")


def slow_folder(folder: Folder) -> None:
    (folder.path / "slow.py").write_text(SLOW)
    folder.plan({**LENGTH_PLAN, "plugins": ["./slow.py"], "evaluators": [{"type": "slow"}], "concurrency": 1})
    folder.dataset({**row, "prompt": "x" * 2000} for row in rows(120))


def test_a_terminal_shows_the_rate_and_the_time_left(folder: Folder) -> None:
    slow_folder(folder)
    shown = on_a_terminal(folder)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.search(r"\d+ records, \d+/s", plain)
    assert re.search(r"0:00:0\d", plain)
    assert "\r" in shown


def test_nothing_is_shown_where_nobody_looks(folder: Folder) -> None:
    slow_folder(folder)
    said = evalstudio("score", "records.jsonl", "-c", "plan.json", "--limit", "60", cwd=folder.path)
    assert said.returncode == 0
    assert said.stderr == ""
    assert "\r" not in said.stdout


def test_json_on_a_terminal_is_not_disturbed_by_a_bar(folder: Folder) -> None:
    slow_folder(folder)
    assert on_a_terminal(folder, "--json", "--limit", "40") == ""


# -- what every evaluator came to

NO_CRITERIA = {
    "evaluators": [
        {"type": "regex", "name": "greets", "config": {"pattern": "hello"}},
        {"type": "lexical-similarity", "config": {"threshold": 0.9}},
        {"type": "response-length"},
        {"type": "token-usage"},
    ]
}
THREE = [
    {"id": "a", "response": "hello there", "groundTruth": "hello there"},
    {"id": "b", "response": "hello", "groundTruth": "good evening"},
    {"id": "c", "response": "no"},
]


def test_each_line_says_what_every_evaluator_came_to(folder: Folder) -> None:
    folder.plan(NO_CRITERIA)
    folder.score(folder.dataset(THREE))
    first, second, third = folder.results()
    rows = {row["name"]: row for row in second["evaluatorResults"]}
    assert rows["greets"] == {
        "name": "greets",
        "type": "regex",
        "kind": "assertion",
        "outcome": "pass",
        "success": True,
        "value": 1.0,
        "threshold": None,
    }
    assert (rows["lexical-similarity"]["outcome"], rows["lexical-similarity"]["threshold"]) == ("fail", 0.9)
    assert (rows["response-length"]["outcome"], rows["response-length"]["success"]) == ("measured", None)
    assert (rows["token-usage"]["outcome"], rows["token-usage"]["value"]) == ("missing", None)
    assert [row["outcome"] for row in third["evaluatorResults"]] == ["fail", "error", "measured", "missing"]
    assert [one["outcome"] for one in (first, second, third)] == ["pass", "fail", "fail"]
    assert "similarity" in second["reason"]


def test_the_summary_has_a_table_of_evaluators_without_any_criteria(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.plan(NO_CRITERIA)
    folder.dataset(THREE)
    said = score(folder, capsys)
    table = [line.split() for line in said.out.splitlines()]
    assert ["greets", "2", "1", "0", "0", "0.667"] in table
    assert next(line[:5] for line in table if line[:1] == ["lexical-similarity"]) == [
        "lexical-similarity",
        "1",
        "1",
        "1",
        "0",
    ]
    assert ["token-usage", "0", "3", "0", "-"] in table
    summary = json.loads(score(folder, capsys, "--json").out)
    assert summary["evaluators"]["greets"] == {
        "kind": "assertion",
        "pass": 2,
        "fail": 1,
        "error": 0,
        "skipped": 0,
        "mean": pytest.approx(2 / 3),
        "n": 3,
    }
    assert summary["evaluators"]["token-usage"]["missing"] == 3


def test_workers_add_up_to_the_same_table(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.plan(NO_CRITERIA)
    folder.dataset(THREE * 2)
    alone = json.loads(score(folder, capsys, "--json").out)
    shared = json.loads(score(folder, capsys, "--json", "--workers", "2").out)
    assert shared == alone
    assert alone["duplicateIds"] == 3


# -- what is not decided


def test_metrics_alone_are_not_decided(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.plan({"evaluators": [{"type": "response-length"}]})
    folder.dataset(THREE)
    said = score(folder, capsys)
    assert said.code == 3
    assert "(0 pass, 0 fail, 0 error, 3 unasserted)" in said.out
    assert "Not decided: nothing was asserted" in said.err


def test_a_threshold_is_something_to_hold_metrics_against(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    length = {"name": "brief", "scale": "numeric", "range": [0, 20]}
    folder.plan(
        {
            "criteria": [length],
            "evaluators": [{"type": "response-length", "name": "brief"}],
            "thresholds": {"brief": 0.1},
        }
    )
    folder.dataset(THREE)
    assert score(folder, capsys).code == 0
    assert score(folder, capsys, "--fail-under", "0.9").code == 1


def test_errors_everywhere_are_not_decided(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.plan({"evaluators": [{"type": "lexical-similarity"}]})
    folder.dataset([{"response": "x"}])
    said = score(folder, capsys)
    assert said.code == 3
    assert "no record passed or failed" in said.err


def test_an_empty_sample_is_not_decided(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.dataset(THREE)
    said = score(folder, capsys, "--sample", "0.0001%")
    assert said.code == 3
    assert "nothing was scored" in said.err


def test_the_same_id_twice_is_told(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.dataset([*THREE, THREE[0]])
    said = score(folder, capsys)
    assert '1 record with the id of an earlier one: "a" (line 4)' in said.out


def test_coverage_is_never_rounded_up_to_all(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": n, "response": "same", "groundTruth": "same"} for n in range(999)]
    folder.dataset([*rows, {"id": "odd", "response": "same"}])
    said = score(folder, capsys)
    close = next(line for line in said.out.splitlines() if line.startswith("close"))
    assert "99.9%" in close


def test_a_misspelled_criterion_is_refused_with_its_line(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = {"criterionName": "clsoe", "type": "length", "min": 3}
    plan = {**PLAN, "evaluators": [{"type": "rule-based", "config": {"rules": [rule]}}]}
    folder.plan(json.dumps(plan, indent=1))
    folder.dataset(THREE)
    said = score(folder, capsys)
    assert said.code == 2
    assert (
        'evaluators[0].config.rules[0].criterionName: "clsoe" is not among the plan\'s criteria' in said.err
    )
    assert "did you mean close?" in said.err
    assert "plan.json:" in said.err


def test_a_file_that_holds_no_results_is_not_overwritten(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    diary = folder.path / "diary.txt"
    diary.write_text("dear diary\n")
    said = score(folder, capsys, "-o", diary)
    assert (said.code, diary.read_text()) == (2, "dear diary\n")
    assert "is no results file, so it is not overwritten" in said.err
    results = folder.path / "results.jsonl"
    assert score(folder, capsys, "-o", results).code == 0
    results.with_name("results.jsonl.job.json").unlink()
    assert score(folder, capsys, "-o", results).code == 0, "results of ours may be made anew"


def test_lines_that_are_left_out_are_told_with_their_reasons(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = folder.path / "records.jsonl"
    dataset.write_text(dataset.read_text() + "{broken\n" + '{"id": "x"}\n')
    said = score(folder, capsys, "--skip-bad", "--require", "minCoverage=1")
    assert said.code == 1
    assert "2 unreadable records were left out:\n  line 21: is not valid JSON" in said.out
    assert '  line 22: has no "response" field to score' in said.out
    assert "20 of 22 records passed or failed" in said.out
    shown = json.loads(score(folder, capsys, "--skip-bad", "--json").out)
    assert [one["line"] for one in shown["leftOut"]] == [21, 22]


def test_records_are_summarised_by_agent_or_any_metadata(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        {
            "id": str(number),
            "response": "ok",
            "agentId": f"agent{number % 2}",
            "metadata": {"team": {"id": number % 3}},
        }
        for number in range(20)
    ]
    folder.dataset(records)
    said = score(folder, capsys, "--group-by", "agentId")
    assert "Groups" in said.out
    assert re.search(r"agent1 +10 ", said.out)
    shown = json.loads(score(folder, capsys, "--group-by", "team.id", "--json").out)
    assert {name: group["records"] for name, group in shown["groups"].items()} == {"0": 7, "1": 7, "2": 6}
    assert list(json.loads(score(folder, capsys, "--group-by", "nothing", "--json").out)["groups"]) == [
        "(none)"
    ]


MOODY = """
from pathlib import Path
from evalstudio import define_evaluator

HERE = Path(__file__).parent

@define_evaluator
def moody(ctx) -> bool:
    text = ctx.last_response if hasattr(ctx, "last_response") else ctx.messages[-1].text
    with open(HERE / "asked.log", "a") as log:
        log.write(text + "\\n")
    if (HERE / "away").exists() and text.endswith(("3", "7")):
        raise RuntimeError("the judge is away")
    return True
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_only_what_errored_is_scored_again(
    folder: Folder, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    (folder.path / "moody.py").write_text(MOODY)
    folder.plan({"plugins": ["./moody.py"], "evaluators": [{"type": "moody"}]})
    folder.dataset([{"id": str(number), "response": f"answer {number}"} for number in range(20)])
    (folder.path / "away").touch()
    results = folder.path / "results.jsonl"
    more = ("-o", results, "--workers", workers)
    assert score(folder, capsys, *more, "--require", "passRate>=0.9").code == 3
    (folder.path / "away").unlink()
    asked = folder.path / "asked.log"
    asked.unlink()
    said = score(folder, capsys, *more, "--resume", "--retry-errors", "--require", "passRate>=0.9")
    assert said.code == 0, said.err
    assert sorted(asked.read_text().split("\n")) == ["", "answer 13", "answer 17", "answer 3", "answer 7"]
    assert "4 records that had errored were scored again" in said.out
    assert "(20 pass, 0 fail, 0 error)" in said.out
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line["recordId"] for line in lines] == [str(number) for number in range(20)]
    assert "--retry-errors goes with --resume" in score(folder, capsys, *more, "--retry-errors").err


def test_a_results_file_becomes_a_report(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    results = folder.path / "results.jsonl"
    said = score(folder, capsys, "-o", results, "--report", f"junit={folder.path / 'j.xml'}")
    assert said.code == 0
    assert 'tests="20" failures="0"' in (folder.path / "j.xml").read_text()
    text = command(capsys, "report", results, "-f", "md").out
    assert "20 records: 20 passed" in text
    assert "--report needs --output" in score(folder, capsys, "--report", "md=-").err
