"""Shapes the API adds to the entities: what it is asked, and what it answers, beside them."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from ..conversation.definitions import Persona, Scenario
from ..evaluators.aggregate import EndedBy
from ..evaluators.contract import Fault, Gate, Kind
from ..evaluators.criteria import EvaluationCriteria
from ..evaluators.records import EvaluationInput
from ..messages import Message, TokensUsage
from ..project.entities import Connector, Counts, Execution, Moment, Run, RunSummary, RunVerdict, Turn
from ..scoring.config import Names

T = TypeVar("T")
Text = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
Identity = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_-]{1,64}$")]


class Shape(BaseModel):
    """camelCase in JSON, unknown keys refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class PageOf(Shape, Generic[T]):
    """Part of a list, newest first."""

    items: list[T]
    cursor: str | None = Field(description="Pass it on to read on; null at the end of the list")


class EvaluatorType(Shape):
    """A kind of evaluator that scenarios can use."""

    type: str = Field(examples=["tool-call-count"])
    label: str = Field(examples=["Tool Call Count"])
    description: str
    kind: Kind
    gate: Gate
    config_schema: dict[str, Any] = Field(description="JSON Schema of its config")
    builtin: bool
    source: str = Field(description="built-in, or the plugin it comes from")


class ConnectorType(Shape):
    """A kind of connector."""

    type: str = Field(examples=["http"])
    label: str = Field(examples=["HTTP"])
    description: str
    config_schema: dict[str, Any] = Field(description="JSON Schema of its config")
    builtin: bool
    source: str = Field(description="built-in, or the plugin it comes from")


class LoadedPlugin(Shape):
    """A plugin and the types it brought."""

    name: str
    path: str | None
    evaluators: list[str]
    connectors: list[str]


class ModelProvider(Shape):
    """A model provider of the project's config."""

    name: str = Field(examples=["openai"])
    address: str | None = Field(description="Where it is reached; null for the provider's own")
    is_default: bool
    has_key: bool = Field(description="Whether a key is set here, or none is needed")


class Models(Shape):
    """Which model plays which part."""

    evaluation: str | None
    persona: str | None
    embedding: str


class Providers(Shape):
    """The model providers of the project."""

    items: list[ModelProvider]
    models: Models | None


class ProcessorStatus(Shape):
    """The run processor of this server."""

    enabled: bool
    running: bool
    problem: str | None = None


class Status(Shape):
    """The project and the server that serves it."""

    name: str | None
    version: str
    storage: Literal["sqlite", "postgres"]
    has_model: bool
    token_required: bool
    processor: ProcessorStatus
    queued: bool = Field(description="Whether runs are waiting")


class Health(Shape):
    """The server is there."""

    status: Literal["ok"] = "ok"


class Readiness(Shape):
    """The server can do its work."""

    status: Literal["ready"] = "ready"


class Credentials(Shape):
    """What logging in takes."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class Session(Shape):
    """Whether a token is needed here, and whether this caller has shown it."""

    required: bool
    authenticated: bool


class ConnectorTest(Shape):
    """What testing a connector found."""

    success: bool
    latency_ms: float
    response: str | None = Field(default=None, description="What the agent said")
    error: str | None = None


class Invocation(Shape):
    """What to say to the agent."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=1000)] = Field(
        examples=[[{"role": "user", "content": "Hello"}]]
    )


class InvocationResult(Shape):
    """What the agent added."""

    success: bool
    latency_ms: float
    messages: list[Message] = Field(default_factory=list[Message])
    tokens_usage: TokensUsage | None = None
    error: str | None = None


class Prompt(Shape):
    """What the simulated user is told about itself."""

    prompt: str


Repetitions = Annotated[int, Field(ge=1, le=10_000)]
Labels = Annotated[dict[str, Any], Field(max_length=100)]


class StartExecution(Shape):
    """Start an eval, all of it or a part."""

    eval_id: Identity
    scenario_ids: list[Identity] | None = Field(
        default=None, max_length=2000, description="Only these of its scenarios"
    )
    connector_ids: list[Identity] | None = Field(
        default=None, max_length=100, description="These connectors instead of its own"
    )
    repetitions: Repetitions | None = Field(default=None, description="Instead of the eval's own")
    trigger: Annotated[str, StringConstraints(max_length=100)] = "api"
    labels: Labels = Field(
        default_factory=dict[str, Any],
        description="Git commit, branch, anything",
        examples=[{"branch": "main"}],
    )


class StartRun(Shape):
    """Try one scenario against one connector."""

    scenario_id: Identity
    connector_id: Identity
    persona_id: Identity | None = Field(
        default=None, description="This persona instead of the scenario's own"
    )
    case_name: Text | None = Field(default=None, description="Only the case of this name")
    repetitions: Repetitions = 1
    labels: Labels = Field(default_factory=dict[str, Any])


class StartedRuns(Shape):
    """The execution that was started, and its first runs."""

    execution: Execution
    runs: list[RunSummary]


class Affected(Shape):
    """How many runs it concerned."""

    count: int


