"""Your agent and your own checks. Replace the body of ``my_agent`` by a call to your agent."""

from __future__ import annotations

from typing import Any

from evalstudio import (
    ConnectorContext,
    EvaluationResult,
    EvaluatorContext,
    define_connector,
    define_evaluator,
)


@define_connector(type="my-agent", label="My Agent")
def my_agent(ctx: ConnectorContext[Any]) -> str:
    """Talks to my agent."""
    question = ctx.messages[-1].text
    return f"Hello! You asked: {question} Our opening hours are 9 to 5."


@define_evaluator(label="Greets First")
def greets_first(ctx: EvaluatorContext[Any]) -> EvaluationResult:
    """The agent greets the user in its first reply."""
    if ctx.turn > 1:
        return EvaluationResult.skip("not the first turn")
    if "hello" in ctx.response.lower():
        return EvaluationResult.passed("it says hello")
    return EvaluationResult.failed("no greeting in the first reply")
