"""Starting reviews of recorded conversations, and scoring stored ones again."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from ...conversation.definitions import EvaluatorUse
from ...evaluators.criteria import EvaluationCriteria
from ...project.entities import Execution
from ...project.requirements import Requirement
from .base import Identity, Request, Shape, Text
from .runs import Labels

MOST_CONVERSATIONS = 1000
Path = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


def _one_of(shape: Shape, *names: str) -> None:
    if sum(getattr(shape, name) is not None for name in names) != 1:
        *rest, last = (str(type(shape).model_fields[name].alias) for name in names)
        raise ValueError(f"give {', '.join(rest)} or {last}, one of them")


class ReviewMeasure(Request):
    """What to judge recorded conversations by: an eval, a scenario, or evaluators."""

    eval_id: Identity | None = None
    scenario_id: Identity | None = None
    evaluators: list[EvaluatorUse] | None = Field(
        default=None, min_length=1, max_length=500, description="Instead of an eval or a scenario"
    )
    criteria: list[EvaluationCriteria] = Field(
        default_factory=list[EvaluationCriteria], max_length=500, description="Those of evaluators"
    )
    name: Text = Field(default="evaluators", min_length=1, description="What to call evaluators together")
    fields: dict[str, Text] = Field(
        default_factory=dict[str, str], max_length=50, description="Where the fields of an unknown format are"
    )
    format: Text | None = Field(default=None, description="The format; else it is recognised")

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        _one_of(self, "eval_id", "scenario_id", "evaluators")
        return self


class StartReview(ReviewMeasure):
    """Judge recorded conversations by an eval, a scenario or evaluators."""

    conversations: list[Any] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_CONVERSATIONS,
        description="Each a list of messages, or an object in a known format",
    )
    file: Path | None = Field(default=None, description="A file of conversations inside the project's folder")
    unfinished: bool = Field(
        default=False, description="Conversations follow, in requests of their own; none are given here"
    )
    requirements: list[Requirement] = Field(
        default_factory=list[Requirement], max_length=100, description="Beside the eval's own"
    )
    trigger: Annotated[str, StringConstraints(max_length=100)] = "api"
    labels: Labels = Field(default_factory=dict[str, Any])

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if not self.unfinished:
            _one_of(self, "conversations", "file")
        elif self.conversations is not None or self.file is not None:
            raise ValueError("unfinished goes with neither conversations nor file")
        return self


class MoreConversations(ReviewMeasure):
    """Conversations for a review that was begun as unfinished."""

    conversations: list[Any] = Field(
        default_factory=list[Any],
        max_length=MOST_CONVERSATIONS,
        description="Each a list of messages, or an object in a known format",
    )
    is_last: bool = Field(default=False, description="Whether the review is finished with these")
    unreadable: bool = Field(default=False, description="Whether the sender could not read all there were")


class ReviewProgress(Shape):
    """What became of conversations: those of an earlier request are known and not judged again."""

    execution: Execution
    reviewed: int
    known: int
    refused: list[str] = Field(description="What could not be reviewed, where it is and why")


class StartRescore(Request):
    """Score the conversations of an execution again: by today's scenarios, unless something is given."""

    scenario_id: Identity | None = Field(default=None, description="Score all of them by this scenario")
    evaluators: list[EvaluatorUse] | None = Field(
        default=None, min_length=1, max_length=500, description="In the place of each scenario's own"
    )
    criteria: list[EvaluationCriteria] = Field(
        default_factory=list[EvaluationCriteria], max_length=500, description="Those of evaluators"
    )
    ask_again: bool = Field(default=False, description="Ask models also where nothing has changed for them")
    run_id: Identity | None = Field(default=None, description="Only this run of it")
    requirements: list[Requirement] = Field(
        default_factory=list[Requirement], max_length=100, description="Beside the eval's own"
    )
    trigger: Annotated[str, StringConstraints(max_length=100)] = "api"
    labels: Labels = Field(default_factory=dict[str, Any])
