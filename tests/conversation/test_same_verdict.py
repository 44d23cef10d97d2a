"""The same conversation gets the same verdict whichever way it came: live, recorded or scored again."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio import EvaluationResult, define_evaluator, run_evaluation, run_scenario
from evalstudio.conversation.definitions import Scenario
from evalstudio.conversation.judging import judge_conversation
from evalstudio.conversation.preparation import Services, prepare
from evalstudio.plugins import create_registry

RESPONSE = "The table is booked."

NUMERIC = {"name": "quality", "scale": "numeric"}
LIKERT = {"name": "quality", "scale": "likert5"}
BINARY = {"name": "quality", "scale": "binary"}
RANGED = {"name": "quality", "scale": "numeric", "range": [0, 10]}


@define_evaluator(type="with-value")
def with_value(ctx: Any) -> EvaluationResult:
    return EvaluationResult(value=0.5, criterion_name="quality")


@define_evaluator(type="with-score")
def with_score(ctx: Any) -> EvaluationResult:
    return EvaluationResult(success=True, score="4 stars", criterion_name="quality")


@define_evaluator(type="with-success")
def with_success(ctx: Any) -> EvaluationResult:
    return EvaluationResult(success=False, criterion_name="quality")


@define_evaluator(type="named-after-it")
def named_after_it(ctx: Any) -> float:
    return 0.5


@define_evaluator(type="measured", kind="metric")
def measured(ctx: Any) -> EvaluationResult:
    return EvaluationResult(value=7.0, criterion_name="quality")


@define_evaluator(type="skipping")
def skipping(ctx: Any) -> EvaluationResult:
    return EvaluationResult(success=True, skipped=True, criterion_name="quality")


@define_evaluator(type="off-the-scale")
def off_the_scale(ctx: Any) -> EvaluationResult:
    return EvaluationResult(success=True, score=-3, criterion_name="quality")


@define_evaluator(type="raising")
def raising(ctx: Any) -> EvaluationResult:
    raise RuntimeError("no")


CASES = {
    "a value on a numeric scale": ([with_value.use()], NUMERIC),
    "a value on a likert scale": ([with_value.use()], LIKERT),
    "a value on a binary scale": ([with_value.use()], BINARY),
    "a value on a range": ([with_value.use()], RANGED),
    "a raw score": ([with_score.use()], LIKERT),
    "a verdict alone": ([with_success.use()], BINARY),
    "an entry named after the criterion": ([named_after_it.use(name="quality")], NUMERIC),
    "a metric": ([measured.use()], RANGED),
    "a skip": ([skipping.use(), with_value.use()], NUMERIC),
    "a score off the scale": ([off_the_scale.use(), with_value.use()], LIKERT),
    "an error beside a score": ([raising.use(), with_value.use()], NUMERIC),
    "two on one criterion": ([with_value.use(), with_success.use()], NUMERIC),
}


@pytest.mark.parametrize("name", CASES)
async def test_live_recorded_and_again_come_to_the_same(name: str) -> None:
    entries, criterion = CASES[name]
    definition = {"name": "s", "script": ["Book a table."], "criteria": [criterion], "evaluators": entries}
    scenario = Scenario.model_validate({**definition, "stopOnFailure": False})
    live = await run_scenario(scenario, lambda messages: RESPONSE)
    recorded = await run_evaluation(
        {"prompt": "Book a table.", "response": RESPONSE},
        {"evaluatorConfigs": entries, "criteria": [criterion]},
    )
    again = await judge_conversation(prepare(scenario, create_registry()), live.turns, Services())
    assert live.verdict.coverage is not None
    assert live.overall_score == recorded.overall_score == again.overall_score
    assert live.outcome == recorded.outcome == again.outcome
    assert live.verdict.coverage.to_json() == recorded.coverage.to_json()
    assert live.verdict.criterion_scores == recorded.criterion_scores == again.verdict.criterion_scores


async def test_a_value_on_a_criterion_is_its_score() -> None:
    scenario = {"name": "s", "script": ["x"], "criteria": [NUMERIC], "evaluators": [with_value.use()]}
    result = await run_scenario(scenario, lambda messages: RESPONSE)
    assert result.overall_score == 0.5
    assert result.verdict.coverage is not None
    assert (result.verdict.coverage.scored, result.verdict.coverage.skipped) == (1, 0)
