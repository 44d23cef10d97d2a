"""What an agent's invocations took: time, tokens and tool calls, for budgets and metrics alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...messages import TokensUsage, ToolCall, tool_calls_of
from ..contract import EvaluationResult, EvaluatorContext, Invocation
from ..paths import MISSING


def latency_of(ctx: EvaluatorContext[Any]) -> float | None:
    """How long the last invocation took; ``None`` where nobody measured it, as in a record."""
    invocation = ctx.last_invocation
    invoked = bool(invocation.messages) and ctx.facts.given_response is MISSING
    return invocation.latency_ms if invocation.latency_ms > 0 or invoked else None


def tokens_of(invocations: Sequence[Invocation]) -> list[TokensUsage]:
    """The token usage of the invocations that reported one."""
    return [invocation.tokens_usage for invocation in invocations if invocation.tokens_usage is not None]


def calls_of(invocations: Sequence[Invocation]) -> list[ToolCall]:
    return [call for invocation in invocations for call in tool_calls_of(invocation.messages)]


def budgeted(holds: bool, spent: str, allowed: str, **metadata: Any) -> EvaluationResult:
    """What was spent beside what is allowed. A budget has no score: half of it is not half as good."""
    reason = f"{spent} of {allowed}" if holds else f"{spent}, over the budget of {allowed}"
    return EvaluationResult(holds, reason=reason, metadata=metadata)


def unmeasured(reason: str, **metadata: Any) -> EvaluationResult:
    """A measurement that could not be made: it shows as 0 and is left out of statistics."""
    return EvaluationResult.measured(0, reason, **metadata, missing=True)


def counted(number: int, noun: str) -> str:
    """``1 tool call``, ``1,200 tool calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def milliseconds(number: float) -> str:
    """``1,234.5 ms``: thousands apart, and no more digits than there are."""
    return f"{number:,.2f}".rstrip("0").removesuffix(".") + " ms"
