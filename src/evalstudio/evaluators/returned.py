"""What an evaluator may return, read strictly: a result, a dict of its shape, a bool, a number, or a list.

Plugins need not be type-checked: a result that could be misread, or would break a reader later, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any, cast

from ..base.booleans import read_bool
from ..base.copies import own_copy
from ..base.problems import suggestion
from .contract import EvaluationResult
from .records import CriterionResult

EXPECTED = "expected an EvaluationResult, a dict of its shape, a bool or a number"

_FIELDS = {
    "success": "success",
    "value": "value",
    "score": "score",
    "reason": "reason",
    "reasoning": "reason",
    "metadata": "metadata",
    "criterionName": "criterion_name",
    "criterion_name": "criterion_name",
    "decisive": "decisive",
    "skipped": "skipped",
    "error": "error",
}
# Who made a result is known; what it says about itself is accepted and not needed.
_IGNORED = ("evaluatorType", "evaluator_type")
_LONGEST_SHOWN = 40


class UnreadableResult(TypeError):
    """Something that is not a result, or a result with a part that cannot be read."""


def read_returned(returned: object, *, metric: bool) -> list[EvaluationResult | UnreadableResult]:
    """The results in whatever an evaluator returned, each with the error that kept it from being read."""
    if isinstance(returned, list | tuple):
        kind, items = type(cast(object, returned)).__name__, cast(Sequence[object], returned)
        for place, item in enumerate(items, 1):
            if not isinstance(item, EvaluationResult | CriterionResult | Mapping):
                raise UnreadableResult(f"returned a {kind} whose item {place} is {_kind(item)}; {EXPECTED}")
        return [_attempt(item) for item in items]
    if (flag := read_bool(returned)) is not None:
        return [EvaluationResult(flag, float(flag) if metric else None)]
    if (number := _number(returned)) is not None:
        return [EvaluationResult(value=number)]
    if isinstance(returned, EvaluationResult | CriterionResult | Mapping):
        return [_attempt(cast(object, returned))]
    raise UnreadableResult(f"returned {_kind(returned)}; {EXPECTED}")


def _attempt(item: object) -> EvaluationResult | UnreadableResult:
    try:
        return _checked(_result(item))
    except UnreadableResult as error:
        return error


def _result(item: object) -> EvaluationResult:
    if isinstance(item, EvaluationResult):
        return item
    if isinstance(item, CriterionResult):
        return EvaluationResult(
            reason=item.reasoning or "",
            metadata=item.metadata,
            criterion_name=item.criterion_name,
            score=item.score,
            skipped=item.skipped,
            error=item.error,
        )
    return _from_dict(cast(Mapping[Any, Any], item))


def _from_dict(fields: Mapping[Any, Any]) -> EvaluationResult:
    values: dict[str, Any] = {}
    for key, value in fields.items():
        if key in _IGNORED:
            continue
        name = _FIELDS.get(key) if isinstance(key, str) else None
        if name is None:
            hint = suggestion(str(key), list(_FIELDS), "known are")
            raise UnreadableResult(f"returned a result with an unknown key {key!r}; {hint}")
        if name in values:
            raise UnreadableResult(f"returned a result that says its {name} twice")
        # A key with null says as much as no key.
        if value is not None:
            values[name] = value
    return EvaluationResult(**values)


def _checked(result: Any) -> EvaluationResult:
    """A copy of a result with every part of the type it should have."""
    return EvaluationResult(
        success=None if result.success is None else _need(read_bool, result, "success", "true or false"),
        value=None if result.value is None else _need(_number, result, "value", "a number"),
        reason=_need(_text, result, "reason", "text"),
        # What the evaluator keeps of its metadata and changes later is its own.
        metadata=own_copy(_need(_dict, result, "metadata", "a dict")),
        criterion_name=_optional_text(result, "criterion_name"),
        score=None if result.score is None else _need(_score, result, "score", "a bool, a number or text"),
        decisive=_need(read_bool, result, "decisive", "true or false"),
        skipped=_need(read_bool, result, "skipped", "true or false"),
        error=_optional_text(result, "error"),
    )


def _need(read: Any, result: Any, name: str, expected: str) -> Any:
    value = getattr(result, name)
    if (part := read(value)) is None:
        raise UnreadableResult(f"returned a result whose {name} is {_kind(value)}, not {expected}")
    return part


def _optional_text(result: Any, name: str) -> str | None:
    return None if getattr(result, name) is None else _need(_text, result, name, "text")


def _number(value: object) -> float | int | None:
    """A real number of any kind, numpy's included; a bool is none."""
    if isinstance(value, int | float):
        return None if isinstance(value, bool) else value
    if not isinstance(value, Number):
        return None
    try:
        return float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        return None


def _score(value: object) -> object:
    if isinstance(value, str):
        return value
    return flag if (flag := read_bool(value)) is not None else _number(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _dict(value: object) -> dict[str, Any] | None:
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    short = isinstance(value, str) and len(value) <= _LONGEST_SHOWN
    return f"a {type(value).__name__}" + (f" ({value!r})" if short else "")
