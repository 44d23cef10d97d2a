"""Datasets and plans, scored by the command itself: its exit code is the verdict of a CI job."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.command_line import evalstudio

from .table import Came, row

# Exit code 0 is a pass; the others by what they mean.
OUTCOMES = {0: "pass", 1: "fail", 2: "refused", 3: "unasserted"}
LENGTH = {"type": "rule-based", "config": {"rules": [{"type": "length", "min": 1}]}}
NO_REFUND = {"type": "regex", "config": {"pattern": "refund", "mustMatch": False}}
FINE = [{"id": "a", "response": "Hello"}]


async def scored(
    dataset: str | Sequence[Mapping[str, Any]], plan: Mapping[str, Any], *options: str, name: str = "d.jsonl"
) -> Came:
    """What ``evalstudio score`` makes of a dataset and a plan."""
    text = dataset if isinstance(dataset, str) else "".join(json.dumps(one) + "\n" for one in dataset)
    with tempfile.TemporaryDirectory(prefix="false-pass-") as folder:
        Path(folder, name).write_text(text, encoding="utf-8")
        Path(folder, "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        done = evalstudio("score", name, "-c", "plan.json", *options, cwd=Path(folder))
    outcome = OUTCOMES[done.returncode]
    if outcome == "unasserted" and "see the errors" in done.stderr:
        outcome = "error"
    return Came(outcome, done.stdout + done.stderr)


@row("data", "A dataset is an empty file", expect="refused", says="is empty")
async def dataset_is_empty() -> Came:
    return await scored("", {"evaluators": [LENGTH]})


@row("data", "A dataset holds blank lines only", expect="refused", says="holds no records")
async def dataset_of_blank_lines() -> Came:
    return await scored("\n\n", {"evaluators": [LENGTH]})


@row("data", "A table holds a header and no rows", expect="refused", says="holds no records")
async def table_without_rows() -> Came:
    return await scored("id,response\n", {"evaluators": [LENGTH]}, name="d.csv")


@row(
    "data", "Every line of a dataset is broken, and broken ones are skipped", expect="refused", says="not one"
)
async def only_bad_lines() -> Came:
    return await scored("{oops\n[]\n", {"evaluators": [LENGTH]}, "--skip-bad")


@row("data", "A record of a dataset has two responses", expect="refused", says='"response" is there twice')
async def two_responses() -> Came:
    return await scored('{"response": "We give a refund", "response": "Fine."}', {"evaluators": [NO_REFUND]})


@row("data", "Not one record is to be scored", expect="refused", says="--limit")
async def limit_of_nothing() -> Came:
    return await scored(FINE, {"evaluators": [LENGTH]}, "--limit", "0")


@row("data", "No record is in the sample", expect="unasserted", says="nothing was scored")
async def nothing_in_the_sample() -> Came:
    return await scored(FINE, {"evaluators": [LENGTH]}, "--sample", "0.000001%")


@row(
    "definition", "A plan has metrics only and no threshold", expect="unasserted", says="nothing was asserted"
)
async def plan_with_metrics_only() -> Came:
    return await scored(FINE, {"evaluators": [{"type": "response-length"}]})


@row(
    "definition",
    "Only the metrics of a plan are chosen to run",
    expect="unasserted",
    says="nothing was asserted",
)
async def only_the_metrics_of_a_plan() -> Came:
    plan = {"evaluators": [LENGTH, {"type": "response-length"}]}
    return await scored(FINE, plan, "--only", "metric")


@row("data", "Every record of a dataset is an error", expect="error", says='no text at "groundTruth"')
async def every_record_an_error() -> Came:
    return await scored(FINE, {"evaluators": [{"type": "lexical-similarity"}]})


@row("data", "A response is null", expect="refused", says='has no "response" field')
async def response_is_null() -> Came:
    return await scored([{"id": "a", "response": None}], {"evaluators": [NO_REFUND]})


@row("data", "A table lacks the column of the responses", expect="refused", says='has no "response" field')
async def table_without_responses() -> Came:
    return await scored("id,reply\na,Hello\n", {"evaluators": [NO_REFUND]}, name="d.csv")


@row("data", "The cell of a response that must say something is empty", expect="fail", says="0 pass, 1 fail")
async def empty_cell_must_say_something() -> Came:
    plan = {
        "criteria": [{"name": "there"}],
        "evaluators": [{"type": "regex", "name": "there", "config": {"pattern": "refund"}}],
        "thresholds": {"there": 1},
    }
    return await scored("id,response\na,\n", plan, name="d.csv")


@row("data", "The cell of a reference is empty, and so is the response", expect="error", says="groundTruth")
async def empty_cells_compared() -> Came:
    plan = {"evaluators": [{"type": "lexical-similarity"}]}
    return await scored("id,response,groundTruth\na,,\n", plan, name="d.csv")


@row(
    "definition",
    "A plan misspells the criterion of an evaluator",
    expect="refused",
    says="did you mean tone?",
)
async def plan_misspells_a_criterion() -> Came:
    plan = {
        "criteria": [{"name": "tone"}],
        "evaluators": [LENGTH, {"type": "regex", "config": {"pattern": "x", "criterionName": "tnoe"}}],
    }
    return await scored(FINE, plan)


@row(
    "definition", "A plan misspells the criterion of a threshold", expect="refused", says="did you mean tone?"
)
async def plan_misspells_a_threshold() -> Came:
    plan = {"criteria": [{"name": "tone"}], "evaluators": [LENGTH], "thresholds": {"tnoe": 0.5}}
    return await scored(FINE, plan)


@row("data", "The criterion of a threshold got no score at all", expect="fail", says="it has no score")
async def threshold_without_a_score() -> Came:
    plan = {
        "criteria": [{"name": "close", "scale": "numeric"}],
        "evaluators": [LENGTH, {"type": "lexical-similarity", "config": {"criterionName": "close"}}],
        "thresholds": {"close": 0},
    }
    return await scored(FINE, plan)


@row(
    "definition",
    "The overall score must reach a bar and no criterion is declared",
    expect="fail",
    says="none",
)
async def bar_without_criteria() -> Came:
    return await scored(FINE, {"evaluators": [LENGTH], "failUnder": 0})


@row("data", "A mean just below its threshold rounds up to it", expect="fail", says="it is 0.99")
async def mean_that_rounds_up() -> Came:
    rows = [{"id": n, "response": "same", "groundTruth": "same"} for n in range(2500)]
    plan = {
        "criteria": [{"name": "close", "scale": "binary"}],
        "evaluators": [{"type": "lexical-similarity", "config": {"criterionName": "close"}}],
        "thresholds": {"close": 1},
    }
    return await scored([*rows, {"id": "odd", "response": "other", "groundTruth": "same"}], plan)
