"""human: what a person said about a response, as a result like any other."""

from __future__ import annotations

from typing import Any, cast

from pydantic import Field, ValidationError, model_validator

from ...base.json_text import strict_json
from ...base.paths import fields_of
from ...base.problems import problems_of, suggestion
from ..contract import EvaluationResult, EvaluatorContext, NotAvailable
from ..criteria import Name, normalize
from ..definition import EvaluatorConfig, define_evaluator
from ..strict_scores import read_mark
from .measurements import reads_no_text
from .text import errored


class Feedback(EvaluatorConfig):
    criterion_name: Name
    score: bool | int | float | str
    comment: str | None = None
    author: str | None = None


class Human(EvaluatorConfig):
    criterion_name: Name | None = Field(None, description="Criterion the person judged")
    score: bool | int | float | str | None = Field(None, description="Their score, on the criterion's scale")
    comment: str | None = Field(None, description="What they said")
    author: str | None = Field(None, description="Who they are")
    source_field: str | None = Field(
        None,
        description="Where a record keeps its own feedback: a list of criterionName, score, comment, author",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Human:
        complete = self.criterion_name is not None and self.score is not None
        if complete == (self.source_field is not None):
            raise ValueError("needs either criterionName and score, or sourceField")
        return self


@define_evaluator(type="human", label="Human Feedback", gate="finally", inline=True, work=reads_no_text)
def human(ctx: EvaluatorContext[Human]) -> list[EvaluationResult]:
    """What people said about the response counts like any evaluator's result."""
    config = ctx.config
    if config.source_field is None:
        return [_result(ctx, Feedback.model_validate(config.model_dump(exclude={"source_field"})))]
    return [_read(ctx, item, config.source_field) for item in _items(ctx, config.source_field)]


def _items(ctx: EvaluatorContext[Human], field: str) -> list[Any]:
    value = ctx.find(field)
    # An empty cell of a table: nobody said anything.
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    try:
        feedback: Any = strict_json(value) if isinstance(value, str) else value
    except ValueError as error:
        raise NotAvailable(
            f"feedback at {field} cannot be read: it is text, but not JSON ({error})"
        ) from None
    return cast(list[Any], feedback) if isinstance(feedback, list) else [feedback]


def _read(ctx: EvaluatorContext[Human], item: Any, field: str) -> EvaluationResult:
    """One judgement of several; what is wrong with it is its own error."""
    try:
        return _result(ctx, Feedback.model_validate(item))
    except ValidationError as error:
        name: object = fields_of(item).get("criterionName")
        criterion = ctx.criterion(name) if isinstance(name, str) else None
        message = f"feedback at {field} cannot be read: {problems_of(error)[0]}"
        return errored(message, criterion.name if criterion else None)


def _result(ctx: EvaluatorContext[Human], item: Feedback) -> EvaluationResult:
    metadata = {} if item.author is None else {"author": item.author}
    name = item.criterion_name
    criterion = ctx.criterion(name)
    if criterion is None:
        hint = suggestion(name, [c.name for c in ctx.criteria], "declared are")
        return errored(f'no criterion "{name}" is declared to read the mark by; {hint}', name, **metadata)
    try:
        score = read_mark(item.score, criterion)
    except ValueError as error:
        return errored(f"the mark {error}", name, mark=item.score, **metadata)
    value = normalize(score, criterion)
    return EvaluationResult(value >= 0.5, value, item.comment or "", metadata, name, item.score)
