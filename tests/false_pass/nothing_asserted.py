"""Runs and records in which nothing held and nothing failed."""

from __future__ import annotations

from typing import Any

from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator

from .table import Came, live, recorded, row

SAID = {"response": "We pay for the parcel.", "groundTruth": "We pay."}
LENGTH = {"type": "response-length"}
TONE = {"name": "tone", "scale": "likert5"}


def echo(messages: Any) -> str:
    return "We pay for the parcel."


@define_evaluator(type="skips-all")
def skips_all(ctx: EvaluatorContext[Any]) -> EvaluationResult:
    """Never looks."""
    return EvaluationResult.skip("not this time")


@define_evaluator(type="says-nothing")
def says_nothing(ctx: EvaluatorContext[Any]) -> list[EvaluationResult]:
    """Looks and returns an empty list."""
    return []


@row("definition", "A scenario has metrics only", expect="unasserted", says="No assertion held or failed")
async def scenario_with_metrics_only() -> Came:
    return await live(echo, LENGTH)


@row("data", "Every evaluator of a conversation skips", expect="unasserted", says="No assertion")
async def every_evaluator_of_a_run_skips() -> Came:
    return await live(echo, skips_all)


@row("data", "An evaluator of a conversation returns an empty list", expect="unasserted")
async def evaluator_of_a_run_returns_nothing() -> Came:
    return await live(echo, says_nothing)


@row("definition", "A record is scored by metrics only", expect="unasserted")
async def record_with_metrics_only() -> Came:
    return await recorded(SAID, LENGTH)


@row("data", "Every evaluator of a record skips", expect="unasserted", says="not this time")
async def every_evaluator_of_a_record_skips() -> Came:
    return await recorded(SAID, skips_all)


@row("data", "An evaluator of a record returns an empty list", expect="unasserted")
async def evaluator_of_a_record_returns_nothing() -> Came:
    return await recorded(SAID, says_nothing)


@row("data", "A metric of a record cannot measure anything", expect="unasserted")
async def metric_that_is_missing() -> Came:
    return await recorded(SAID, {"type": "token-usage"})


@row("data", "An optional tool was not called and nothing else is checked", expect="unasserted")
async def optional_tool_not_called() -> Came:
    rules = [{"tool": "refund", "required": False, "arguments": {"type": "object"}}]
    return await recorded(SAID, {"type": "tool-usage", "config": {"rules": rules}})


@row("judge", "Nobody gave the marks that a record is to be scored by", expect="unasserted")
async def human_marks_missing() -> Came:
    return await recorded(SAID, {"type": "human", "sourceField": "metadata.marks"}, criteria=[TONE])


@row("judge", "The list of marks is empty", expect="unasserted")
async def human_marks_empty() -> Came:
    record = SAID | {"metadata": {"marks": []}}
    return await recorded(record, {"type": "human", "sourceField": "metadata.marks"}, criteria=[TONE])


@row("data", "A record's own criteria leave out the only one that is scored", expect="unasserted")
async def own_criteria_leave_the_scored_one_out() -> Came:
    record = SAID | {"criteria": [{"name": "brief"}]}
    entry = {"type": "lexical-similarity", "config": {"criterionName": "tone"}}
    return await recorded(record, entry, criteria=[TONE])
