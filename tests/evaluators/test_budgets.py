"""Budgets of time, tokens and tool calls: inclusive, and never passed for want of data."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.aggregate import run_evaluators
from evalstudio.evaluators.builtin.measurements import latency_budget, token_budget, tool_call_budget
from evalstudio.evaluators.contract import Invocation, TurnFacts
from evalstudio.evaluators.definition import EvaluatorDefinition
from evalstudio.messages import Message, TokensUsage, ToolCall
from evalstudio.testing import context


def calling(*names: str) -> Message:
    calls = [ToolCall.model_validate({"name": name}) for name in names]
    return Message(role="assistant", content="", tool_calls=calls)


def used(total: int | None) -> Invocation:
    usage = None if total is None else TokensUsage(total_tokens=total)
    return Invocation(5, [Message(role="assistant", content="hi")], usage)


@pytest.mark.parametrize(
    ("took", "outcome", "reason"),
    [
        (1234, "pass", "All evaluators passed"),
        (3000, "pass", "All evaluators passed"),
        (3000.04, "fail", "3,000.04 ms, over the budget of 3,000 ms"),
        (12_345.5, "fail", "12,345.5 ms, over the budget of 3,000 ms"),
    ],
)
async def test_the_time_allowed_is_inclusive(took: float, outcome: str, reason: str):
    verdict = await run_evaluators([latency_budget.use(maxMs=3000)], context("hi", latency_ms=took).facts)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


async def test_a_kept_budget_says_how_much_of_it_was_spent_and_has_no_score():
    verdict = await run_evaluators([latency_budget.use(maxMs=3000)], context("hi", latency_ms=1234).facts)
    assert verdict.evaluator_results[0].reason == "1,234 ms of 3,000 ms"
    assert verdict.evaluator_results[0].value is None
    assert verdict.score is None


async def test_a_record_without_latency_is_an_error_of_its_budget():
    verdict = await run_evaluators([latency_budget.use(maxMs=1)], TurnFacts(given_response="recorded"))
    assert verdict.outcome == "error"
    assert "no latency was measured" in verdict.reason


async def test_tokens_are_held_against_the_turn_by_default():
    facts = TurnFacts(last_invocation=used(100), invocations=[used(900), used(100)])
    assert (await run_evaluators([token_budget.use(maxTokens=100)], facts)).outcome == "pass"
    facts = TurnFacts(last_invocation=used(101), invocations=[used(101)])
    verdict = await run_evaluators([token_budget.use(maxTokens=100)], facts)
    assert verdict.reason == "101 tokens, over the budget of 100 tokens"


async def test_tokens_of_the_run_are_added_up():
    facts = TurnFacts(last_invocation=used(600), invocations=[used(600), used(600)])
    verdict = await run_evaluators([token_budget.use(maxTokens=1199, scope="run")], facts)
    assert verdict.reason == "1,200 tokens, over the budget of 1,199 tokens"
    assert (await run_evaluators([token_budget.use(maxTokens=1200, scope="run")], facts)).outcome == "pass"


async def test_turns_without_token_usage_keep_the_budget_of_a_run_from_passing():
    facts = TurnFacts(last_invocation=used(1), invocations=[used(None), used(1)])
    verdict = await run_evaluators([token_budget.use(maxTokens=5, scope="run")], facts)
    assert verdict.outcome == "error"
    assert (
        "the agent reported no token usage on 1 turn of 2, so maxTokens cannot be checked" in verdict.reason
    )


async def test_what_is_known_of_a_run_may_be_too_much_already():
    facts = TurnFacts(last_invocation=used(6), invocations=[used(None), used(6)])
    verdict = await run_evaluators([token_budget.use(maxTokens=5, scope="run")], facts)
    assert (verdict.outcome, verdict.reason) == ("fail", "6 tokens, over the budget of 5 tokens")


async def test_a_usage_that_cannot_be_used_is_named():
    facts = context("hi", tokens_usage={"input_tokens": -1, "output_tokens": 2}).facts
    verdict = await run_evaluators([token_budget.use(maxTokens=5)], facts)
    assert verdict.outcome == "error"
    assert "input_tokens is not a number of tokens: -1, so maxTokens cannot be checked" in verdict.reason


@pytest.mark.parametrize("scope", ["turn", "run"])
async def test_no_token_data_at_all_is_an_error(scope: str):
    verdict = await run_evaluators([token_budget.use(maxTokens=5, scope=scope)], context("hi").facts)
    assert verdict.outcome == "error"
    assert "reported no token usage" in verdict.reason


async def test_tool_calls_are_counted_over_the_run_and_not_in_what_was_said_before_it():
    turns = [Invocation(1, [calling("a", "b")]), Invocation(1, [calling("c"), calling("d")])]
    seeded = [calling("seed"), *(message for turn in turns for message in turn.messages)]
    facts = TurnFacts(messages=seeded, last_invocation=turns[-1], invocations=turns)
    assert (await run_evaluators([tool_call_budget.use(maxCalls=4)], facts)).outcome == "pass"
    verdict = await run_evaluators([tool_call_budget.use(maxCalls=3)], facts)
    assert verdict.reason == "4 tool calls, over the budget of 3 tool calls"


async def test_no_tool_calls_may_be_allowed_at_all():
    entry = tool_call_budget.use(maxCalls=0)
    assert (await run_evaluators([entry], context("hi").facts)).outcome == "pass"
    verdict = await run_evaluators([entry], context("hi", tool_calls=[{"name": "a"}]).facts)
    assert verdict.reason == "1 tool call, over the budget of 0 tool calls"


@pytest.mark.parametrize("definition", [latency_budget, token_budget, tool_call_budget])
def test_budgets_hold_on_every_turn(definition: EvaluatorDefinition):
    assert definition.gate == "always"
    assert definition.kind == "assertion"


@pytest.mark.parametrize(
    ("definition", "config"),
    [
        (latency_budget, {}),
        (latency_budget, {"maxMs": 0}),
        (latency_budget, {"maxMs": float("inf")}),
        (latency_budget, {"maxMs": "soon"}),
        (token_budget, {}),
        (token_budget, {"maxTokens": 0}),
        (token_budget, {"maxTokens": 5, "scope": "day"}),
        (tool_call_budget, {}),
        (tool_call_budget, {"maxCalls": -1}),
        (tool_call_budget, {"maxCalls": 1.5}),
    ],
)
def test_a_budget_that_cannot_work_is_refused_when_loaded(
    definition: EvaluatorDefinition, config: dict[str, Any]
):
    with pytest.raises(InvalidInput):
        definition.use(config)
