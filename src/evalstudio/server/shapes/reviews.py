"""Starting reviews of recorded conversations, and scoring stored ones again."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from ...conversation.definitions import EvaluatorUse
from ...evaluators.criteria import EvaluationCriteria
from .base import Identity, Shape, Text
from .runs import Labels

MOST_CONVERSATIONS = 1000
Path = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class StartReview(Shape):
    """Judge recorded conversations by an eval or a scenario."""

    eval_id: Identity | None = None
    scenario_id: Identity | None = None
    conversations: list[Any] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_CONVERSATIONS,
        description="Each a list of messages, or an object in a known format",
    )
    file: Path | None = Field(default=None, description="A file of conversations inside the project's folder")
    fields: dict[str, Text] = Field(
        default_factory=dict[str, str], max_length=50, description="Where the fields of an unknown format are"
    )
    format: Text | None = Field(default=None, description="The format; else it is recognised")
    labels: Labels = Field(default_factory=dict[str, Any])

    @model_validator(mode="after")
    def _one_of_each(self) -> StartReview:
        for names in (("eval_id", "scenario_id"), ("conversations", "file")):
            if sum(getattr(self, name) is not None for name in names) != 1:
                first, second = (type(self).model_fields[name].alias for name in names)
                raise ValueError(f"give {first} or {second}, one of them")
        return self


class StartRescore(Shape):
    """Score the conversations of an execution again: by today's scenarios, unless something is given."""

    scenario_id: Identity | None = Field(default=None, description="Score all of them by this scenario")
    evaluators: list[EvaluatorUse] | None = Field(
        default=None, min_length=1, max_length=500, description="In the place of each scenario's own"
    )
    criteria: list[EvaluationCriteria] = Field(
        default_factory=list[EvaluationCriteria], max_length=500, description="Those of evaluators"
    )
    ask_again: bool = Field(default=False, description="Ask models also where nothing has changed for them")
    labels: Labels = Field(default_factory=dict[str, Any])
