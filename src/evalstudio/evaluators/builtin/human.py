"""human: what a person said about a response, as a result like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import orjson
from pydantic import Field, ValidationError, model_validator

from ...base.problems import Problem, problems_of
from ..contract import EvaluationResult, EvaluatorContext, NotAvailable
from ..criteria import EvaluationCriteria, Name, normalized
from ..definition import EvaluatorConfig, define_evaluator


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


@define_evaluator(type="human", label="Human Feedback", gate="finally", inline=True)
def human(ctx: EvaluatorContext[Human]) -> list[EvaluationResult]:
    """What people said about the response counts like any evaluator's result."""
    return [_result(ctx.criterion(item.criterion_name), item) for item in _feedback(ctx)]


def _feedback(ctx: EvaluatorContext[Human]) -> list[Feedback]:
    config = ctx.config
    if config.source_field is None:
        return [Feedback.model_validate(config.model_dump(exclude={"source_field"}))]
    value = ctx.find(config.source_field)
    if value is None:
        return []
    try:
        feedback: Any = orjson.loads(value) if isinstance(value, str) else value
        items = cast(Sequence[Any], feedback) if isinstance(feedback, list) else [feedback]
        return [Feedback.model_validate(item) for item in items]
    except ValidationError as error:
        raise _unreadable(config.source_field, problems_of(error)[0]) from None
    except orjson.JSONDecodeError:
        raise _unreadable(config.source_field, Problem("it is text, but not JSON")) from None


def _unreadable(field: str, problem: Problem) -> NotAvailable:
    return NotAvailable(f"feedback at {field} cannot be read: {problem}")


def _result(criterion: EvaluationCriteria | None, item: Feedback) -> EvaluationResult:
    value = None if criterion is None else normalized(item.score, criterion)
    holds, metadata = value is None or value >= 0.5, {} if item.author is None else {"author": item.author}
    return EvaluationResult(holds, value, item.comment or "", metadata, item.criterion_name, item.score)
