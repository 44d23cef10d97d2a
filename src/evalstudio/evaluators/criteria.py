"""Criteria: named qualities with a scale and a weight, and how raw scores become numbers from 0 to 1.

Pure functions only. What cannot be brought to 0–1 is reported with the reason, never guessed.
"""

from __future__ import annotations

import math
import operator
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from ..base.lazy_dataclass import dataclass
from ..base.problems import FieldPath, Problem, ProblemList, suggestion
from ..base.strict_values import StrictValues

Score = bool | int | float | str

_YES = frozenset({"true", "yes", "pass", "1"})
_NO = frozenset({"false", "no", "fail", "0"})
_LEADING_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)")
_ROUNDING = 1e-9
# A whole number may be larger than any float; NaN compares with nothing.
_LARGEST = sys.float_info.max
# A union that is written where it is asked for is made anew each time.
_NUMBER = (int, float)


def named(value: str) -> str:
    """A name with something in it, without blanks around it."""
    name = value.strip()
    if not name:
        raise ValueError("must not be blank")
    return name


def not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


Name = Annotated[str, AfterValidator(named)]
Text = Annotated[str, AfterValidator(not_blank)]


class EvaluationCriteria(StrictValues):
    """A quality to judge: what it means, on which scale, and how much it counts."""

    model_config = ConfigDict(
        defer_build=True, alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )

    name: Name
    description: str = ""
    scale: Name = "binary"
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    range: tuple[float, float] | None = Field(default=None, description="Lowest and highest raw score")
    labels: dict[str, float] | None = Field(
        default=None, description="Words and the 0–1 score each stands for"
    )

    @model_validator(mode="after")
    def _bounds(self) -> EvaluationCriteria:
        if self.range is not None:
            low, high = self.range
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError("range needs two finite numbers, the lower first")
        for word, number in (self.labels or {}).items():
            if not 0 <= number <= 1:
                raise ValueError(f"label {word!r} must stand for a number from 0 to 1")
        if len({_fold(word) for word in self.labels or {}}) < len(self.labels or {}):
            raise ValueError("two labels differ in case or blanks only; nobody could tell them apart")
        return self


def check_unique(criteria: Sequence[EvaluationCriteria]) -> None:
    """Refuse two criteria of the same name."""
    seen: set[str] = set()
    for criterion in criteria:
        if criterion.name in seen:
            raise ValueError(f'criterion "{criterion.name}" is declared twice; names must be unique')
        seen.add(criterion.name)


Reference = tuple[FieldPath, str]
_NAMING = frozenset({"criterionName", "criterionNames", "criterion_name", "criterion_names"})


def criterion_references(config: object, path: FieldPath = ("config",)) -> Iterator[Reference]:
    """The criteria that a config names, its rules included, each with the place of its name."""
    if isinstance(config, BaseModel):
        fields = {
            info.alias or name: getattr(config, name) for name, info in type(config).model_fields.items()
        }
    elif isinstance(config, Mapping):
        fields = dict(cast(Mapping[str, Any], config))
    else:
        fields = {"criterionName": getattr(config, "criterion_name", None)}
    for key, value in fields.items():
        if key in _NAMING:
            names = cast(Sequence[object], value if isinstance(value, list | tuple) else [value])
            yield from (((*path, key), name) for name in names if isinstance(name, str))
        elif isinstance(value, BaseModel):
            yield from criterion_references(value, (*path, key))
        elif isinstance(value, list):
            for number, item in enumerate(cast(list[object], value)):
                if isinstance(item, BaseModel):
                    yield from criterion_references(item, (*path, key, number))


def check_declared(
    references: Iterable[Reference], criteria: Sequence[EvaluationCriteria], whose: str = "the"
) -> None:
    """Refuse names of criteria that are not declared: such an evaluator would have no say, in silence."""
    known = [criterion.name for criterion in criteria]
    ProblemList(
        Problem(
            f'"{name}" is not among {whose} criteria', path, suggestion(name, known) or "declare it there"
        )
        for path, name in references
        if name not in known
    ).check()


class Excluded(ValueError):
    """A raw score that has no place on its scale."""


def normalize(score: Score, criterion: EvaluationCriteria) -> float:
    """Bring a raw score to 0–1 by its criterion's scale, or raise ``Excluded`` with the reason."""
    if isinstance(score, bool):
        return 1.0 if score else 0.0
    if isinstance(score, _NUMBER) and not -_LARGEST <= score <= _LARGEST:
        raise Excluded("not a finite number")
    match criterion.scale:
        case "binary" | "pass/fail":
            return _normalize_binary(score)
        case "likert5":
            return _normalize_likert(score)
        case "numeric":
            return _normalize_numeric(score, criterion.range)
        case _:
            return _normalize_custom(score, criterion)


def normalized(score: Score, criterion: EvaluationCriteria) -> float | None:
    """Like ``normalize``, but nothing where the score has no place on its scale."""
    try:
        return normalize(score, criterion)
    except Excluded:
        return None


def _normalize_binary(score: int | float | str) -> float:
    if isinstance(score, str):
        return _word(score)
    if score in (0, 1):
        return float(score)
    raise Excluded(f"{score!r} is neither 0 nor 1")


def _normalize_likert(score: int | float | str) -> float:
    number = leading_number(score)
    if not 1 <= number <= 5:
        raise Excluded(f"{score!r} is outside 1–5")
    return (number - 1) / 4


