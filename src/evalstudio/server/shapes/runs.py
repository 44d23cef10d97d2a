"""Starting executions and runs, a run in full, and runs in figures."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ...conversation.definitions import Persona, Scenario
from ...evaluators.results import RunOutput, Verdict
from ...project.entities import (
    AgentErrors,
    Connector,
    Counts,
    Execution,
    ExecutionSource,
    ExecutionStatus,
    Moment,
    RunSummary,
)
from ...project.requirements import Budget, Requirement
from ...reporting.statistics import Rate
from .base import Identity, Request, Shape, Text

Repetitions = Annotated[int, Field(ge=1, le=10_000)]
Labels = Annotated[dict[str, Any], Field(max_length=100)]


class StartExecution(Request):
    """Start an eval, all of it or a part."""

    eval_id: Identity
    scenario_ids: list[Identity] | None = Field(
        default=None, max_length=2000, description="Only these of its scenarios"
    )
    connector_ids: list[Identity] | None = Field(
        default=None, max_length=100, description="These connectors instead of its own"
    )
    repetitions: Repetitions | None = Field(default=None, description="Instead of the eval's own")
    until_decided: bool = Field(
        default=False, description="Repeat only what is still open, at most so many times"
    )
    agent_errors: AgentErrors = Field(
        default="error", description="Whether the agent's errors count as errors or as failures"
    )
    last_failed: bool = Field(
        default=False, description="Only what did not pass in the last execution of the eval"
    )
    requirements: list[Requirement] = Field(
        default_factory=list[Requirement], max_length=100, description="Beside the eval's own"
    )
    budget: Budget | None = Field(default=None, description="Instead of the eval's own")
    failed_of: Identity | None = Field(
        default=None, description="Only what did not pass in this execution of the eval"
    )
    run_ids: list[Identity] | None = Field(
        default=None, min_length=1, max_length=2000, description="Only what these runs ran"
    )
    trigger: Annotated[str, StringConstraints(max_length=100)] = "api"
    labels: Labels = Field(
        default_factory=dict[str, Any],
        description="Git commit, branch, anything",
        examples=[{"branch": "main"}],
    )


class SetBaseline(Shape):
    """Make an execution the one that others of its eval are compared with."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    execution: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="Its id, last or last~1; the last whole one if not given"
    )
    eval_id: Identity | None = None


class StartRun(Request):
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


class RunDefinitions(Shape):
    """The scenario, persona and connector of a run as they were; secrets masked."""

    scenario: Scenario
    persona: Persona | None
    connector: Connector


class Rescored(Shape):
    """What the scenario's evaluators of today say about a conversation of then. Nothing is kept of it."""

    result: Verdict
    output: RunOutput
    changed: bool = Field(description="Whether the outcome differs from the run's own")


class Figures(Shape):
    """Runs in figures. An error is neither a pass nor a failure; unasserted runs are in no rate."""

    id: str | None
    name: str | None
    counts: Counts
    pass_rate_of_scored: Rate
    pass_rate_of_attempted: Rate
    mean_latency_ms: float | None
    max_latency_ms: float | None
    mean_score: float | None
    total_tokens: int | None
    total_cost: float | None = Field(description="US dollars of all roles, as far as they are known")


class ExecutionFigures(Figures):
    """An execution in figures, with the moment it was started and whether it is whole."""

    eval_id: str | None
    status: ExecutionStatus
    trigger: str | None
    created_at: Moment
    duration_ms: float | None = Field(description="From its start to its end; none before it is over")
    partial: str | None
    replayed: bool
    source: ExecutionSource
    labels: dict[str, Any]


class Cell(Shape):
    """A scenario in one execution."""

    execution_id: str
    counts: Counts


class ConnectorRow(Shape):
    """A scenario on one connector across executions."""

    connector_id: str | None
    connector_name: str | None
    cells: list[Cell]


class MatrixRow(Shape):
    """A scenario across executions, on all connectors and on each."""

    scenario_id: str | None
    scenario_name: str | None
    cells: list[Cell]
    connectors: list[ConnectorRow]


class Matrix(Shape):
    """Scenarios by executions, the newest execution first."""

    executions: list[Execution]
    rows: list[MatrixRow]
