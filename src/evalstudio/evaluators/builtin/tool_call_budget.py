"""A limit on the tool calls the agent may make over the run."""

from __future__ import annotations

from pydantic import Field

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import EvaluatorConfig, define_evaluator
from .invocations import budgeted, calls_of, counted


class ToolCallBudgetConfig(EvaluatorConfig):
    """The most tool calls allowed."""

    max_calls: int = Field(ge=0, description="The most tool calls the agent may make over the whole run")


@define_evaluator(type="tool-call-budget", inline=True)
def tool_call_budget(ctx: EvaluatorContext[ToolCallBudgetConfig]) -> EvaluationResult:
    """The agent makes no more tool calls than allowed."""
    allowed = ctx.config.max_calls
    calls = len(calls_of(ctx.invocations))
    return budgeted(
        calls <= allowed,
        counted(calls, "tool call"),
        counted(allowed, "tool call"),
        toolCallCount=calls,
        maxCalls=allowed,
    )
