"""What people said counts like any evaluator's result."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.human import human
from evalstudio.scoring.runner import run_evaluation

CRITERIA = [{"name": "helpful", "scale": "likert5"}, {"name": "safe", "scale": "binary"}]


async def score(*entries: Any, **record: Any) -> Any:
    given = {"response": "Hello", "criteria": CRITERIA, **record}
    return await run_evaluation(given, {"evaluatorConfigs": list(entries)})


async def test_a_score_in_the_config_aggregates_like_any_other() -> None:
    one = {"type": "human", "criterionName": "helpful", "score": 4, "comment": "good", "author": "Ana"}
    two = {"type": "human", "config": {"criterionName": "helpful", "score": 2}}
    result = await score(one, two)
    assert result.criterion_scores == {"helpful": 0.5}
    assert result.results[0].to_json() == {
        "criterionName": "helpful",
        "score": 4,
        "reasoning": "good",
        "evaluatorType": "human",
        "metadata": {"author": "Ana"},
    }
    assert result.outcome == "fail"


FEEDBACK = [
    {"criterionName": "helpful", "score": 5, "comment": "great", "author": "Ana"},
    {"criterionName": "safe", "score": "no"},
]


@pytest.mark.parametrize(
    "given",
    [FEEDBACK, '[{"criterionName":"helpful","score":5},{"criterionName":"safe","score":"no"}]'],
)
async def test_a_record_brings_its_own_feedback(given: Any) -> None:
    entry = {"type": "human", "config": {"sourceField": "metadata.feedback"}}
    result = await score(entry, metadata={"feedback": given})
    assert result.criterion_scores == {"helpful": 1.0, "safe": 0.0}
    assert not result.success


async def test_one_opinion_needs_no_list() -> None:
    entry = {"type": "human", "sourceField": "context.review"}
    result = await score(entry, context={"review": {"criterionName": "safe", "score": True}})
    assert result.criterion_scores == {"safe": 1.0}


async def test_a_record_without_feedback_is_not_covered_and_not_a_pass() -> None:
    result = await score({"type": "human", "sourceField": "metadata.feedback"})
    assert [one.skipped for one in result.results] == [True]
    assert result.coverage.missing == ["helpful", "safe"]
    assert (result.outcome, result.success) == ("unasserted", False)


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ([{"criterionName": "safe"}], "score: is missing"),
        ([{"score": 1}], "criterionName: is missing"),
        ([{"criterionName": " ", "score": 1}], "must not be blank"),
        ([{"criterionName": "safe", "score": None}], "score"),
        ([{"criterionName": "safe", "score": [True]}], "score"),
        ('[{"criterionName": "safe", "score": true, "score": false}]', '"score" is there twice'),
        ('[{"criterionName": "safe", "score": NaN}]', "NaN is not a number in JSON"),
        ('{"criterionName": "safe", "score": true} {}', "it is text, but not JSON"),
        ([{"criterionName": "safe", "score": 1, "mood": "x"}], "mood"),
        ("five stars", "it is text, but not JSON"),
        (5, "cannot be read"),
    ],
)
async def test_feedback_that_cannot_be_read_is_an_error_that_says_why(feedback: Any, message: str) -> None:
    result = await score(
        {"type": "human", "sourceField": "metadata.feedback"}, metadata={"feedback": feedback}
    )
    assert result.results[0].error is not None
    assert message in result.results[0].error
    assert (result.outcome, result.coverage.errors) == ("error", 1)


@pytest.mark.parametrize(
    "mark", [9, "4", "4 stars", "4/5", "80%", "0,8", 4.5, True, "five", "", float("nan")]
)
async def test_a_mark_off_the_scale_is_an_error_that_says_what_the_scale_accepts(mark: Any) -> None:
    result = await score({"type": "human", "criterionName": "helpful", "score": mark, "author": "Ana"})
    assert (result.outcome, result.overall_score) == ("error", None)
    error = result.results[0].error
    assert "is not on the scale; answer a whole number from 1 (worst) to 5 (best)" in error
    assert result.results[0].metadata["author"] == "Ana"


async def test_a_mark_on_a_criterion_nobody_declared_is_an_error() -> None:
    result = await score({"type": "human", "criterionName": "helpfull", "score": 5})
    assert result.outcome == "error"
    assert result.results[0].error.endswith("did you mean helpful?")
    assert result.coverage.unknown == ["helpfull"]


async def test_a_mark_that_cannot_be_read_leaves_its_neighbours_alone() -> None:
    marks = [
        {"criterionName": "helpful", "score": "8/10"},
        {"criterionName": "safe"},
        {"criterionName": "safe", "score": "Yes"},
        {"criterionName": "helpful", "score": 5},
    ]
    result = await score({"type": "human", "sourceField": "metadata.feedback"}, metadata={"feedback": marks})
    assert [item.error is None for item in result.results] == [False, False, True, True]
    assert [item.criterion_name for item in result.results] == ["helpful", "safe", "safe", "helpful"]
    assert result.outcome == "error"
    assert result.criterion_scores == {"helpful": 1.0, "safe": 1.0}


@pytest.mark.parametrize(("word", "holds"), [("yes", True), ("PASS", True), ("no", False), ("False", False)])
async def test_yes_and_no_may_be_written_as_words(word: str, holds: bool) -> None:
    result = await score({"type": "human", "criterionName": "safe", "score": word})
    assert (result.success, result.criterion_scores) == (holds, {"safe": float(holds)})


@pytest.mark.parametrize("cell", ["", "  ", "[]", None])
async def test_an_empty_cell_is_no_feedback(cell: Any) -> None:
    result = await score({"type": "human", "sourceField": "metadata.feedback"}, metadata={"feedback": cell})
    assert [one.skipped for one in result.results] == [True]
    assert (result.outcome, result.coverage.missing) == ("unasserted", ["helpful", "safe"])


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"criterionName": "a"},
        {"score": 1},
        {"criterionName": "a", "score": 1, "sourceField": "metadata.x"},
        {"criterionName": "a", "score": [1]},
        {"criterionName": " ", "score": 1},
    ],
)
def test_a_config_that_says_nothing_clear_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        human.use(config)
