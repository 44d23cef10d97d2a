"""A limit on how long the agent may take for one answer."""

from __future__ import annotations

from pydantic import Field

from ..contract import EvaluationResult, EvaluatorContext, NotAvailable
from ..definition import EvaluatorConfig, define_evaluator
from .invocations import budgeted, latency_of, milliseconds


class LatencyBudgetConfig(EvaluatorConfig):
    """The longest time allowed."""

    max_ms: float = Field(
        gt=0, allow_inf_nan=False, description="The most milliseconds one answer of the agent may take"
    )


@define_evaluator(type="latency-budget", inline=True)
def latency_budget(ctx: EvaluatorContext[LatencyBudgetConfig]) -> EvaluationResult:
    """The agent answers within the time allowed."""
    spent = latency_of(ctx)
    if spent is None:
        raise NotAvailable("no latency was measured, so there is nothing to hold against maxMs")
    allowed = ctx.config.max_ms
    return budgeted(
        spent <= allowed, milliseconds(spent), milliseconds(allowed), latencyMs=spent, maxMs=allowed
    )
