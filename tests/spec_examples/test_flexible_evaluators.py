"""The examples of the paper on assertions and metrics, as a Python user writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.spec_examples.project import calls, tool_call, verdict
from tests.support.models import ScriptedLlm

from evalstudio import (
    ConnectorContext,
    ConnectorResponse,
    EvaluationResult,
    EvaluatorContext,
    RunResult,
    create_registry,
    define_connector,
    define_evaluator,
    run_scenario,
)

BOOKING = {
    "name": "Booking Flow",
    "evaluators": [
        {"type": "llm-judge", "config": {"successCriteria": "Agent successfully books appointment"}},
        {"type": "latency-budget", "config": {"maxMs": 3000}},
        {"type": "regex", "config": {"pattern": "BK-\\d{5}", "mustMatch": True}},
        {"type": "tool-call-count", "config": {}},
        {"type": "token-usage", "config": {"track": "total"}},
    ],
}
BOOKED = "You are booked, reference BK-12345."


async def booked(
    met: bool = True, text: str = BOOKED, latency_ms: float = 1234, usage: Any = "given"
) -> RunResult:
    """The scenario with an agent that calls two tools and answers this."""
    given = {"input_tokens": 600, "output_tokens": 256, "total_tokens": 856}

    @define_connector(type="booking")
    async def booking(ctx: ConnectorContext) -> ConnectorResponse:
        tools = [tool_call("search"), tool_call("book")]
        message = {"role": "assistant", "content": text, "tool_calls": tools}
        return ConnectorResponse([message], latency_ms, given if usage == "given" else usage)

    registry = create_registry()
    registry.register(booking)
    scenario = {**BOOKING, "script": ["I need an appointment"]}
    llm = ScriptedLlm(judge=[verdict(met)])
    return await run_scenario(scenario, {"type": "booking"}, llm=llm, registry=registry)


class TestBookingFlow:
    async def test_it_passes_when_all_assertions_do_and_keeps_its_metrics(self) -> None:
        run = await booked()
        assert run.outcome == "pass"
        metrics = run.output()["metrics"]
        assert (metrics["tool-call-count"], metrics["token-usage"]) == (2, 856)
        kinds = {finding.type: finding.kind for finding in run.evaluator_results}
        assert kinds["llm-judge"] == kinds["latency-budget"] == kinds["regex"] == "assertion"
        assert kinds["tool-call-count"] == kinds["token-usage"] == "metric"
        budget = next(f for f in run.evaluator_results if f.type == "latency-budget")
        assert "1,234 ms of 3,000 ms" in budget.reason

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"met": False}, "Agent booked successfully"),
            ({"latency_ms": 3001}, "over the budget of 3,000 ms"),
            ({"text": "You are booked."}, "BK-"),
        ],
    )
    async def test_any_assertion_fails_it_and_the_metrics_are_kept(self, change: Any, reason: str) -> None:
        run = await booked(**change)
        assert run.outcome == "fail"
        assert reason in run.reason
        assert run.output()["metrics"]["tool-call-count"] == 2

    async def test_without_token_usage_the_metric_has_none_and_fails_nothing(self) -> None:
        run = await booked(usage=None)
        usage = next(f for f in run.evaluator_results if f.type == "token-usage")
        assert (run.outcome, usage.success, usage.missing) == ("pass", True, True)
        assert "no token usage" in usage.reason


CRITERIA = {"successCriteria": "Agent successfully books appointment"}


class TestBothWaysOfWriting:
    @pytest.mark.parametrize("met", [True, False])
    async def test_criteria_are_short_for_a_judge(self, met: bool) -> None:
        judge = {"type": "llm-judge", "config": CRITERIA}
        outcomes: list[str] = []
        for fields in (CRITERIA, {"evaluators": [judge]}):
            scenario = {"name": "s", "script": ["Hi"], **fields}
            llm = ScriptedLlm(judge=[verdict(met)])
            outcomes.append((await run_scenario(scenario, lambda messages: BOOKED, llm=llm)).outcome)
        assert outcomes == ["pass" if met else "fail"] * 2


class TestKinds:
    async def test_a_metric_that_says_it_failed_fails_nothing(self) -> None:
        gloomy = define_evaluator("gloomy", kind="metric")(
            lambda ctx: EvaluationResult(success=False, value=3, reason="3")
        )
        run = await run_scenario(
            {
                "name": "s",
                "script": ["Hi"],
                "evaluators": [gloomy, {"type": "regex", "config": {"pattern": "H"}}],
            },
            lambda messages: "Hello",
        )
        assert (run.outcome, run.output()["metrics"]["gloomy"]) == ("pass", 3)

    @pytest.mark.parametrize(("names", "outcome"), [(("a", "b"), "pass"), (("a", "b", "c"), "fail")])
    async def test_a_budget_is_an_assertion_of_its_own(self, names: tuple[str, ...], outcome: str) -> None:
        budget = {"type": "tool-call-budget", "config": {"maxCalls": 2}}
        scenario = {"name": "s", "script": ["Hi"], "evaluators": [budget, {"type": "tool-call-count"}]}
        run = await run_scenario(scenario, calls(*names))
        assert (run.outcome, run.output()["metrics"]["tool-call-count"]) == (outcome, len(names))

    async def test_an_assertion_without_its_data_says_so_and_does_not_pass(self) -> None:
        scenario = {
            "name": "s",
            "script": ["Hi"],
            "evaluators": [{"type": "token-budget", "config": {"maxTokens": 5}}],
        }
        run = await run_scenario(scenario, lambda messages: "Hello")
        assert run.outcome == "error"
        assert "reported no token usage" in run.reason

    @pytest.mark.parametrize("text", ["Hello", '{"id": 1}'])
    async def test_the_universal_ones_work_with_any_connector(self, text: str) -> None:
        uses = [
            {"type": "response-length"},
            {"type": "regex", "config": {"pattern": "."}},
            {"type": "json-schema", "config": {"schema": {}}},
        ]
        run = await run_scenario({"name": "s", "script": ["Hi"], "evaluators": uses}, lambda messages: text)
        assert run.output()["metrics"]["response-length"] == len(text)
        assert run.outcome == ("pass" if text.startswith("{") else "fail")


CHOICES = {
    "choices": [
        {"message": {"role": "assistant", "content": "Hi", "tool_calls": [tool_call("search", '{"q": 1}')]}}
    ],
    "usage": {"prompt_tokens": 123, "completion_tokens": 456, "total_tokens": 579},
}
ACTIONS = {
    "messages": [
        {
            "role": "assistant",
            "content": "Hi",
            "actions": [{"action_id": "a1", "tool": "search", "params": {"q": 1}}],
        }
    ],
    "elapsed_ms": 1234,
    "tokens": {"prompt": 123, "completion": 456, "total": 579},
}


@define_connector(type="from-openai")
async def from_openai(ctx: ConnectorContext) -> ConnectorResponse:
    """The tool calls are in OpenAI's shape already."""
    usage = CHOICES["usage"]
    return ConnectorResponse(
        messages=[choice["message"] for choice in CHOICES["choices"]],
        latency_ms=1234,
        tokens_usage={
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
        },
    )


