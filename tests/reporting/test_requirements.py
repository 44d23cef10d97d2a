"""Requirements: how they are written, and whether they are met, missed or undecided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.results import Outcome, RunOutput, Verdict
from evalstudio.project.entities import RunSummary
from evalstudio.project.requirements import (
    Requirement,
    read_requirement,
    read_requirements,
    stored_requirement,
)
from evalstudio.reporting.evidence import Baseline, ExecutionEvidence
from evalstudio.reporting.recorded import RecordedEvidence
from evalstudio.reporting.requirements import judge, overall
from evalstudio.scoring.results_file import note_of
from evalstudio.scoring.summary import DatasetSummary


def run(scenario: str, outcome: Outcome | None, **more: Any) -> RunSummary:
    verdict = None if outcome is None else Verdict(outcome=outcome)
    status = "cancelled" if outcome is None else "error" if outcome == "error" else "completed"
    fields: dict[str, Any] = {"execution_id": "x", "scenario_id": scenario, "scenario_name": scenario}
    return RunSummary(**fields, status=status, result=verdict, **more)


def runs(**outcomes: str) -> list[RunSummary]:
    """Runs by scenario: p passes, f fails, e errors, u is unasserted, - was not run."""
    words: dict[str, Outcome | None] = {
        "p": "pass",
        "f": "fail",
        "e": "error",
        "u": "unasserted",
        "-": None,
    }
    return [run(name, words[letter]) for name, letters in outcomes.items() for letter in letters]


def judged(text: str, what: list[RunSummary], **more: Any) -> tuple[str, str]:
    requirement = read_requirement(text)
    evidence = ExecutionEvidence([requirement], **more)
    for one in what:
        evidence.add(one)
    [result, *_] = judge([requirement], evidence)
    return result.standing, result.evidence


MANY = {f"s{number}": "p" for number in range(100)}


@pytest.mark.parametrize(
    ("text", "what", "standing", "says"),
    [
        ("passRate>=0.9", runs(a="p" * 9, b="f"), "met", "9 of 10 passed, 90% (95% interval"),
        ("passRate>=0.9", runs(a="p" * 8, b="ff"), "missed", "8 of 10 passed"),
        ("passRate>=0.9", runs(a="eee"), "undecided", "none of 3 runs passed or failed"),
        ("passRate>=0.9", runs(a="pp--"), "undecided", "2 runs are not run"),
        ("passRate>=0.5", runs(a="p" * 9 + "-"), "met", "1 runs are not run"),
        ("passRate>=0.9", runs(a="ffffp--"), "missed", "2 runs are not run"),
        # With a confidence the bound of the interval decides, and between the bounds nothing is decided.
        ("passRate>=0.9,confidence=0.95", runs(a="p" * 10), "undecided", "10 of 10 passed"),
        ("passRate>=0.9,confidence=0.95", runs(**MANY), "met", "100 of 100 passed"),
        ("passRate>=0.9,confidence=0.95", runs(**dict.fromkeys(MANY, "f")), "missed", "0 of 100"),
        ("passRate>=1,scenario=b", runs(a="f", b="pp"), "met", "2 of 2 passed"),
        ("passRate>=1,scenario=B", runs(a="p", b="f"), "missed", "0 of 1 passed"),
        ("passRate>=1,scenario=c", runs(a="p"), "undecided", 'there are no runs of scenario "c"'),
        ("passRate>=1,tag=safe", runs(a="f", b="p"), "met", "1 of 1 passed"),
        ("passHatK>=0.5,k=2", runs(a="pp", b="pf"), "met", "pass^2 is 50% over 2 subjects"),
        ("passHatK>=0.9,k=2", runs(a="pp", b="pf"), "missed", "pass^2 is 50%"),
        ("passHatK>=0.9,k=3", runs(a="pp", b="pp"), "undecided", "no subject was scored 3 times"),
        ("passHatK>=0.9,k=2", runs(a="pp", b="p"), "undecided", "1 subject was scored fewer than 2 times"),
        ("maxErrors<=1", runs(a="pe"), "met", "1 of 2 runs errored"),
        ("maxErrors<=0", runs(a="pe"), "missed", "1 of 2 runs errored"),
        ("maxErrors<=25%", runs(a="pppe"), "met", "1 of 4"),
        ("maxErrors<=24%", runs(a="pppe"), "missed", "1 of 4"),
        ("maxErrors<=5", runs(a="p--"), "undecided", "2 runs are not run"),
        ("maxFlaky<=0", runs(a="pf", b="pp"), "missed", "1 of 2 subjects"),
        ("maxFlaky<=50%", runs(a="pf", b="pp"), "met", "1 of 2 subjects"),
        ("maxFlaky<=0", runs(a="p"), "undecided", "nothing was scored more than once"),
        (
            "minCoverage>=1",
            runs(**dict.fromkeys(MANY, "p"), b="e"),
            "missed",
            "100 of 101 runs passed or failed, 99.0%",
        ),
        ("minCoverage>=0.5", runs(a="pu"), "met", "1 of 2 runs passed or failed, 50%"),
    ],
)
def test_each_is_met_missed_or_undecided(text: str, what: list[RunSummary], standing: str, says: str) -> None:
    found, sentence = judged(text, what, tags={"safe": frozenset({"b"})})
    assert (found, says in sentence) == (standing, True), sentence


def measured(latency: float, **output: Any) -> tuple[RunSummary, RunOutput]:
    return run("a", "pass", latency_ms=latency), RunOutput(**output)


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        ("metric=latencyMs,percentile=50,max=55", "met"),
        ("metric=latencyMs,percentile=95,max=55", "missed"),
        ("metric=latencyMs,max=51", "met"),
        ("metric=words,min=3", "met"),
        ("metric=words,min=4", "missed"),
        ("metric=nothing,min=4", "undecided"),
        ("criterion=tone,min=0.5", "met"),
        ("criterion=tone,min=0.6", "missed"),
        ("criterion=tone,min=0.4,confidence=0.99", "undecided"),
        ("minCoverage=0.5,criterion=tone", "met"),
        ("minCoverage=0.51,criterion=tone", "missed"),
    ],
)
def test_measurements_are_held_against_bounds(text: str, standing: str) -> None:
    requirement = read_requirement(text)
    evidence = ExecutionEvidence([requirement])
    for number in range(1, 101):
        scores = {"criterionScores": {"tone": 0.5}} if number % 2 else {}
        evidence.add(*measured(number, metrics={"words": 3.0}, **scores))
    [result] = judge([requirement], evidence)
    assert result.standing == standing, result.evidence


@pytest.mark.parametrize(
    ("before", "now", "text", "standing"),
    [
        ("p", "p", "noRegression=main", "met"),
        ("p", "f", "noRegression=main", "missed"),
        ("p", "f", "noRegression=main,minEffect=1", "missed"),
        ("f", "p", "noRegression=main", "met"),
        ("p", "p", "noRegression=main,confidence=0.95", "undecided"),
        ("p", "p", "noRegression=main,confidence=0.95,minEffect=0.5", "met"),
    ],
)
def test_a_regression_is_told_from_the_baseline(before: str, now: str, text: str, standing: str) -> None:
    base = runs(**{f"s{number}": before for number in range(10)})
    baseline = Baseline.of("main", base)
    candidate = runs(**{f"s{number}": now for number in range(10)})
    found, sentence = judged(text, candidate, baselines={"main": baseline})
    assert found == standing, sentence
    assert "against main over 10 subjects" in sentence


@pytest.mark.parametrize(
    ("text", "first", "standing"),
    [
        ("noRegression=main", "p", "undecided"),
        ("noRegression=main,minEffect=0.2", "p", "met"),
        # One got worse and another better: that is what noise looks like.
        ("noRegression=main", "f", "met"),
    ],
)
def test_one_worse_subject_of_ten_is_open_unless_another_got_better(
    text: str, first: str, standing: str
) -> None:
    before = {f"s{number}": "p" for number in range(10)} | {"s0": first}
    base = Baseline.of("main", runs(**before))
    candidate = runs(**{f"s{number}": "p" for number in range(9)}, s9="f")
    requirement = read_requirement(text)
    evidence = ExecutionEvidence([requirement], baselines={"main": base})
    for one in candidate:
        evidence.add(one)
    [result] = judge([requirement], evidence)
    assert result.standing == standing
    assert ("-10.0 points" if first == "p" else "0 points") in result.evidence
    assert result.regressed == ["s9"]


@pytest.mark.parametrize(
    ("text", "lost", "standing"),
    [
        ("noRegression=main", {}, "undecided"),
        ("noRegression=main", {"b": "e"}, "undecided"),
        ("noRegression=main", {"b": "u"}, "undecided"),
        ("noRegression=main,allowGone=true", {}, "met"),
        ("noRegression=main,scenario=a", {}, "met"),
        ("noRegression=main", {"b": "p"}, "met"),
    ],
)
def test_what_the_baseline_had_and_is_not_here_leaves_it_open(
    text: str, lost: dict[str, str], standing: str
) -> None:
    baseline = Baseline.of("main", runs(a="p", b="f"))
    known, sentence = judged(text, runs(a="p", **lost), baselines={"main": baseline})
    assert known == standing, sentence
    assert ("1 subject of it without a result here: b" in sentence) == (standing == "undecided")


def test_where_somebody_chose_what_to_run_the_rest_of_the_baseline_is_not_missed() -> None:
    baseline = Baseline.of("main", runs(a="p", b="f"))
    baseline.all_must_run = False
    assert judged("noRegression=main", runs(a="p"), baselines={"main": baseline})[0] == "met"
    assert judged("noRegression=main", runs(a="p", b="e"), baselines={"main": baseline})[0] == "undecided"


def test_that_subjects_may_be_missing_is_written_as_it_is_read() -> None:
    requirement = read_requirement("noRegression=main,allowGone=true")
    assert requirement.text == "noRegression=main,allowGone=true"
    assert requirement.sentence == 'no regression against "main", subjects of it may be missing'


def test_a_missing_baseline_leaves_it_open() -> None:
    assert judged("noRegression=main", runs(a="p"))[0] == "undecided"
    found, sentence = judged("noRegression=main", runs(a="p"), baselines={"main": Baseline.of("main", [])})
    assert (found, sentence) == ("undecided", "no subject was scored both here and in main")


def test_a_thousand_errors_and_one_pass_are_not_a_success() -> None:
    requirement = read_requirement("passRate>=0.9")
    evidence = ExecutionEvidence([requirement])
    for one in runs(a="p" + "e" * 1000):
        evidence.add(one)
    results = judge([requirement], evidence)
    assert results[0].standing == "met"
    assert overall(results) == "undecided"
    assert "1,000 of 1,001 runs errored" in results[-1].evidence
    allowed = [requirement, read_requirement("maxErrors=100%")]
    assert overall(judge(allowed, evidence)) == "met"


def test_the_same_holds_for_records() -> None:
    summary = DatasetSummary(records=1001)
    summary.outcomes.update({"pass": 1, "error": 1000})
    assert overall(judge([read_requirement("passRate>=0.9")], RecordedEvidence(summary))) == "undecided"
    percentile = read_requirement("metric=words,percentile=95,max=3")
    [result, _] = judge([percentile], RecordedEvidence(summary))
    assert (result.standing, "--output" in result.evidence) == ("undecided", True)


def test_agent_errors_may_count_as_failures() -> None:
    requirement = read_requirement("passRate>=0.9")
    evidence = ExecutionEvidence([requirement], agent_errors_fail=True)
    broken = Verdict(outcome="error", fault="agent")
    evidence.add(RunSummary(execution_id="x", scenario_name="a", status="error", result=broken))
    assert overall(judge([requirement], evidence)) == "missed"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("passRate<=0.9", "passRate is written passRate>=0.9"),
        ("passrate=0.9", 'there is no "passrate"'),
        ("passRate=1.5", "passRate"),
        ("passRate=high", "passRate"),
        ("passRate=0.9,maxErrors=3", "this one gives passRate and maxErrors"),
        ("passRate=0.9,passRate=0.8", "passRate is given twice"),
        ("passHatK=0.9", "passHatK needs k"),
        ("passRate=0.9,k=3", "k belongs to passHatK"),
        ("metric=latencyMs", "metric needs min or max"),
        ("metric=latencyMs,min=3,max=2", "min 3 is more than max 2"),
        ("maxErrors=many", "neither a whole number nor a share"),
        ("maxErrors=-1", "maxErrors"),
        ("scenario=a", "this one gives none"),
        ("maxErrors=1,confidence=0.9", "confidence belongs to"),
        ("nowhere.yaml", "neither a requirement nor a file"),
    ],
)
def test_what_is_wrong_with_a_requirement_is_said(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=r".*") as refused:
        read_requirements([text])
    assert complaint in str(refused.value)


def test_names_may_hold_commas_and_a_file_holds_a_list(tmp_path: Path) -> None:
    assert read_requirement("passRate>=1,scenario=Refund, large,confidence=0.9").scenario == "Refund, large"
    path = tmp_path / "require.yaml"
    path.write_text("requirements:\n- passRate: 0.9\n- maxErrors: 2%\n")
    first, second = read_requirements([str(path)])
    assert (first.pass_rate, second.max_errors) == (0.9, "2%")
    path.write_text("passRate: 0.9\n")
    with pytest.raises(InvalidInput, match="holds no list of requirements"):
        read_requirements([str(path)])


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement(pass_rate=0.9, tag="safety", confidence=0.95),
        Requirement(metric="latencyMs", percentile=95, max=2000),
        Requirement(no_regression="main", min_effect=0.05, alpha=0.01),
        Requirement(min_coverage=1, criterion="tone"),
    ],
)
def test_the_text_of_a_requirement_reads_as_the_same(requirement: Requirement) -> None:
    assert read_requirement(requirement.text) == requirement


def results_file(path: Path, outcomes: str, **more: Any) -> Path:
    words = {"p": "pass", "f": "fail", "e": "error"}
    rest: dict[str, Any] = {"criterionScores": {}, "evaluatorResults": [], "results": []}
    lines = [
        json.dumps(
            {"recordId": str(number), "line": number + 1, "outcome": words[letter], **rest}
            | {"metrics": {"words": number}, **more}
        )
        for number, letter in enumerate(outcomes)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def recorded(text: str, outcomes: str, results: Path | None) -> tuple[str, str, list[str]]:
    summary = DatasetSummary()
    for number, letter in enumerate(outcomes):
        word = {"p": "pass", "f": "fail", "e": "error"}[letter]
        rest: dict[str, Any] = {"criterionScores": {}, "evaluatorResults": [], "results": []}
        summary.add({"outcome": word, "metrics": {"words": float(number)}, **rest})
    [result, *_] = judge([read_requirement(text)], RecordedEvidence(summary, results))
    return result.standing, result.evidence, result.regressed


def test_records_are_held_against_percentiles_and_an_earlier_results_file(tmp_path: Path) -> None:
    now = results_file(tmp_path / "now.jsonl", "p" * 50 + "f" * 10)
    base = results_file(tmp_path / "base.jsonl", "p" * 60)
    outcomes = "p" * 50 + "f" * 10
    assert recorded("metric=words,percentile=50,max=30", outcomes, now)[0] == "met"
    assert recorded("metric=words,percentile=95,max=30", outcomes, now)[0] == "missed"
    standing, evidence, regressed = recorded(f"noRegression={base}", outcomes, now)
    assert (standing, regressed) == ("missed", [str(number) for number in range(50, 60)])
    assert "-16.7 points against" in evidence
    assert (
        recorded(f"noRegression={base}", "p" * 60, results_file(tmp_path / "b.jsonl", "p" * 60))[0] == "met"
    )


def test_a_failure_is_not_hidden_by_a_second_result_of_the_same_record(tmp_path: Path) -> None:
    base = results_file(tmp_path / "base.jsonl", "p" * 20)
    now = results_file(tmp_path / "now.jsonl", "f" * 20)
    now.write_text(now.read_text() + base.read_text())
    _, _, regressed = recorded(f"noRegression={base}", "f" * 20 + "p" * 20, now)
    assert len(regressed) == 20


def test_records_without_what_they_are_compared_with_are_undecided(tmp_path: Path) -> None:
    now = results_file(tmp_path / "now.jsonl", "pp")
    torn = tmp_path / "torn.jsonl"
    torn.write_text("{")
    errored = results_file(tmp_path / "errored.jsonl", "ee")
    for baseline, results, says in (
        ("nowhere.jsonl", now, "there is no results file"),
        (str(now), now, "is the file that these results are written to"),
        (str(now), None, "--output"),
        (str(torn), now, "no result"),
        (str(errored), now, "no record was scored both here and in"),
    ):
        standing, evidence, _ = recorded(f"noRegression={baseline}", "pp", results)
        assert (standing, says in evidence) == ("undecided", True), evidence
    other = results_file(tmp_path / "other.jsonl", "pp")
    for path, plan in ((now, "a"), (other, "b")):
        note_of(path).write_text(json.dumps({"plan": plan}))
    assert "another plan" in recorded(f"noRegression={other}", "pp", now)[1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("passRate>=0.9", "pass rate at least 90%"),
        (
            "passRate>=0.995,scenario=Refund,confidence=0.95",
            'pass rate at least 99.5%, of "Refund", at 95% confidence',
        ),
        ("passHatK>=0.5,k=3", "pass^3, all of 3 runs passed, for at least 50% of subjects"),
        ("noRegression=main,minEffect=0.05", 'no regression against "main", drops below 5% do not count'),
        ("maxErrors<=2%", "errors at most 2%"),
        ("maxFlaky<=1,tag=smoke", 'flaky subjects at most 1, of scenarios tagged "smoke"'),
        ("minCoverage>=0.95,criterion=tone", 'coverage of "tone" at least 95%'),
        ("metric=latencyMs,percentile=95,max=2000", '95th percentile of "latencyMs" at most 2,000'),
        ("criterion=tone,min=0.6,max=0.9", 'mean of "tone" at least 0.6 and at most 0.9'),
    ],
)
def test_a_requirement_is_a_sentence_for_those_who_do_not_type_it(text: str, sentence: str) -> None:
    assert read_requirement(text).sentence == sentence


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"passRate": 0}, "requires nothing"),
        ({"passHatK": 0, "k": 2}, "requires nothing"),
        ({"minCoverage": 0}, "requires nothing"),
        ({"criterion": "tone", "min": 0}, "requires nothing"),
        ({"criterion": "tone", "max": 1}, "requires nothing"),
        ({"criterion": "tone", "min": 4}, "outside 0–1"),
        ({"passRate": True}, "is no number"),
        ({"passRate": "0.9"}, "is no number"),
        ({"passHatK": 0.5, "k": True}, "is no number"),
        ({"metric": "cost", "max": float("inf")}, "finite"),
        ({"metric": "cost", "min": float("nan")}, "finite"),
        ({"passRate": 0.9, "scenario": " "}, "blank"),
    ],
)
def test_a_requirement_that_requires_nothing_or_cannot_be_read_is_refused(
    fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        Requirement.model_validate(fields)


def test_a_stored_requirement_that_is_refused_by_now_is_still_read() -> None:
    kept = stored_requirement({"passRate": 0, "scenario": "Refund"})
    assert (kept.kind, kept.text) == ("passRate", "passRate>=0,scenario=Refund")


@pytest.mark.parametrize(
    ("texts", "what", "standing"),
    [
        (["maxErrors<=100%"], runs(a="eee"), "undecided"),
        (["maxErrors<=3", "maxFlaky<=3"], runs(a="eee"), "undecided"),
        (["maxErrors<=0"], runs(a="uuu"), "undecided"),
        (["maxErrors<=0", "metric=turns,max<=9"], [run("a", "unasserted", turn_count=2)], "met"),
        (["maxErrors<=100%", "metric=turns,max<=9"], [run("a", "error", turn_count=2)], "undecided"),
        (["maxErrors<=2"], runs(a="eep"), "met"),
    ],
)
def test_where_nothing_passed_or_failed_few_errors_are_no_evidence(
    texts: list[str], what: list[RunSummary], standing: str
) -> None:
    requirements = [read_requirement(text) for text in texts]
    evidence = ExecutionEvidence(requirements)
    for one in what:
        evidence.add(one)
    assert overall(judge(requirements, evidence)) == standing
