"""The agent does not shout."""

from __future__ import annotations

from pydantic import BaseModel, Field

from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator


class Shouting(BaseModel):
    most: float = Field(
        0.3, ge=0, le=1, description="The largest share of capital letters that is still calm"
    )


@define_evaluator
def shouting(ctx: EvaluatorContext[Shouting]) -> EvaluationResult:
    """The agent does not write in capital letters."""
    letters = [letter for letter in ctx.response if letter.isalpha()]
    share = sum(letter.isupper() for letter in letters) / len(letters) if letters else 0.0
    return EvaluationResult(share <= ctx.config.most, 1 - share, f"{share:.0%} capital letters")
