"""Starting executions and runs, a run in full, and runs in figures."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from ...conversation.definitions import Persona, Scenario
from ...evaluators.aggregate import EndedBy
from ...evaluators.contract import Fault, Gate, Kind
from ...project.entities import Connector, Counts, Execution, Moment, Run, RunSummary, RunVerdict, Turn
from ...reporting.statistics import Rate
from .base import Identity, Shape, Text

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
    last_failed: bool = Field(
        default=False, description="Only what did not pass in the last execution of the eval"
    )
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


@with_config(ConfigDict(extra="allow"))
class EvaluatorResultJson(TypedDict):
    """One result of one evaluator."""

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


@with_config(ConfigDict(extra="allow"))
class RunOutput(TypedDict):
    """What a run came to in detail. Parts that do not apply are left out."""

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


class TurnDetail(Shape):
    """A turn with what the evaluators found after it. Turn 0 is what was said before the first."""

    turn: int = Field(ge=0)
    message_count: int | None = Field(default=None, description="How many of the run's messages are its own")
    latency_ms: float | None = None
    tokens_usage: TokensJson | None = None
    evaluator_results: list[EvaluatorResultJson] = Field(default_factory=list[EvaluatorResultJson])


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


def detail_of(run: Run) -> RunDetail:
    """A run as the API describes it; nothing is checked again."""
    fields: dict[str, Any] = {**run.__dict__, "turns": [_turn(turn) for turn in run.turns]}
    return RunDetail.model_construct(None, **fields)


def _turn(turn: Turn) -> TurnDetail:
    fields: dict[str, Any] = {**turn.__dict__, "message_count": (turn.model_extra or {}).get("messageCount")}
    return TurnDetail.model_construct(None, **fields)


class Figures(Shape):
    """Runs in figures. An error is neither a pass nor a failure; runs without assertions are in no rate."""

    id: str | None
    name: str | None
    counts: Counts
    pass_rate_of_scored: Rate
    pass_rate_of_attempted: Rate
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
