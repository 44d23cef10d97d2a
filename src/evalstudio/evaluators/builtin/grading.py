"""How built-in evaluators answer: a fraction or a yes/no, also on a criterion's scale when one is named."""

from __future__ import annotations

from typing import Any

from ..contract import EvaluationResult, EvaluatorContext
from ..criteria import on_scale


def graded(
    ctx: EvaluatorContext[Any],
    fraction: float,
    reason: str,
    *,
    threshold: float = 0.5,
    criterion_name: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> EvaluationResult | list[EvaluationResult]:
    """A fraction that holds from the threshold up. Nothing at all when its criterion is not declared."""
    result = EvaluationResult(fraction >= threshold, fraction, reason, metadata or {})
    if criterion_name is None:
        return result
    criterion = ctx.criterion(criterion_name)
    if criterion is None:
        return []
    result.criterion_name = criterion_name
    result.score = on_scale(fraction, criterion, threshold)
    return result


def ruled(
    ctx: EvaluatorContext[Any],
    holds: bool,
    reason: str,
    *,
    criterion_name: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> EvaluationResult | list[EvaluationResult]:
    """A plain yes or no."""
    return graded(ctx, 1.0 if holds else 0.0, reason, criterion_name=criterion_name, metadata=metadata)


def errored(
    error: Exception, *, criterion_name: str | None = None, metadata: dict[str, Any] | None = None
) -> EvaluationResult:
    """One rule that could not be applied, where others of the same evaluator still can."""
    message = str(error) or type(error).__name__
    return EvaluationResult(error=message, criterion_name=criterion_name, metadata=metadata or {})
