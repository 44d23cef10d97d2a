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
    two = {"type": "human", "config": {"criterionName": "helpful", "score": "2 stars"}}
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
    assert result.results == []
    assert result.coverage.missing == ["helpful", "safe"]
    assert (result.outcome, result.success) == ("unasserted", False)


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ([{"criterionName": "safe"}], "score: is missing"),
        ([{"score": 1}], "criterionName: is missing"),
        ([{"criterionName": " ", "score": 1}], "must not be blank"),
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
    assert result.run_errors
    assert result.coverage.errors == 1


async def test_a_score_off_the_scale_or_on_an_unknown_criterion_is_an_error() -> None:
    result = await score(
        {"type": "human", "criterionName": "helpful", "score": 9},
        {"type": "human", "criterionName": "tone", "score": 1},
    )
    assert result.overall_score is None
    assert result.coverage.excluded[0]["criterionName"] == "helpful"
    assert result.coverage.unknown == ["tone"]
    assert result.outcome == "error"
    assert all(one.error for one in result.results)


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