def _normalize_numeric(score: int | float | str, bounds: tuple[float, float] | None) -> float:
    number = leading_number(score)
    if bounds is not None:
        return _within(number, bounds)
    if isinstance(score, str) and "%" in score and 0 <= number <= 100:
        return number / 100
    if 0 <= number <= 1:
        return number
    if 1 < number <= 1 + _ROUNDING:
        return 1.0
    if -_ROUNDING <= number < 0:
        return 0.0
    if 1 < number <= 100:
        return number / 100
    raise Excluded(f"{score!r} is outside 0–100 and the criterion declares no range")


def _normalize_custom(score: int | float | str, criterion: EvaluationCriteria) -> float:
    if isinstance(score, str):
        for word, number in (criterion.labels or {}).items():
            if _fold(word) == _fold(score):
                return number
        return _word(score)
    if criterion.range is not None:
        return _within(float(score), criterion.range)
    raise Excluded(f"{score!r} is not defined on the scale {criterion.scale!r}; declare labels or a range")


def _within(number: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return min(1.0, max(0.0, (number - low) / (high - low)))


def _fold(word: str) -> str:
    return unicodedata.normalize("NFC", word).strip().casefold()


def _word(word: str) -> float:
    text = _fold(word)
    if text in _YES:
        return 1.0
    if text in _NO:
        return 0.0
    raise Excluded(f"{word!r} is not a word for yes or no")


def leading_number(score: int | float | str) -> float:
    """A number, or the number a text begins with (``"4 stars"``)."""
    if isinstance(score, str):
        match = _LEADING_NUMBER.match(score)
        if match is None:
            raise Excluded(f"{score!r} does not begin with a number")
        score = float(match[1])
    if not math.isfinite(score):
        raise Excluded("not a finite number")
    return float(score)


def on_scale(fraction: float, criterion: EvaluationCriteria, threshold: float = 0.5) -> Score:
    """Map a computed fraction onto a scale, so that a perfect one is 1.0 after normalisation."""
    fraction = min(1.0, max(0.0, fraction))
    scale = criterion.scale
    if scale == "likert5":
        return 1 + 4 * fraction
    if criterion.range is not None and scale not in ("binary", "pass/fail"):
        low, high = criterion.range
        return low + fraction * (high - low)
    if scale == "numeric":
        return fraction
    if scale == "string":
        return "pass" if fraction >= threshold else "fail"
    return fraction >= threshold


@dataclass(slots=True)
class Coverage:
    """What a score rests on: how much was scored, and what was left out and why."""

    criteria: int = 0
    scored: int = 0
    missing: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])
    excluded: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    errors: int = 0
    skipped: int = 0

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class CriterionScore:
    """One raw score given to one criterion, whoever gave it."""

    criterion_name: str
    score: Score | None
    error: str | None = None
    skipped: bool = False
    unbounded: bool = False
    unreadable: str | None = None
    """Why the score could not be brought to 0–1; told by ``weigh``."""


def weigh(
    judged: Iterable[CriterionScore], criteria: Sequence[EvaluationCriteria]
) -> tuple[float | None, dict[str, float], Coverage]:
    """The weighted mean over criteria, the mean of each criterion, and what they rest on.

    A score that cannot be read is in no mean, and says so itself.
    """
    declared = {criterion.name: criterion for criterion in criteria}
    coverage = Coverage(criteria=len(declared))
    scores: dict[str, list[float]] = {}
    for item in judged:
        criterion = declared.get(item.criterion_name)
        if criterion is None:
            if item.criterion_name not in coverage.unknown:
                coverage.unknown.append(item.criterion_name)
            # Yes and no need no scale; anything else means something only on one.
            if item.score is not None and not isinstance(item.score, bool):
                item.unreadable = f'no criterion is named "{item.criterion_name}", so nothing says its scale'
            continue
        if item.error is not None:
            coverage.errors += 1
            if item.score is not None:
                # It counts nowhere; where its scale is what kept it from being read, the coverage says so.
                _place(item, criterion, {}, coverage)
        elif item.skipped or item.score is None:
            coverage.skipped += 1
        else:
            _place(item, criterion, scores, coverage)
    means = {name: math.fsum(values) / len(values) for name, values in scores.items()}
    coverage.scored = len(means)
    coverage.missing = [name for name in declared if name not in means]
    return weighted_mean(means, declared), means, coverage


def _place(
    item: CriterionScore, criterion: EvaluationCriteria, scores: dict[str, list[float]], coverage: Coverage
) -> None:
    assert item.score is not None
    try:
        if item.unbounded and criterion.range is None:
            raise Excluded("an unbounded sum needs a range on its criterion")
        number = normalize(item.score, criterion)
    except Excluded as reason:
        item.unreadable = str(reason)
        excluded = {"criterionName": criterion.name, "score": item.score, "reason": str(reason)}
        coverage.excluded.append(excluded)
    else:
        scores.setdefault(criterion.name, []).append(number)


def weighted_mean(means: Mapping[str, float], declared: Mapping[str, EvaluationCriteria]) -> float | None:
    """The mean of criteria by their weights; nothing where none of them counts."""
    relative = relative_weights(means, declared)
    if relative is None:
        return None
    return math.fsum(map(operator.mul, means.values(), relative)) / math.fsum(relative)


def relative_weights(
    names: Iterable[str], declared: Mapping[str, EvaluationCriteria]
) -> Sequence[float] | None:
    """The weights of criteria beside the heaviest: the sum of finite weights must not overflow."""
    weights = [declared[name].weight for name in names]
    heaviest = max(weights, default=0.0)
    if heaviest <= 0:
        return None
    return weights if heaviest == 1.0 else [weight / heaviest for weight in weights]
