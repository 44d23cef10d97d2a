"""A limit on the tokens the agent may use, in one turn or in the whole run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..contract import EvaluationResult, EvaluatorContext, NotAvailable
from ..definition import EvaluatorConfig, define_evaluator
from .invocations import budgeted, counted, tokens_of


class TokenBudgetConfig(EvaluatorConfig):
    """The most tokens allowed."""

    max_tokens: int = Field(gt=0, description="The most tokens the agent may use, input and output together")
    scope: Literal["turn", "run"] = Field(
        "turn", description="Whether this is for each turn or the whole run"
    )


@define_evaluator(type="token-budget", inline=True)
def token_budget(ctx: EvaluatorContext[TokenBudgetConfig]) -> EvaluationResult:
    """The agent uses no more tokens than allowed."""
    config = ctx.config
    invocations = [ctx.last_invocation] if config.scope == "turn" else ctx.invocations
    usages = tokens_of(invocations)
    if not usages:
        raise NotAvailable("the agent reported no token usage, so there is nothing to hold against maxTokens")
    spent = sum(usage.total_tokens for usage in usages)
    allowed = config.max_tokens
    result = budgeted(
        spent <= allowed, counted(spent, "token"), counted(allowed, "token"), tokens=spent, maxTokens=allowed
    )
    if silent := len(invocations) - len(usages):
        result.reason += f" ({counted(silent, 'turn')} of {len(invocations)} without token usage)"
        result.metadata["turnsWithoutUsage"] = silent
    return result
