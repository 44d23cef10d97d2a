"""Reading the scores a model gives: lenient about the form, strict about the scale."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, create_model

from ..criteria import EvaluationCriteria, Excluded, Score, leading_number, normalize

_FRACTION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/|of|out of)\s*(\d+(?:\.\d+)?)\b")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%")
# What models like to put around a score.
_AROUND = " \t\r\n.,;:!*_`\"'"


def read_score(raw: Score, criterion: EvaluationCriteria) -> Score:
    """A model's score in the form its scale uses, or ``ValueError`` saying what the scale accepts."""
    bare = raw.strip(_AROUND) if isinstance(raw, str) else raw
    for form in dict.fromkeys((raw, bare)):
        with suppress(Excluded):
            return _read(form, criterion)
    raise ValueError(f"{raw!r} is not on the scale; {accepted(criterion)}")


def _read(raw: Score, criterion: EvaluationCriteria) -> Score:
    match criterion.scale:
        case "binary" | "pass/fail":
            return normalize(raw, criterion) == 1.0
        case "likert5":
            return _read_likert(raw)
        case "numeric":
            return _read_numeric(raw, criterion)
        case _ if criterion.range is not None and not criterion.labels:
            return _read_numeric(raw, criterion)
        case _:
            normalize(raw, criterion)
            return raw


def _read_likert(raw: Score) -> int:
    if isinstance(raw, bool):
        raise Excluded("a boolean is no rating")
    if isinstance(raw, str) and (found := _FRACTION.match(raw)) and float(found[2]) != 5:
        raise Excluded("not out of 5")
    number = leading_number(raw)
    if number not in (1, 2, 3, 4, 5):
        raise Excluded("not a whole number from 1 to 5")
    return int(number)


def _read_numeric(raw: Score, criterion: EvaluationCriteria) -> Score:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and (share := _share(raw)) is not None:
        low, high = criterion.range or (0.0, 1.0)
        return low + share * (high - low)
    number = leading_number(raw)
    if criterion.range is None:
        normalize(number, criterion)
    elif not criterion.range[0] <= number <= criterion.range[1]:
        raise Excluded("outside the range")
    return number


def _share(raw: str) -> float | None:
    """The share of the whole that "3/4", "3 out of 4" and "75%" name."""
    found = _FRACTION.match(raw) or _PERCENT.match(raw)
    if found is None:
        return None
    whole = float(found[2]) if found.re is _FRACTION else 100.0
    if not 0 <= float(found[1]) <= whole or not whole:
        raise Excluded("more than the whole")
    return float(found[1]) / whole


def accepted(criterion: EvaluationCriteria) -> str:
    """What a scale accepts, in words for the model and for people."""
    match criterion.scale:
        case "binary" | "pass/fail":
            return "answer true or false"
        case "likert5":
            return "answer a whole number from 1 (worst) to 5 (best)"
        case "numeric":
            low, high = criterion.range or (0, 1)
            return f"answer a number from {low:g} to {high:g}"
        case _ if criterion.labels:
            return f"answer one of: {', '.join(criterion.labels)}"
        case _ if criterion.range:
            return f"answer a number from {criterion.range[0]:g} to {criterion.range[1]:g}"
        case _:
            return "answer pass or fail"


@lru_cache(maxsize=256)
def _one_score(key: str) -> type[BaseModel]:
    criterion = EvaluationCriteria.model_validate_json(key)
    check: Callable[[Any], Score] = lambda raw: read_score(raw, criterion)  # noqa: E731
    return create_model(
        "CriterionScore",
        reasoning=(str, Field("", description="Why, in one or two sentences, before the score")),
        score=(
            Annotated[bool | int | float | str, AfterValidator(check)],
            Field(description=accepted(criterion)),
        ),
    )


@lru_cache(maxsize=256)
def _many_scores(keys: tuple[str, ...]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        f"criterion_{place}": (_one_score(key), Field(description=_name(key)))
        for place, key in enumerate(keys, 1)
    }
    return create_model("CriterionScores", **fields)


def _name(key: str) -> str:
    return EvaluationCriteria.model_validate_json(key).name


def answer_shape(criteria: list[EvaluationCriteria]) -> type[BaseModel]:
    """What the model must answer: one score, or one per criterion."""
    keys = tuple(criterion.model_dump_json() for criterion in criteria)
    return _one_score(keys[0]) if len(keys) == 1 else _many_scores(keys)


def scores_in(answer: BaseModel, criteria: list[EvaluationCriteria]) -> list[tuple[Score, str]]:
    """The score and the reasoning for each criterion, in order."""
    parts: list[Any] = (
        [answer]
        if len(criteria) == 1
        else [getattr(answer, f"criterion_{place}") for place in range(1, len(criteria) + 1)]
    )
    return [(part.score, part.reasoning) for part in parts]
