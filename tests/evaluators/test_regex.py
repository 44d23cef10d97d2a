"""The regex evaluator: what it finds, when it must hold, and where it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.regex import regex
from evalstudio.evaluators.criteria import EvaluationCriteria
from evalstudio.evaluators.records import EvaluationInput, facts_of
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries
from evalstudio.testing import context


async def look(response: str, **config: Any) -> Finding:
    (result,) = await run_entries([regex.use(config)], context(response).facts)
    return result


async def test_a_response_that_matches_holds_and_says_what_matched() -> None:
    result = await look("Your order A-17 is on its way", pattern=r"[A-Z]-\d+")
    assert result.holds
    assert result.value == 1.0
    assert result.reason == r"/[A-Z]-\d+/ matches 'A-17'"
    assert result.metadata == {"match": "A-17"}


async def test_a_response_that_does_not_match_fails() -> None:
    result = await look("nothing here", pattern="order")
    assert result.failed
    assert result.value == 0.0
    assert result.reason == "no match for /order/"


async def test_with_must_match_false_a_match_is_the_failure() -> None:
    assert (await look("all fine", pattern="error", mustMatch=False)).holds
    result = await look("an ERROR", pattern="error", flags="i", mustMatch=False)
    assert result.failed
    assert "'ERROR'" in result.reason


async def test_an_empty_response_can_match() -> None:
    assert (await look("", pattern="^$")).holds


async def test_long_matches_are_cut_in_the_reason() -> None:
    result = await look("a" * 1_000_000, pattern="a+")
    assert len(result.reason) < 500


def test_the_gate_follows_must_match() -> None:
    assert regex.use(pattern="a").gate == "eventually"
    assert regex.use(pattern="a", mustMatch=False).gate == "always"
    assert regex.use(pattern="a", gate="finally").gate == "finally"
    assert regex.to_json()["gate"] == "eventually"


def test_only_linear_patterns_run_in_place() -> None:
    assert regex.use(pattern="^(a+)+$").inline
    assert not regex.use(pattern="a(?=b)").inline
    assert not regex.use(pattern="(.?){1000}x").inline


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"pattern": "[["}, "bad pattern"),
        ({"pattern": "a", "flags": "Q"}, "unknown flag 'Q'"),
        ({"pattern": "a" * 10_001}, "at most 10,000"),
        ({}, "pattern"),
        ({"pattern": "a", "mustmatch": True}, "mustmatch"),
        ({"pattern": "a", "criterionName": "  "}, "must not be blank"),
        ({"pattern": None}, "pattern"),
    ],
)
def test_a_wrong_config_is_refused_at_load(config: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told.replace("[", r"\[")):
        regex.use(config)


async def test_a_criterion_gets_a_score_on_its_scale() -> None:
    facts = context("yes", criteria=[{"name": "c", "scale": "likert5"}]).facts
    (result,) = await run_entries([regex.use(pattern="yes", criterionName="c")], facts)
    assert (result.criterion_name, result.score) == ("c", 5)
    assert await run_entries([regex.use(pattern="yes", criterionName="other")], facts) == []


async def test_a_response_that_is_not_text_is_an_error_under_its_criterion() -> None:
    facts = facts_of(EvaluationInput(response={"complex": "data"}), [])
    (result,) = await run_entries([regex.use(pattern="a", criterionName="c")], facts)
    assert result.error == 'no text at "response"'
    assert result.criterion_name == "c"


async def test_a_pattern_that_runs_on_is_an_error_and_the_loop_stays_free() -> None:
    facts = context("a" * 100_000 + "!").facts
    ticks, done = 0, False

    async def watch() -> None:
        nonlocal ticks
        while not done:
            await asyncio.sleep(0.01)
            ticks += 1

    watching = asyncio.create_task(watch())
    (result,) = await run_entries([regex.use(pattern="^(?=a)(a+)+$")], facts)
    done = True
    await watching
    assert result.error is not None
    assert result.error.startswith("pattern took longer than 1 s on this text (limits.patternSeconds")
    assert not result.failed
    assert ticks >= 5


def test_an_answer_is_made_once_and_what_a_caller_does_to_it_stays_with_the_caller() -> None:
    ctx = context("order 17").with_config(regex.use(pattern="[0-9]+").config)
    assert regex.function(ctx) is regex.function(ctx)
    changed = regex(ctx)
    changed.success, changed.metadata["match"] = False, "18"
    assert regex(ctx).success
    assert regex(ctx).metadata == {"match": "17"}


async def test_findings_of_the_same_answer_share_nothing() -> None:
    entry = regex.use(pattern="[0-9]+")
    (first,) = await run_entries([entry], context("order 17").facts)
    first.metadata["seen"] = True
    (second,) = await run_entries([entry], context("order 17").facts)
    assert second.metadata == {"match": "17"}


def test_an_answer_is_made_for_the_criteria_of_its_record() -> None:
    config = regex.use(pattern="[0-9]+", criterionName="exact").config
    for scale, score in (("likert5", 5.0), ("string", "pass"), ("binary", True)):
        criteria = [EvaluationCriteria(name="exact", scale=scale)]
        ctx = context("order 17", criteria=criteria).with_config(config)
        assert regex(ctx).score == score
    assert regex(context("order 17").with_config(config)) == []
