"""How long the agent's answer is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import EvaluatorConfig, define_evaluator
from ..paths import MISSING
from .invocations import counted, unmeasured
from .text import nfc


class ResponseLengthConfig(EvaluatorConfig):
    """What to count."""

    unit: Literal["characters", "words"] = Field("characters", description="What to count")


@define_evaluator(type="response-length", kind="metric", inline=True)
def response_length(ctx: EvaluatorContext[ResponseLengthConfig]) -> EvaluationResult:
    """The length of the agent's answer, in characters or words."""
    unit = ctx.config.unit
    text = _answer(ctx)
    if text is None:
        return unmeasured("there is no text of the agent to measure", unit=unit)
    length = len(nfc(text)) if unit == "characters" else len(text.split())
    return EvaluationResult.measured(length, counted(length, unit.removesuffix("s")), unit=unit)


def _answer(ctx: EvaluatorContext[ResponseLengthConfig]) -> str | None:
    """The text of the answer; an agent that answered without words has said an empty text."""
    text = ctx.text()
    answered = ctx.facts.given_response is not MISSING or ctx.last_invocation.messages
    return text if text or answered else None