class EvaluatorResultJson(TypedDict):
    """One result of one evaluator."""

    __pydantic_config__ = ConfigDict(extra="allow")  # pyright: ignore[reportGeneralTypeIssues]

    type: str
    label: str
    name: NotRequired[str]
    kind: Kind
    gate: NotRequired[Gate]
    success: bool
    value: NotRequired[float | None]
    reason: str
    metadata: NotRequired[dict[str, Any]]
    turn: NotRequired[int]
    durationMs: NotRequired[float]
    error: NotRequired[str]
    fault: NotRequired[Fault]
    skipped: NotRequired[bool]
    decisive: NotRequired[bool]
    pending: NotRequired[bool]
    criterionName: NotRequired[str]
    score: NotRequired[bool | float | str]


class JudgementJson(TypedDict):
    """What the judge of a scenario's criteria found."""

    successMet: bool
    failureMet: bool
    confidence: float | None
    reasoning: str


class TokensJson(TypedDict):
    """Tokens used."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class RunOutput(TypedDict):
    """What a run came to in detail. Parts that do not apply are left out."""

    __pydantic_config__ = ConfigDict(extra="allow")  # pyright: ignore[reportGeneralTypeIssues]

    avgLatencyMs: NotRequired[float]
    totalLatencyMs: NotRequired[float]
    messageCount: NotRequired[int]
    maxMessagesReached: NotRequired[bool]
    endedBy: NotRequired[EndedBy]
    stopReason: NotRequired[str]
    tokensUsage: NotRequired[TokensJson]
    modelUsage: NotRequired[dict[str, TokensJson]]
    evaluation: NotRequired[JudgementJson]
    evaluatorResults: NotRequired[list[EvaluatorResultJson]]
    metrics: NotRequired[dict[str, float]]
    overallScore: NotRequired[float]
    coverage: NotRequired[dict[str, Any]]


class TurnDetail(Turn):
    """A turn with what the evaluators found after it, and what was said in it."""

    tokens_usage: TokensJson | None = None
    evaluator_results: list[EvaluatorResultJson] = Field(default_factory=list[EvaluatorResultJson])  # pyright: ignore[reportIncompatibleVariableOverride]


class RunDetail(Run):
    """A run with all that was said, turn by turn, and its whole output."""

    turns: list[TurnDetail] = Field(default_factory=list[TurnDetail])  # pyright: ignore[reportIncompatibleVariableOverride]
    output: RunOutput | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class RunDefinitions(Shape):
    """The scenario, persona and connector of a run as they were; secrets masked."""

    scenario: Scenario
    persona: Persona | None
    connector: Connector


class Rescored(Shape):
    """What the scenario's evaluators of today say about a conversation of then. Nothing is kept of it."""

    result: RunVerdict
    output: RunOutput
    changed: bool = Field(description="Whether the outcome differs from the run's own")


class EvaluatorEntry(BaseModel):
    """An evaluator to score with. Further keys are read as its config."""

    model_config = ConfigDict(extra="allow")

    type: Text = Field(examples=["keyword-coverage"])
    name: str | None = None
    config: dict[str, Any] | None = None


class ScoringConfig(Shape):
    """What to score with."""

    evaluator_configs: list[EvaluatorEntry] = Field(
        min_length=1,
        max_length=100,
        examples=[[{"type": "regex", "config": {"pattern": "(?i)booked"}}]],
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


class CriterionResultJson(TypedDict):
    """What one evaluator said about one criterion."""

    __pydantic_config__ = ConfigDict(extra="allow")  # pyright: ignore[reportGeneralTypeIssues]

    criterionName: str
    score: NotRequired[bool | float | str | None]
    reasoning: NotRequired[str]
    evaluatorType: str
    error: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
    skipped: NotRequired[bool]


class EvaluationResultJson(TypedDict):
    """What a recorded response came to."""

    __pydantic_config__ = ConfigDict(extra="allow")  # pyright: ignore[reportGeneralTypeIssues]

    id: str
    createdAt: NotRequired[str]
    overallScore: float | None
    success: bool
    outcome: Literal["pass", "fail", "error"]
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


class Scored(Shape):
    """Results in the order of the inputs."""

    items: list[EvaluationResultJson]


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


class RateJson(Shape):
    """A share with what it rests on and its 95 % Wilson interval."""

    passed: int
    of: int
    rate: float | None
    low: float
    high: float


class Figures(Shape):
    """Runs in figures. An error is neither a pass nor a failure; runs without assertions are in no rate."""

    id: str | None
    name: str | None
    counts: Counts
    pass_rate_of_scored: RateJson
    pass_rate_of_attempted: RateJson
    mean_latency_ms: float | None
    max_latency_ms: float | None
    mean_score: float | None
    total_tokens: int | None


class ExecutionFigures(Figures):
    """An execution in figures, with the moment it was started."""

    created_at: Moment


class Cell(Shape):
    """A scenario in one execution."""

    execution_id: str
    counts: Counts


class MatrixRow(Shape):
    """A scenario across executions."""

    scenario_id: str | None
    scenario_name: str | None
    cells: list[Cell]


class Matrix(Shape):
    """Scenarios by executions, the newest execution first."""

    executions: list[Execution]
    rows: list[MatrixRow]


class EventJson(Shape):
    """One event of the stream; it is the data of a server-sent event that carries the same id."""

    id: int
    kind: str = Field(examples=["run.finished"])
    execution_id: str | None
    run_id: str | None
    at: Moment
    body: dict[str, Any]