@define_connector(type="from-actions")
async def from_actions(ctx: ConnectorContext) -> ConnectorResponse:
    """A protocol of its own, brought into OpenAI's shape."""
    messages = [
        {
            "role": message["role"],
            "content": message["content"],
            "tool_calls": [
                {
                    "id": action["action_id"],
                    "type": "function",
                    "function": {"name": action["tool"], "arguments": json.dumps(action["params"])},
                }
                for action in message["actions"]
            ],
        }
        for message in ACTIONS["messages"]
    ]
    tokens = ACTIONS["tokens"]
    return ConnectorResponse(
        messages,
        latency_ms=ACTIONS["elapsed_ms"],
        tokens_usage={
            "input_tokens": tokens["prompt"],
            "output_tokens": tokens["completion"],
            "total_tokens": tokens["total"],
        },
    )


@define_connector(type="plain-object")
async def plain_object(ctx: ConnectorContext) -> Any:
    """The standard shape as a plain object, with the paper's name for the usage."""
    return {
        "messages": [CHOICES["choices"][0]["message"]],
        "latencyMs": 1234,
        "tokenUsage": {"input": 123, "output": 456, "total": 579},
    }


METERED = [
    {"type": "tool-call-count"},
    {"type": "token-usage", "config": {"track": "total"}},
    {"type": "tool-usage", "config": {"rules": [{"tool": "search", "required": True}]}},
]


@pytest.mark.parametrize(
    "connector",
    [
        from_openai,
        from_actions,
        pytest.param(plain_object),
    ],
    ids=lambda connector: connector.type,
)
async def test_connectors_bring_their_answers_into_one_shape(connector: Any) -> None:
    registry = create_registry()
    registry.register(connector)
    scenario = {"name": "s", "script": ["Hi"], "evaluators": METERED}
    run = await run_scenario(scenario, {"type": connector.type}, registry=registry)
    metrics = run.output()["metrics"]
    assert (run.outcome, metrics["tool-call-count"], metrics["token-usage"]) == ("pass", 1, 579)
    assert run.turns[0].latency_ms == 1234
    assert run.messages[-1].tool_calls is not None
    assert json.loads(run.messages[-1].tool_calls[0].function.arguments) == {"q": 1}


async def test_an_evaluator_of_ones_own_reads_the_same_shape() -> None:
    @define_evaluator(type="own-usage", kind="metric")
    async def own_usage(ctx: EvaluatorContext) -> EvaluationResult:
        usage = ctx.last_invocation.tokens_usage
        if usage is None:
            return EvaluationResult.measured(0, "No token usage data available")
        detail = f"({usage.input_tokens} in / {usage.output_tokens} out)"
        return EvaluationResult.measured(usage.total_tokens, f"Token usage: {usage.total_tokens} {detail}")

    registry = create_registry()
    registry.register(from_openai)
    scenario = {"name": "s", "script": ["Hi"], "evaluators": [own_usage]}
    run = await run_scenario(scenario, {"type": "from-openai"}, registry=registry)
    found = next(f for f in run.evaluator_results if f.type == "own-usage")
    assert (found.value, found.reason) == (579, "Token usage: 579 (123 in / 456 out)")
