"""The worked cases of recorded scoring, each through the real evaluators."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from evalstudio.evaluators.contract import EvaluatorContext
from evalstudio.evaluators.criteria import EvaluationCriteria, Excluded, normalize
from evalstudio.evaluators.records import EvaluationInput, facts_of
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries

CASES = json.loads((Path(__file__).parents[1] / "cases" / "recorded_scoring.json").read_text())
MODULES = {
    "RuleBased": "rule_based",
    "ToolUsage": "tool_usage",
    "LexicalSimilarity": "lexical_similarity",
    "KeywordCoverage": "keyword_coverage",
    "Sentiment": "sentiment",
    "Toxicity": "toxicity",
}


def throws(arguments: Any) -> bool:
    raise RuntimeError("the check is broken")


CHECKS: dict[str, Callable[[Any], Any]] = {
    '<fn: valid when args.location == "London">': lambda args: args.get("location") == "London",
    '<fn: invalid, reason "Missing unit">': lambda args: {"isValid": False, "reason": "Missing unit"},
    "<fn: valid when args.ok is true>": lambda args: {"isValid": args.get("ok") is True},
    "<fn: throws>": throws,
}


def cases(*components: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["component"] in components]


def wanted(case: Mapping[str, Any]) -> dict[str, Any]:
    return case.get("want") or case["expected"]


def filled(value: Any) -> Any:
    """A case's value with its stand-ins in place and its absent keys left out."""
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items() if item != "<absent>"}
    if isinstance(value, list):
        return [filled(item) for item in value]
    return CHECKS[value] if isinstance(value, str) and value.startswith("<fn") else value


def context_of(case: Mapping[str, Any]) -> EvaluatorContext[Any]:
    criteria = [EvaluationCriteria.model_validate(criterion) for criterion in case["criteria"]]
    return EvaluatorContext({}, facts_of(EvaluationInput.model_validate(filled(case["input"])), criteria))


@pytest.mark.parametrize("case", cases(*MODULES))
async def test_an_evaluator_gives_what_the_case_wants(case: dict[str, Any]) -> None:
    name = MODULES[case["component"]]
    definition = getattr(import_module(f"evalstudio.evaluators.builtin.{name}"), name)
    want = wanted(case)
    if want.get("rejected"):
        with pytest.raises(ValueError):
            definition.use(filled(case["config"]))
        return
    results = await run_entries([definition.use(filled(case["config"]))], context_of(case).facts)
    assert len(results) == len(want["results"])
    for result, expected in zip(results, want["results"], strict=True):
        assert_result(result, expected)


def assert_result(result: Finding, expected: Mapping[str, Any]) -> None:
    assert result.criterion_name == expected["criterionName"]
    assert (result.error is not None) == bool(expected.get("error")), result.reason
    assert result.skipped == bool(expected.get("skipped")), result.reason
    if "score" not in expected or expected.get("error"):
        assert result.score is None
        return
    assert_same(result.score, expected["score"])
    for key, item in expected.get("metadata", {}).items():
        assert_same(result.metadata[key], item)


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, bool | str | list):
        assert actual == expected
        assert isinstance(actual, type(expected))
    else:
        assert actual == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("case", cases("Normalization"))
def test_a_score_is_brought_to_where_the_case_wants_it(case: dict[str, Any]) -> None:
    criterion = EvaluationCriteria.model_validate({"name": "c", **case["config"]})
    expected = wanted(case)["normalized"]
    if expected is None:
        with pytest.raises(Excluded):
            normalize(case["input"]["score"], criterion)
    else:
        assert normalize(case["input"]["score"], criterion) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("case", cases("getInputText"))
def test_a_path_leads_to_the_text_the_case_wants(case: dict[str, Any]) -> None:
    assert context_of(case).text(case["config"]["sourceField"]) == wanted(case)["text"]
