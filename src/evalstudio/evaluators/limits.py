"""How much evaluators look at and how long they may take: ``limits`` of a project's config or a plan."""

from __future__ import annotations

from pydantic import Field

from ..configs import StrictConfig


class EvaluatorLimits(StrictConfig):
    """The most that one evaluation may take; beyond it is an evaluator error that names the limit."""

    evaluator_seconds: float = Field(
        default=10, gt=0, le=3600, description="Seconds of processor time that one evaluation may take"
    )
    evaluator_megabytes: int = Field(
        default=512,
        ge=64,
        le=65_536,
        description="Memory that one evaluation may need, in megabytes",
    )
    evaluator_characters: int = Field(
        default=10_000_000, ge=1_000, description="Characters of a turn that evaluators look at"
    )
    json_bytes: int = Field(default=5_000_000, ge=1_000, description="Bytes of a text that is read as JSON")
    similarity_characters: int = Field(
        default=50_000,
        ge=1_000,
        description="Characters of each text that jaro-winkler and levenshtein compare",
    )
    pattern_seconds: float = Field(
        default=1, gt=0, le=600, description="Seconds for a pattern with lookaround or backreferences"
    )
    judge_characters: int = Field(
        default=1_000_000,
        ge=1_000,
        description="Characters that a model is sent in one prompt of a judge, or to embed",
    )


DEFAULT_LIMITS = EvaluatorLimits()


class LimitExceeded(ValueError):
    """More than a limit allows."""


def limit_exceeded(message: str, limit: str) -> LimitExceeded:
    """The error that names the limit and where it is set."""
    return LimitExceeded(f"{message} (limits.{limit} in the project's config or the plan sets this)")
