"""What invocations took, measured and budgeted: time, tokens, tool calls and the length of answers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ...base.paths import MISSING
from ...base.text import counted
from ...messages import tool_calls_of
from ..contract import EvaluationResult, EvaluatorContext, NotAvailable
from ..definition import EvaluatorConfig, define_evaluator
from .text import Scope, joined, nfc, scoped_texts, word_count


def latency_of(ctx: EvaluatorContext[Any]) -> float | None:
    """How long the last invocation took; ``None`` where nobody measured it, as in a record."""
    spent = ctx.last_invocation.latency_ms
    # A record that says 0 was written by who had nothing to write.
    return None if spent == 0 and ctx.facts.given_response is not MISSING else spent


def budgeted(holds: bool, spent: str, allowed: str, **numbers: float) -> EvaluationResult:
    """What was spent beside what is allowed, in words and, in this order, as named numbers.

    A budget has no score: half of it is not half as good.
    """
    reason = f"{spent} of {allowed}" if holds else f"{spent}, over the budget of {allowed}"
    used, budget = numbers.values()
    # Of many turns that keep within a budget, the one that used the most of it is shown.
    return EvaluationResult(
        holds, reason=reason, metadata=numbers | {"budgetUsed": used / budget if budget else float(used)}
    )


def unmeasured(reason: str, **metadata: Any) -> EvaluationResult:
    """A measurement that could not be made: it has no value and is left out of statistics."""
    return EvaluationResult(True, None, reason, metadata | {"missing": True})


def milliseconds(number: float) -> str:
    """``1,234.5 ms``: thousands apart, and no more digits than there are."""
    return f"{number:,.2f}".rstrip("0").removesuffix(".") + " ms"


def reads_no_text(_config: object, _facts: object) -> float:
    """The work of what only looks at numbers."""
    return 0


class NoConfig(EvaluatorConfig):
    """Nothing to set."""


@define_evaluator(
    type="latency", work=reads_no_text, kind="metric", reduce="max", auto=True, inline=True, unit="ms"
)
def latency(ctx: EvaluatorContext[NoConfig]) -> EvaluationResult:
    """The time the agent takes to answer, in milliseconds."""
    spent = latency_of(ctx)
    if spent is None:
        return unmeasured("no latency was measured")
    return EvaluationResult.measured(spent, milliseconds(spent))


@define_evaluator(
    type="first-token",
    label="Time to First Token",
    work=reads_no_text,
    kind="metric",
    reduce="max",
    inline=True,
)
def first_token(ctx: EvaluatorContext[NoConfig]) -> EvaluationResult:
    """The time until the first text or tool call of a streamed answer, in milliseconds."""
    spent = ctx.last_invocation.first_token_ms
    if spent is None:
        return unmeasured("the answer was not streamed")
    return EvaluationResult.measured(spent, milliseconds(spent))


class LatencyBudgetConfig(EvaluatorConfig):
    """The longest time allowed."""

    max_ms: float = Field(
        gt=0, allow_inf_nan=False, description="The most milliseconds one answer of the agent may take"
    )


@define_evaluator(type="latency-budget", work=reads_no_text, inline=True)
def latency_budget(ctx: EvaluatorContext[LatencyBudgetConfig]) -> EvaluationResult:
    """The agent answers within the time allowed."""
    spent = latency_of(ctx)
    if spent is None:
        raise NotAvailable("no latency was measured, so there is nothing to hold against maxMs")
    allowed = ctx.config.max_ms
    return budgeted(
        spent <= allowed, milliseconds(spent), milliseconds(allowed), latencyMs=spent, maxMs=allowed
    )


_NO_USAGE = "the agent reported no token usage"


class TokenUsageConfig(EvaluatorConfig):
    """Which tokens to count."""

    track: Literal["input", "output", "total"] = Field("total", description="Which tokens to count")


@define_evaluator(
    type="token-usage", work=reads_no_text, kind="metric", reduce="sum", auto=True, inline=True, unit="tokens"
)
def token_usage(ctx: EvaluatorContext[TokenUsageConfig]) -> EvaluationResult:
    """The number of tokens the agent uses."""
    usage = ctx.last_invocation.tokens_usage
    track = ctx.config.track
    if usage is None:
        return unmeasured(ctx.last_invocation.usage_missing or _NO_USAGE, track=track)
    numbers = {"input": usage.input_tokens, "output": usage.output_tokens, "total": usage.total_tokens}
    return EvaluationResult.measured(
        numbers[track],
        counted(numbers[track], f"{track} token"),
        track=track,
        inputTokens=usage.input_tokens,
        outputTokens=usage.output_tokens,
        totalTokens=usage.total_tokens,
    )


class TokenBudgetConfig(EvaluatorConfig):
    """The most tokens allowed."""

    max_tokens: int = Field(gt=0, description="The most tokens the agent may use, input and output together")
    scope: Literal["turn", "run"] = Field(
        "turn", description="Whether this is for each turn or the whole run"
    )


@define_evaluator(type="token-budget", work=reads_no_text, inline=True)
def token_budget(ctx: EvaluatorContext[TokenBudgetConfig]) -> EvaluationResult:
    """The agent uses no more tokens than allowed."""
    config = ctx.config
    invocations = [ctx.last_invocation] if config.scope == "turn" else ctx.invocations
    spent = sum(used.tokens_usage.total_tokens for used in invocations if used.tokens_usage)
    allowed = config.max_tokens
    unknown = [used for used in invocations if used.tokens_usage is None]
    # What is known may be too much already; that it is not too much takes every turn.
    if unknown and spent <= allowed:
        reason = unknown[0].usage_missing or _NO_USAGE
        where = f" on {counted(len(unknown), 'turn')} of {len(invocations)}" if len(invocations) > 1 else ""
        raise NotAvailable(f"{reason}{where}, so maxTokens cannot be checked")
    return budgeted(
        spent <= allowed, counted(spent, "token"), counted(allowed, "token"), tokens=spent, maxTokens=allowed
    )


_NO_MESSAGES = "no messages of the agent to count tool calls in"


@define_evaluator(type="tool-call-count", kind="metric", reduce="sum", inline=True, unit="tool calls")
def tool_call_count(ctx: EvaluatorContext[NoConfig]) -> EvaluationResult:
    """The number of tool calls the agent makes."""
    if not ctx.last_invocation.messages:
        return unmeasured(_NO_MESSAGES)
    names = [call.name for call in ctx.tool_calls]
    listed = f": {', '.join(dict.fromkeys(names))}" if names else ""
    reason = counted(len(names), "tool call") + listed
    return EvaluationResult.measured(len(names), reason, toolCallCount=len(names), toolNames=names)


class ToolCallBudgetConfig(EvaluatorConfig):
    """The most tool calls allowed."""

    max_calls: int = Field(ge=0, description="The most tool calls the agent may make over the whole run")


@define_evaluator(type="tool-call-budget", inline=True)
def tool_call_budget(ctx: EvaluatorContext[ToolCallBudgetConfig]) -> EvaluationResult:
    """The agent makes no more tool calls than allowed."""
    allowed = ctx.config.max_calls
    if not any(invocation.messages for invocation in ctx.invocations):
        raise NotAvailable(_NO_MESSAGES)
    calls = sum(len(tool_calls_of(invocation.messages)) for invocation in ctx.invocations)
    spent, limit = counted(calls, "tool call"), counted(allowed, "tool call")
    return budgeted(calls <= allowed, spent, limit, toolCallCount=calls, maxCalls=allowed)


class ResponseLengthConfig(EvaluatorConfig):
    """What to count."""

    unit: Literal["characters", "words"] = Field("characters", description="What to count")
    scope: Scope = "turn"


@define_evaluator(type="response-length", kind="metric", inline=True, unit=lambda config: config.unit)
def response_length(ctx: EvaluatorContext[ResponseLengthConfig]) -> EvaluationResult:
    """The length of what the agent says in a turn, in characters or words."""
    unit = ctx.config.unit
    last = ctx.text()
    # An agent that answered without words has said an empty text.
    answered = ctx.facts.given_response is not MISSING or ctx.last_invocation.messages
    if last is None or not (last or answered):
        return unmeasured("there is no text of the agent to measure", unit=unit)
    text = joined(scoped_texts(ctx, ctx.config.scope))
    length = len(nfc(text)) if unit == "characters" else word_count(text)
    return EvaluationResult.measured(length, counted(length, unit.removesuffix("s")), unit=unit)
