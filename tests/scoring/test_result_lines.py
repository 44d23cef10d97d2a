"""Lines of results files that were edited, forged or torn: whoever reads them counts none of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.execution.comparing_results import compare_results
from evalstudio.execution.scored_files import read_results
from evalstudio.reporting.reports.recorded import recorded_source
from evalstudio.scoring.results_file import note_of


def line(number: int, outcome: str = "pass", **changes: Any) -> dict[str, Any]:
    row = {"name": "regex", "kind": "assertion", "outcome": outcome, "value": 1.0}
    rows = [] if outcome == "unasserted" else [row]
    empty: dict[str, Any] = {"criterionScores": {}, "metrics": {}, "results": []}
    record = {"recordId": f"r{number}", "line": number, "outcome": outcome, "evaluatorResults": rows}
    return record | empty | changes


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


FORGED: dict[str, dict[str, Any]] = {
    "a pass whose evaluator failed": {"evaluatorResults": line(1, "fail")["evaluatorResults"]},
    "a pass whose evaluator errored": {"evaluatorResults": line(1, "error")["evaluatorResults"]},
    "an outcome nobody knows": {"outcome": "passed"},
    "an evaluator's outcome nobody knows": {
        "evaluatorResults": [{"name": "a", "kind": "assertion", "outcome": "ok"}]
    },
    "a score off the scale": {"overallScore": 50},
    "a score that is true": {"overallScore": True},
    "a criterion that is text": {"criterionScores": {"tone": "0.9"}},
    "criteria that are a list": {"criterionScores": []},
    "a metric that is text": {"metrics": {"words": "many"}},
    "a line that is text": {"line": "1"},
    "an id that is a list": {"recordId": [1]},
    "a group that is a list": {"group": ["a"]},
    "usage that is text": {"usage": {"judgeCost": "1"}},
    "a cost that is paid back": {"usage": {"judgeCost": -5}},
    "usage that is a list": {"usage": [1]},
    "a value that is text": {
        "evaluatorResults": [{"name": "a", "kind": "metric", "outcome": "measured", "value": "1"}]
    },
    "an evaluator without a value": {
        "evaluatorResults": [{"name": "a", "kind": "metric", "outcome": "measured"}]
    },
    "an error that is a number": {"results": [{"error": 1, "criterionName": "a"}]},
}


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED.keys())
def test_what_is_no_result_is_refused_by_every_reader(tmp_path: Path, changes: dict[str, Any]) -> None:
    base, edited = write(tmp_path / "a.jsonl", line(1)), write(tmp_path / "b.jsonl", line(1, **changes))
    with pytest.raises(InvalidInput, match="line 1: is not a result"):
        compare_results(base, edited)
    with pytest.raises(InvalidInput, match="line 1: is not a result"):
        read_results(tmp_path, "b.jsonl")
    with pytest.raises(InvalidInput, match="is no result of evalstudio score"):
        recorded_source(edited)


def test_a_result_with_two_outcomes_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", line(1, "fail"))
    path.write_text(path.read_text().replace('"outcome": "fail"', '"outcome": "fail", "outcome": "pass"'))
    with pytest.raises(InvalidInput, match=r'line 1: is not a result.*"outcome" is there twice'):
        compare_results(path, path)


def test_what_was_scored_before_and_asserts_nothing_now_leaves_it_undecided(tmp_path: Path) -> None:
    base = write(tmp_path / "a.jsonl", line(1), line(2))
    now = write(tmp_path / "b.jsonl", line(1), line(2, "unasserted"))
    result = compare_results(base, now)
    assert (result.decision, "nothing was asserted" in result.reasons[0]) == ("undecided", True)


def test_records_that_are_gone_or_there_twice_are_told(tmp_path: Path) -> None:
    base = write(tmp_path / "a.jsonl", line(1), line(2))
    now = write(tmp_path / "b.jsonl", line(1), line(1))
    notes = " ".join(compare_results(base, now).notes)
    assert "1 subject of the base did not run in the candidate" in notes
    assert "id of an earlier one" in notes
    assert any("id of an earlier one" in note for note in recorded_source(now).head.notes)


@pytest.mark.parametrize("partial", ["budget", "unfinished"])
def test_results_that_are_not_whole_show_neither_success_nor_the_absence_of_a_regression(
    tmp_path: Path, partial: str
) -> None:
    base, now = write(tmp_path / "a.jsonl", line(1)), write(tmp_path / "b.jsonl", line(1))
    for path in (base, now):
        note_of(path).write_text(json.dumps({"plan": "p"} | ({"partial": partial} if path == now else {})))
    assert compare_results(base, now).decision == "undecided"
    assert recorded_source(now).head.standing == "undecided"
