"""How positive or negative a text sounds, as a number or as a word."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from ..contract import EvaluationResult, EvaluatorContext
from ..criteria import Score, on_scale
from ..definition import define_evaluator
from .invocations import counted
from .mood import Mood, read_mood
from .text import TextConfig

Category = Literal["positive", "neutral", "negative"]


class SentimentConfig(TextConfig):
    """What to measure, and where neutral ends."""

    output_type: Literal["comparativeNormalized", "rawScore", "category"] = Field(
        "comparativeNormalized",
        description="The mean score per word from 0 to 1, the sum of all scores, or a word for the mood",
    )
    positive_threshold: float = Field(
        0.2, allow_inf_nan=False, description="Mean scores per word above this are positive"
    )
    negative_threshold: float = Field(
        -0.2, allow_inf_nan=False, description="Mean scores per word below this are negative"
    )

    @model_validator(mode="after")
    def _ordered(self) -> SentimentConfig:
        if self.negative_threshold >= self.positive_threshold:
            raise ValueError("negativeThreshold must be below positiveThreshold")
        return self

    def category(self, comparative: float) -> Category:
        if comparative > self.positive_threshold:
            return "positive"
        return "negative" if comparative < self.negative_threshold else "neutral"


@define_evaluator(type="sentiment", kind="metric", inline=True)
def sentiment(ctx: EvaluatorContext[SentimentConfig]) -> EvaluationResult | list[EvaluationResult]:
    """How positive or negative the response sounds."""
    config = ctx.config
    mood = read_mood(ctx.need_text(config.source_field))
    category = config.category(mood.comparative)
    result = EvaluationResult.measured(
        _value(config, mood),
        f"{category}: {mood.raw:+d} over {counted(mood.tokens, 'word')}",
        **_metadata(config, mood, category),
    )
    if config.criterion_name is None:
        return result
    criterion = ctx.criterion(config.criterion_name)
    if criterion is None:
        return []
    scores: dict[str, Score] = {"rawScore": mood.raw, "category": category}
    result.criterion_name = config.criterion_name
    result.score = scores.get(config.output_type, on_scale(mood.normalized, criterion))
    return result


def _value(config: SentimentConfig, mood: Mood) -> float:
    match config.output_type:
        case "rawScore":
            return mood.raw
        case "category":
            return mood.comparative
        case "comparativeNormalized":
            return mood.normalized


def _metadata(config: SentimentConfig, mood: Mood, category: Category) -> dict[str, Any]:
    metadata = {
        "rawScore": mood.raw,
        "comparativeScore": mood.comparative,
        "positiveWords": mood.positive,
        "negativeWords": mood.negative,
        "category": category,
        "tokens": mood.tokens,
    }
    return metadata | {"unbounded": True} if config.output_type == "rawScore" else metadata
