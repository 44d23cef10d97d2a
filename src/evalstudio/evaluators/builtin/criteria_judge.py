"""criteria-judge: a language model scores criteria on their own scales, all of them in one call."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from pydantic import AliasChoices, Field, PlainValidator, WithJsonSchema, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema

from ...base.json_text import json_text
from ...configs import OWN_PLACEHOLDERS
from ...messages import Message
from ..contract import Answer, EvaluationResult, EvaluatorContext, NotAvailable
from ..criteria import EvaluationCriteria, Name, Text, normalize
from ..definition import EvaluatorConfig, define_evaluator
from ..model_replies import ModelReply, PartedReply, UnreadPart, refusal_of
from ..strict_scores import accepted, read_score
from .evidence import PLANTED, ShownTexts, comparable_texts, planted, texts_of
from .prompts import (
    SCORE_REASONING,
    TEMPLATE_NAMES,
    criteria_judge_prompt,
    criteria_judge_system,
    fill,
    judge_request,
    text_at,
)
from .text import errored


class CriteriaJudge(EvaluatorConfig):
    criterion_names: list[Name] = Field(
        default_factory=list[Name],
        validation_alias=AliasChoices("criterionNames", "criterionName"),
        description="Criteria to score; all declared ones where none is named",
    )
    prompt_template: Text | None = Field(
        None,
        description="Own prompt, with {{input}}, {{response}}, {{reference}}, {{context.path}}, "
        "{{criterion_name}}, {{criterion_description}} and {{criterion_scale}}",
        json_schema_extra={OWN_PLACEHOLDERS: [*TEMPLATE_NAMES]},
    )
    system_prompt: str | None = Field(
        None, description="Replaces the built-in instructions to the judge, but for the one on marked lines"
    )
    model: str | None = Field(None, description="Model to ask; the project's evaluation model by default")
    threshold: float = Field(0.5, ge=0, le=1, description="Lowest 0–1 score that holds")
    llm: SkipJsonSchema[Any] = Field(None, exclude=True, description="A model object, in code only")

    @field_validator("criterion_names", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value


@define_evaluator(type="criteria-judge", label="Criteria Judge", gate="finally", cost="llm", timeout=300)
async def criteria_judge(ctx: EvaluatorContext[CriteriaJudge]) -> list[EvaluationResult]:
    """A language model scores the response on the declared criteria, each on its own scale."""
    names = ctx.config.criterion_names
    criteria = [c for c in ctx.criteria if not names or c.name in names]
    if not criteria and not names:
        raise NotAvailable("there is nothing to judge: declare criteria")
    if not criteria:
        return []
    try:
        model = ctx.config.llm or ctx.llm
        answer = await model.answer(_messages(ctx, criteria), answer_shape(criteria), model=ctx.config.model)
    except Exception as error:
        return [_unanswered(error, criterion) for criterion in criteria]
    parts = zip(criteria, parts_of(answer.value, criteria), strict=True)
    texts = await comparable_texts([*texts_of(ctx.messages), text_at("response", ctx) or ""])
    results = [_judged(ctx, criterion, part, answer, texts) for criterion, part in parts]
    # One call scored them all: its tokens are counted once.
    results[0].metadata["modelUsage"] = answer.usage.model_dump()
    return results


def _unanswered(error: Exception, criterion: EvaluationCriteria) -> EvaluationResult:
    raw = getattr(error, "raw", None)
    return errored(refusal_of(error), criterion.name, **({} if raw is None else {"reply": raw}))


def _judged(
    ctx: EvaluatorContext[CriteriaJudge],
    criterion: EvaluationCriteria,
    part: Any,
    answer: Answer[Any],
    texts: ShownTexts,
) -> EvaluationResult:
    """The result for one criterion. What cannot be read is an error of this one alone."""
    if isinstance(part, UnreadPart):
        return errored(part.problem, criterion.name, reply=answer.raw or json_text(part.raw))
    try:
        score = read_score(part.score, criterion)
    except ValueError as error:
        return errored(str(error), criterion.name, reply=answer.raw)
    value = normalize(score, criterion)
    holds = value >= ctx.config.threshold
    # By planting a bad score an agent must not turn a failure into an error.
    if holds and planted("score", score, part.reasoning, texts):
        return errored(PLANTED, criterion.name, rawLlmScore=score, reply=answer.raw)
    return EvaluationResult(holds, value, part.reasoning, {"rawLlmScore": score}, criterion.name, score)


def _messages(ctx: EvaluatorContext[CriteriaJudge], criteria: list[EvaluationCriteria]) -> list[Message]:
    template = ctx.config.prompt_template
    prompt = criteria_judge_prompt(ctx, criteria) if template is None else fill(template, ctx, criteria)
    system = criteria_judge_system(ctx.config.system_prompt)
    return judge_request(system, prompt, ctx.facts.limits)


@lru_cache(maxsize=256)
def _one_score(key: str) -> type[ModelReply]:
    criterion = EvaluationCriteria.model_validate_json(key)
    form = accepted(criterion)
    score = Annotated[
        Any, PlainValidator(lambda raw: read_score(raw, criterion)), WithJsonSchema(form.schema)
    ]
    return create_model(
        "CriterionScore",
        __base__=ModelReply,
        reasoning=(str, Field("", description=SCORE_REASONING)),
        score=(score, Field(description=f"answer {form}")),
    )


@lru_cache(maxsize=256)
def _many_scores(keys: tuple[str, ...]) -> type[PartedReply]:
    names = [EvaluationCriteria.model_validate_json(key).name for key in keys]
    shapes = {f"criterion_{place}": _one_score(key) for place, key in enumerate(keys, 1)}
    fields: dict[str, Any] = {
        field: (shape | SkipJsonSchema[UnreadPart], Field(description=name))
        for (field, shape), name in zip(shapes.items(), names, strict=True)
    }
    model = create_model("CriterionScores", __base__=PartedReply, **fields)
    model.parts = shapes
    return model


def answer_shape(criteria: list[EvaluationCriteria]) -> type[ModelReply]:
    """What the model must answer: one score, or one per criterion."""
    keys = tuple(criterion.model_dump_json() for criterion in criteria)
    return _one_score(keys[0]) if len(keys) == 1 else _many_scores(keys)


def parts_of(answer: Any, criteria: list[EvaluationCriteria]) -> list[Any]:
    """The part of the answer about each criterion, in order."""
    if len(criteria) == 1:
        return [answer]
    return [getattr(answer, f"criterion_{place}") for place in range(1, len(criteria) + 1)]
