"""How many tokens the agent uses."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import EvaluatorConfig, define_evaluator
from .invocations import counted, unmeasured


class TokenUsageConfig(EvaluatorConfig):
    """Which tokens to count."""

    track: Literal["input", "output", "total"] = Field("total", description="Which tokens to count")


@define_evaluator(type="token-usage", kind="metric", reduce="sum", auto=True, inline=True)
def token_usage(ctx: EvaluatorContext[TokenUsageConfig]) -> EvaluationResult:
    """The number of tokens the agent uses."""
    usage = ctx.last_invocation.tokens_usage
    track = ctx.config.track
    if usage is None:
        return unmeasured("the agent reported no token usage", track=track)
    numbers = {"input": usage.input_tokens, "output": usage.output_tokens, "total": usage.total_tokens}
    return EvaluationResult.measured(
        numbers[track],
        counted(numbers[track], f"{track} token"),
        track=track,
        inputTokens=usage.input_tokens,
        outputTokens=usage.output_tokens,
        totalTokens=usage.total_tokens,
    )
