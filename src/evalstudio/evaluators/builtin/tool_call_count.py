"""How many tool calls the agent makes."""

from __future__ import annotations

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import EvaluatorConfig, define_evaluator
from .invocations import calls_of, counted, unmeasured


class ToolCallCountConfig(EvaluatorConfig):
    """Nothing to set."""


@define_evaluator(type="tool-call-count", kind="metric", reduce="sum", inline=True)
def tool_call_count(ctx: EvaluatorContext[ToolCallCountConfig]) -> EvaluationResult:
    """The number of tool calls the agent makes."""
    if not ctx.last_invocation.messages:
        return unmeasured("no messages of the agent to count tool calls in", toolCallCount=0, toolNames=[])
    names = [call.name for call in calls_of([ctx.last_invocation])]
    listed = f": {', '.join(dict.fromkeys(names))}" if names else ""
    reason = counted(len(names), "tool call") + listed
    return EvaluationResult.measured(len(names), reason, toolCallCount=len(names), toolNames=names)
