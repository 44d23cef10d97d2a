"""How long the agent takes for one answer."""

from __future__ import annotations

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import EvaluatorConfig, define_evaluator
from .invocations import latency_of, milliseconds, unmeasured


class LatencyConfig(EvaluatorConfig):
    """Nothing to set."""


@define_evaluator(type="latency", kind="metric", reduce="max", auto=True, inline=True)
def latency(ctx: EvaluatorContext[LatencyConfig]) -> EvaluationResult:
    """The time the agent takes to answer, in milliseconds."""
    spent = latency_of(ctx)
    if spent is None:
        return unmeasured("no latency was measured")
    return EvaluationResult.measured(spent, milliseconds(spent))
