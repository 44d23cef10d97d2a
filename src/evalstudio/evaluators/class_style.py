"""Evaluators written as classes: a ``type`` and ``async evaluate(input, criteria)``.

They are registered as they are; a class is made into an object once per entry, with its config as arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, cast

from ..configs import ConfigShape, InvalidConfig, label_from
from .contract import EvaluationResult, EvaluatorContext
from .criteria import EvaluationCriteria, Excluded, Score, normalize
from .definition import EvaluatorDefinition
from .records import CriterionResult, record_of


def is_class_style(candidate: object) -> bool:
    """Whether this is a class or an object with a ``type`` and an ``evaluate`` method."""
    return isinstance(getattr(candidate, "type", None), str) and callable(
        getattr(candidate, "evaluate", None)
    )


class _Made(ConfigShape):
    """Reads a config by making the evaluator with it."""

    def __init__(self, maker: Any) -> None:
        super().__init__({"type": "object"})
        self._maker = maker

    def parse(self, what: str, raw: Mapping[str, Any] | None) -> Any:
        given = dict(raw or {})
        if not isinstance(self._maker, type):
            if given:
                raise InvalidConfig(
                    what, [(next(iter(given)), "takes no config: it is registered as an object")]
                )
            return self._maker
        try:
            return self._maker(**given)
        except (TypeError, ValueError) as error:
            raise InvalidConfig(what, [("", str(error))]) from None


def adapt_class(candidate: Any) -> EvaluatorDefinition:
    """A definition around a class-style evaluator, class or object."""
    name: str = candidate.type
    owner: Any = cast(Any, candidate if isinstance(candidate, type) else type(candidate))
    return EvaluatorDefinition(
        type=name,
        function=_evaluate,
        label=getattr(owner, "label", None) or label_from(name),
        kind=getattr(owner, "kind", "assertion"),
        description=inspect.getdoc(owner) or "",
        config=_Made(candidate),
        gate="finally",
        is_async=True,
        module=owner.__module__,
    )


async def _evaluate(ctx: EvaluatorContext[Any]) -> list[EvaluationResult]:
    answer: object = ctx.config.evaluate(record_of(ctx.facts), list(ctx.criteria))
    if inspect.isawaitable(answer):
        answer = await cast(Awaitable[object], answer)
    if not isinstance(answer, list | tuple):
        raise TypeError(f"evaluate returned a {type(answer).__name__}; expected a list of results")
    return [_result(item, ctx) for item in cast(Sequence[object], answer)]


def _result(item: object, ctx: EvaluatorContext[Any]) -> EvaluationResult:
    if isinstance(item, EvaluationResult):
        return item
    name, score, reason, error, metadata = _fields(item)
    result = EvaluationResult(None, None, reason or "", metadata, name, score, error=error)
    criterion = ctx.criterion(name)
    if error is None and score is not None and criterion is not None:
        result.value = _value(score, criterion)
        result.success = result.value is None or result.value >= 0.5
    elif error is None and criterion is None:
        # Nothing to read the score by; recorded scoring shows it as unknown.
        result.success = True
    return result


def _value(score: Score, criterion: EvaluationCriteria) -> float | None:
    try:
        return normalize(score, criterion)
    except Excluded:
        return None


def _fields(item: object) -> tuple[str, Score | None, str | None, str | None, dict[str, Any]]:
    if isinstance(item, CriterionResult):
        return item.criterion_name, item.score, item.reasoning, item.error, item.metadata
    if isinstance(item, Mapping):
        given = cast(Mapping[str, Any], item)
        name = given.get("criterionName") or given.get("criterion_name")
        if isinstance(name, str):
            reason = given.get("reasoning") or given.get("reason")
            return name, given.get("score"), reason, given.get("error"), dict(given.get("metadata") or {})
    raise TypeError("evaluate returned something in its list that is not a result with a criterionName")
