"""Measurements: what they count, how they add up over turns, and what happens without data."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.aggregate import conclude, run_evaluators
from evalstudio.evaluators.builtin.measurements import (
    first_token,
    latency,
    response_length,
    token_usage,
    tool_call_count,
)
from evalstudio.evaluators.contract import EvaluatorContext, Invocation, TurnFacts
from evalstudio.evaluators.definition import EvaluatorDefinition
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_turn
from evalstudio.testing import context


async def measure(definition: EvaluatorDefinition, ctx: EvaluatorContext[Any], **config: Any) -> Finding:
    verdict = await run_evaluators([definition.use(config)], ctx.facts)
    return verdict.evaluator_results[0]


async def test_tool_calls_are_counted_and_named():
    calls = [{"name": "search"}, {"name": "book"}, {"name": "search"}]
    result = await measure(tool_call_count, context("done", tool_calls=calls))
    assert result.value == 3
    assert result.reason == "3 tool calls: search, book"
    assert result.metadata == {"toolCallCount": 3, "toolNames": ["search", "book", "search"]}


async def test_an_answer_without_tool_calls_counts_none():
    result = await measure(tool_call_count, context("hi"))
    assert (result.value, result.reason) == (0, "0 tool calls")
    assert "missing" not in result.metadata


@pytest.mark.parametrize(
    ("track", "value", "reason"),
    [("input", 1200, "1,200 input tokens"), ("output", 1, "1 output token"), ("total", 1201, None)],
)
async def test_tokens_are_counted_by_kind(track: str, value: int, reason: str | None):
    usage = {"prompt_tokens": 1200, "completion_tokens": 1}
    result = await measure(token_usage, context("hi", tokens_usage=usage), track=track)
    assert result.value == value
    assert result.reason == (reason or "1,201 total tokens")


async def test_the_total_is_the_default():
    assert (await measure(token_usage, context("hi", tokens_usage={"total_tokens": 7}))).value == 7


@pytest.mark.parametrize(
    ("text", "characters", "words"),
    [
        ("Hello there", 11, 2),
        ("cafe\u0301", 4, 1),
        ("👍🏽", 2, 1),
        (" a\n\n b ", 7, 2),
        ("x" * 100_000, 100_000, 1),
    ],
)
async def test_length_is_in_code_points_or_words(text: str, characters: int, words: int):
    assert (await measure(response_length, context(text))).value == characters
    assert (await measure(response_length, context(text), unit="words")).value == words


async def test_an_answer_without_words_has_length_zero_and_is_not_missing():
    result = await measure(response_length, context(None, tool_calls=[{"name": "a"}]))
    assert (result.value, result.reason) == (0, "0 characters")
    assert "missing" not in result.metadata


async def test_an_empty_recorded_response_has_length_zero():
    result = await measure(response_length, EvaluatorContext({}, TurnFacts(given_response="")))
    assert result.value == 0
    assert "missing" not in result.metadata


async def test_the_first_token_is_measured_where_the_answer_was_a_stream():
    facts = TurnFacts(last_invocation=Invocation(900.0, [], first_token_ms=120.5))
    result = await measure(first_token, EvaluatorContext(None, facts))
    assert (result.value, result.reason) == (120.5, "120.5 ms")
    assert (await measure(first_token, context("hi"))).missing


async def test_latency_is_in_milliseconds():
    result = await measure(latency, context("hi", latency_ms=1234.5))
    assert (result.value, result.reason) == (1234.5, "1,234.5 ms")


async def test_an_answer_in_no_time_at_all_is_still_measured():
    result = await measure(latency, context("hi", latency_ms=0))
    assert (result.value, result.reason) == (0, "0 ms")


@pytest.mark.parametrize(
    ("definition", "facts"),
    [
        (latency, TurnFacts(given_response="recorded")),
        (latency, TurnFacts()),
        (token_usage, context("hi").facts),
        (response_length, TurnFacts()),
        (response_length, TurnFacts(given_response={"not": "text"})),
        (tool_call_count, TurnFacts(given_response="recorded")),
    ],
)
async def test_missing_data_has_no_value_says_so_and_is_in_no_statistic(
    definition: EvaluatorDefinition, facts: TurnFacts
):
    verdict = await run_evaluators([definition.use()], facts)
    result = verdict.evaluator_results[0]
    assert result.value is None
    assert result.word == "missing"
    assert result.metadata["missing"] is True
    assert result.reason.startswith(("no ", "there is no ", "the agent reported no "))
    assert verdict.metrics == {}


async def test_over_the_turns_counts_add_up_and_the_longest_latency_stays():
    entries = [tool_call_count.use(), token_usage.use(), latency.use(), response_length.use()]
    turns = [
        context("one", tool_calls=[{"name": "a"}], tokens_usage={"total": 10}, latency_ms=30),
        context("three", tool_calls=[{"name": "b"}], latency_ms=50),
        context("two", tokens_usage={"total": 5}, latency_ms=20),
    ]
    verdict = conclude(entries, [await run_turn(entries, ctx.facts) for ctx in turns])
    assert verdict.metrics == {"tool-call-count": 2, "token-usage": 15, "latency": 50, "response-length": 3}


def test_token_usage_and_latency_run_without_being_listed():
    assert [d.type for d in (tool_call_count, token_usage, response_length, latency) if d.auto] == [
        "token-usage",
        "latency",
    ]


@pytest.mark.parametrize("definition", [tool_call_count, token_usage, response_length, latency])
def test_metrics_are_described_and_run_in_place(definition: EvaluatorDefinition):
    assert definition.kind == "metric"
    assert definition.description.endswith(".")
    assert definition.use().inline


@pytest.mark.parametrize(
    ("definition", "config"),
    [(token_usage, {"track": "all"}), (response_length, {"unit": "lines"}), (latency, {"x": 1})],
)
def test_an_unknown_setting_is_refused_when_loaded(definition: EvaluatorDefinition, config: dict[str, Any]):
    with pytest.raises(InvalidInput):
        definition.use(config)
