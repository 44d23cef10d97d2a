"""Scoring recorded responses, and what people say about them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from ...evaluators.contract import Kind
from ...evaluators.criteria import EvaluationCriteria
from ...evaluators.records import EvaluationInput
from ...evaluators.results import Outcome
from ...execution.project_files import LARGEST_PLAN
from ...project.entities import Moment
from ...scoring.config import Names
from .base import Identity, Request, Shape, Text


class EvaluatorEntry(BaseModel):
    """An evaluator to score with. Further keys are read as its config."""

    model_config = ConfigDict(extra="allow")

    type: Text = Field(examples=["keyword-coverage"])
    name: str | None = None
    config: dict[str, Any] | None = None


class ScoringConfig(Shape):
    """What to score with."""

    evaluator_configs: list[EvaluatorEntry] = Field(
        min_length=1, max_length=100, examples=[[{"type": "regex", "config": {"pattern": "(?i)booked"}}]]
    )
    criteria: list[EvaluationCriteria] = Field(default_factory=list[EvaluationCriteria], max_length=100)
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    only: Names = Field(default_factory=list[str], description="Run only these types, kinds or costs")
    skip: Names = Field(default_factory=list[str], description="Leave out these types, kinds or costs")


class ScoreOne(Shape):
    """One recorded response to score."""

    input: EvaluationInput
    config: ScoringConfig


class ScoreMany(Shape):
    """Recorded responses to score with the same evaluators."""

    inputs: list[EvaluationInput] = Field(min_length=1, max_length=1000)
    config: ScoringConfig


@with_config(ConfigDict(extra="allow"))
class CriterionResultJson(TypedDict):
    """What one evaluator said about one criterion."""

    criterionName: str
    score: NotRequired[bool | float | str | None]
    reasoning: NotRequired[str]
    evaluatorType: str
    error: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
    skipped: NotRequired[bool]


@with_config(ConfigDict(extra="allow"))
class EvaluatorResultJson(TypedDict):
    """What one evaluator came to; ``success`` is null where it could not have failed."""

    name: str
    type: str
    kind: Kind
    outcome: Literal["pass", "fail", "error", "skipped", "measured", "missing"]
    success: bool | None
    value: float | None
    threshold: float | None
    criterionName: NotRequired[str]
    reason: NotRequired[str]


@with_config(ConfigDict(extra="allow"))
class EvaluationResultJson(TypedDict):
    """What a recorded response came to."""

    id: str
    createdAt: NotRequired[str]
    overallScore: float | None
    success: bool
    outcome: Outcome
    reason: NotRequired[str]
    evaluatorResults: NotRequired[list[EvaluatorResultJson]]
    results: list[CriterionResultJson]
    criterionScores: dict[str, float]
    metrics: dict[str, float]
    coverage: dict[str, Any]
    runErrors: list[str]
    timestamp: float
    inputSnapshot: Any
    agentId: NotRequired[str]
    sessionId: NotRequired[str]
    evaluationConfigSnapshot: NotRequired[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]


class EvaluationSummary(Shape):
    """A recorded evaluation as lists show it."""

    id: str
    created_at: Moment
    agent_id: str | None
    session_id: str | None
    outcome: Outcome | None
    overall_score: float | None


class Scored(Shape):
    """Results in the order of the inputs."""

    items: list[EvaluationResultJson]


FilePath = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class PlanDraft(Shape):
    """A scoring plan as it is being written: its text, or its settings."""

    text: Annotated[str, StringConstraints(max_length=LARGEST_PLAN)] | None = None
    plan: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _is_one_of_them(self) -> PlanDraft:
        if (self.text is None) == (self.plan is None):
            raise ValueError("give text or plan, one of them")
        return self


class UploadedDataset(Shape):
    """The text of a dataset, as large as a request may be."""

    name: FilePath = Field(description="Its ending says how it is read", examples=["answers.jsonl"])
    text: str


class StartScoring(Request):
    """A dataset to score, and by what."""

    dataset: FilePath | None = Field(
        default=None, description="A .jsonl, .csv, .tsv or .parquet file of the project"
    )
    upload: UploadedDataset | None = None
    plan: FilePath | None = Field(default=None, description="A plan in a YAML or JSON file of the project")
    plan_text: Annotated[str, StringConstraints(max_length=LARGEST_PLAN)] | None = Field(
        default=None, description="A plan as YAML; plugins and llmSettings are the project's"
    )
    limit: int | None = Field(default=None, ge=1, description="Score at most this many records")
    skip_bad: bool = Field(default=False, description="Count unreadable records and go on")

    @model_validator(mode="after")
    def _names_both(self) -> StartScoring:
        if (self.dataset is None) == (self.upload is None):
            raise ValueError("give dataset or upload, one of them")
        if (self.plan is None) == (self.plan_text is None):
            raise ValueError("give plan or planText, one of them")
        return self


class NewFeedback(Shape):
    """What a person says about a run or about a recorded evaluation."""

    run_id: Identity | None = None
    evaluation_id: Identity | None = None
    criterion_name: Text | None = Field(default=None, description="The criterion that was judged")
    score: bool | float | Text | None = Field(default=None, description="On the criterion's scale")
    comment: Text | None = None
    author: Annotated[str, StringConstraints(max_length=200)] | None = None

    @model_validator(mode="after")
    def _says_something_about_something(self) -> NewFeedback:
        if (self.run_id is None) == (self.evaluation_id is None):
            raise ValueError("give runId or evaluationId, one of them")
        if self.score is None and self.comment is None:
            raise ValueError("give a score or a comment")
        return self


class Feedback(Shape):
    """Feedback as it is kept."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    id: str
    created_at: Moment
    run_id: str | None = None
    evaluation_id: str | None = None
    criterion_name: str | None = None
    score: bool | float | str | None = None
    comment: str | None = None
    author: str | None = None
