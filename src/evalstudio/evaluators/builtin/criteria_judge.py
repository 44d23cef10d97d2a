"""criteria-judge: a language model scores criteria on their own scales, all of them in one call."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, Field, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema

from ...configs import OWN_PLACEHOLDERS
from ...messages import Message
from ..contract import EvaluationResult, EvaluatorContext
from ..criteria import EvaluationCriteria, Excluded, Name, Score, leading_number, normalize
from ..definition import EvaluatorConfig, define_evaluator
from .prompts import (
    CRITERIA_JUDGE_SYSTEM,
    SCORE_REASONING,
    TEMPLATE_NAMES,
    accepted,
    criteria_judge_prompt,
    fill,
)
from .text import errored


class CriteriaJudge(EvaluatorConfig):
    criterion_names: list[Name] = Field(
        default_factory=list[Name],
        validation_alias=AliasChoices("criterionNames", "criterionName"),
        description="Criteria to score; all declared ones where none is named",
    )
    prompt_template: str | None = Field(
        None,
        description="Own prompt, with {{input}}, {{response}}, {{reference}}, {{context.path}}, "
        "{{criterion_name}}, {{criterion_description}} and {{criterion_scale}}",
        json_schema_extra={OWN_PLACEHOLDERS: [*TEMPLATE_NAMES]},
    )
    system_prompt: str | None = Field(None, description="Replaces the built-in instructions to the judge")
    model: str | None = Field(None, description="Model to ask; the project's evaluation model by default")
    threshold: float = Field(0.5, ge=0, le=1, description="Lowest 0–1 score that holds")
    llm: SkipJsonSchema[Any] = Field(None, exclude=True, description="A model object, in code only")

    @field_validator("criterion_names", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("prompt_template")
    @classmethod
    def _not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("must not be blank")
        return value


@define_evaluator(type="criteria-judge", label="Criteria Judge", gate="finally", cost="llm", timeout=300)
async def criteria_judge(ctx: EvaluatorContext[CriteriaJudge]) -> list[EvaluationResult]:
    """A language model scores the response on the declared criteria, each on its own scale."""
    names = ctx.config.criterion_names
    criteria = [c for c in ctx.criteria if not names or c.name in names]
    if not criteria:
        return []
    try:
        model = ctx.config.llm or ctx.llm
        answer = await model.answer(_messages(ctx, criteria), answer_shape(criteria), model=ctx.config.model)
    except Exception as error:
        raw = getattr(error, "raw", None)
        metadata = {} if raw is None else {"reply": raw}
        return [errored(error, criterion.name, **metadata) for criterion in criteria]
    scores = zip(criteria, scores_in(answer.value, criteria), strict=True)
    results = [_scored(criterion, *score, ctx.config.threshold) for criterion, score in scores]
    # One call scored them all: its tokens are counted once.
    results[0].metadata["modelUsage"] = answer.usage.model_dump()
    return results


def _scored(criterion: EvaluationCriteria, score: Any, reason: str, threshold: float) -> EvaluationResult:
    value = normalize(score, criterion)
    return EvaluationResult(value >= threshold, value, reason, {"rawLlmScore": score}, criterion.name, score)


def _messages(ctx: EvaluatorContext[CriteriaJudge], criteria: list[EvaluationCriteria]) -> list[Message]:
    template = ctx.config.prompt_template
    prompt = criteria_judge_prompt(ctx, criteria) if template is None else fill(template, ctx, criteria)
    system = ctx.config.system_prompt or CRITERIA_JUDGE_SYSTEM
    return [Message(role="system", content=system), Message(role="user", content=prompt)]


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
        case scale if scale == "numeric" or (criterion.range is not None and not criterion.labels):
            return _read_numeric(raw, criterion)
        case _:
            normalize(raw, criterion)
            return raw


def _read_likert(raw: Score) -> int:
    if isinstance(raw, bool):
        raise Excluded("a boolean is no rating")
    if isinstance(raw, str) and (fraction := _FRACTION.match(raw)) and float(fraction[2]) != 5:
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
    match = _FRACTION.match(raw) or _PERCENT.match(raw)
    if match is None:
        return None
    whole = float(match[2]) if match.re is _FRACTION else 100.0
    if not 0 <= float(match[1]) <= whole or not whole:
        raise Excluded("more than the whole")
    return float(match[1]) / whole


@lru_cache(maxsize=256)
def _one_score(key: str) -> type[BaseModel]:
    criterion = EvaluationCriteria.model_validate_json(key)
    check: Callable[[Any], Score] = lambda raw: read_score(raw, criterion)  # noqa: E731
    return create_model(
        "CriterionScore",
        reasoning=(str, Field("", description=SCORE_REASONING)),
        score=(
            Annotated[bool | int | float | str, AfterValidator(check)],
            Field(description=accepted(criterion)),
        ),
    )


@lru_cache(maxsize=256)
def _many_scores(keys: tuple[str, ...]) -> type[BaseModel]:
    names = [EvaluationCriteria.model_validate_json(key).name for key in keys]
    fields: dict[str, Any] = {
        f"criterion_{place}": (_one_score(key), Field(description=name))
        for place, (key, name) in enumerate(zip(keys, names, strict=True), 1)
    }
    return create_model("CriterionScores", **fields)


def answer_shape(criteria: list[EvaluationCriteria]) -> type[BaseModel]:
    """What the model must answer: one score, or one per criterion."""
    keys = tuple(criterion.model_dump_json() for criterion in criteria)
    return _one_score(keys[0]) if len(keys) == 1 else _many_scores(keys)


def scores_in(answer: BaseModel, criteria: list[EvaluationCriteria]) -> list[tuple[Score, str]]:
    """The score and the reasoning for each criterion, in order."""
    places = range(1, len(criteria) + 1)
    many = [] if len(criteria) == 1 else [getattr(answer, f"criterion_{place}") for place in places]
    parts: list[Any] = many or [answer]
    return [(part.score, part.reasoning) for part in parts]
