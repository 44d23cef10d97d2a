"""Verifies the agent greets the user in their first response."""

from __future__ import annotations

from typing import Any

from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator, text_of

GREETINGS = ["hello", "hi", "hey", "welcome"]
CONFIG: dict[str, Any] = {
    "type": "object",
    "properties": {
        "greetings": {
            "type": "array",
            "items": {"type": "string"},
            "default": GREETINGS,
            "description": "List of acceptable greeting words",
        },
    },
}


@define_evaluator(type="greeting-check", label="Greeting Check", kind="assertion", config=CONFIG)
async def greeting_check(ctx: EvaluatorContext[dict[str, Any]]) -> EvaluationResult:
    """Verifies the agent greets the user in their first response."""
    if ctx.turn > 1:
        return EvaluationResult.passed("Skipped (not first turn)")
    greetings: list[str] = ctx.config["greetings"]
    reply = next((m for m in ctx.last_invocation.messages if m.role == "assistant"), None)
    if reply is None:
        return EvaluationResult.failed("No assistant message found")
    text = text_of(reply).lower()
    greeting = next((word for word in greetings if word in text), None)
    if greeting is None:
        return EvaluationResult.failed(
            f"Response does not contain a greeting. Expected one of: {', '.join(greetings)}"
        )
    return EvaluationResult.passed(f'Found greeting: "{greeting}"')
