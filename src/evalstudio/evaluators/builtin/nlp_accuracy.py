"""nlp-accuracy: how close in meaning the response is to the reference, by the cosine of embeddings."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any, cast

from pydantic import AliasChoices, Field, field_validator, model_validator

from ..contract import Embedder, EvaluatorContext, NotAvailable
from ..criteria import Name
from ..definition import EvaluatorConfig, define_evaluator
from ..limits import limit_exceeded
from .text import Graded, check_apart, graded


class NlpAccuracy(EvaluatorConfig):
    criterion_name: Name | None = Field(None, description="Criterion to score")
    embedding_model: Any = Field(
        None,
        description="Local model by default; openai:<model> asks a provider",
        json_schema_extra={"type": "string"},
    )
    source_field: str = Field("response", description="Text to compare")
    reference_field: str = Field("groundTruth", description="Text to compare it with")
    threshold: float = Field(
        0.5,
        gt=0,
        le=1,
        validation_alias=AliasChoices("threshold", "similarityThreshold"),
        description="Lowest similarity that holds",
    )

    @field_validator("embedding_model")
    @classmethod
    def _name_or_model(cls, value: Any) -> Any:
        if value is None or callable(getattr(value, "embed", None)):
            return value
        if isinstance(value, str) and value.strip():
            return value.strip()
        raise ValueError("must be the name of a model, or an object with an embed method")

    @model_validator(mode="after")
    def _two_texts(self) -> NlpAccuracy:
        check_apart(self.source_field, self.reference_field, "referenceField")
        return self


@define_evaluator(type="nlp-accuracy", label="NLP Accuracy", gate="finally", cost="embedding")
async def nlp_accuracy(ctx: EvaluatorContext[NlpAccuracy]) -> Graded:
    """The response means the same as the reference."""
    config = ctx.config
    if config.criterion_name is not None and ctx.criterion(config.criterion_name) is None:
        return []
    texts = [_text(ctx, field) for field in (config.source_field, config.reference_field)]
    similarity = 1.0 if texts[0] == texts[1] else await _similarity(ctx, texts)
    reason = f"similarity {similarity:.3f}, {config.threshold:g} needed"
    return graded(ctx, similarity, reason, similarity=similarity)


def _text(ctx: EvaluatorContext[NlpAccuracy], field: str) -> str:
    text, most = ctx.need_text(field), ctx.facts.limits.judge_characters
    if len(text) > most:
        message = f'the text at "{field}" has {len(text):,} characters; a model is sent {most:,} at most'
        raise limit_exceeded(message, "judgeCharacters")
    text = unicodedata.normalize("NFC", text)
    if not text.strip():
        raise NotAvailable(f'the text at "{field}" is empty')
    return text


async def _similarity(ctx: EvaluatorContext[NlpAccuracy], texts: list[str]) -> float:
    model: object = ctx.config.embedding_model
    named = model if isinstance(model, str) else None
    embedder = cast(Embedder, model) if model is not None and named is None else ctx.embedder
    if embedder is None:
        raise NotAvailable("no embedding model is configured")
    vectors = await embedder.embed(texts, model=named)
    try:
        read = [list(map(float, vector)) for vector in vectors]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("the embedding model gave something else than vectors of numbers") from None
    if len(read) != 2:
        raise ValueError(f"the embedding model gave {len(read)} vectors for 2 texts")
    return cosine(*read)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors, clamped to 0–1; what is 1 but for rounding is 1."""
    if len(one) != len(other):
        raise ValueError(f"embeddings have different dimensions: {len(one)} and {len(other)}")
    length = math.sqrt(math.fsum(x * x for x in one)) * math.sqrt(math.fsum(y * y for y in other))
    if length == 0 or not math.isfinite(length):
        raise ValueError("an embedding has no direction, so nothing can be compared with it")
    value = math.fsum(x * y for x, y in zip(one, other, strict=True)) / length
    return 1.0 if value > 1 - 1e-9 else max(0.0, value)
