"""Pages of lists, calling an agent by hand, what is registered, and the server itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from ...conversation.definitions import EvaluatorUse
from ...evaluators.contract import Gate, Kind
from ...evaluators.results import Outcome
from ...messages import Message, MessageList, TokensUsage
from ...project.entities import Execution, Moment, RunSummary
from ...reporting.run_figures import RunFindings
from .base import PageOf, Shape
from .scoring import EvaluationSummary, Feedback


class ConnectorTest(Shape):
    """What testing a connector found."""

    success: bool
    latency_ms: float
    response: str | None = Field(default=None, description="What the agent said")
    error: str | None = None


class Invocation(Shape):
    """What to say to the agent."""

    messages: MessageList = Field(
        min_length=1, max_length=1000, examples=[[{"role": "user", "content": "Hello"}]]
    )


class InvocationResult(Shape):
    """What the agent added."""

    success: bool
    latency_ms: float
    messages: list[Message] = Field(default_factory=list[Message])
    tokens_usage: TokensUsage | None = None
    usage_missing: str | None = Field(default=None, description="Why a reported usage cannot be used")
    redacted: list[str] | None = Field(
        default=None,
        description="Where known secrets were taken out of the answer; null where no secret is known",
    )
    error: str | None = None


class Prompt(Shape):
    """What the simulated user is told about itself."""

    prompt: str


class EvaluatorType(Shape):
    """A kind of evaluator that scenarios can use."""

    type: str = Field(examples=["tool-call-count"])
    label: str = Field(examples=["Tool Call Count"])
    description: str
    kind: Kind
    gate: Gate
    gate_by_config: bool = Field(description="Whether the config may yield another gate")
    config_schema: dict[str, Any] = Field(description="JSON Schema of its config")
    builtin: bool
    source: str = Field(description="built-in, or the plugin it comes from")


class EvaluatorUses(Shape):
    """Evaluators of a scenario as they stand."""

    evaluators: list[EvaluatorUse] = Field(max_length=1000)


class Gates(Shape):
    """The gate of each, in order; null where its config cannot be read as it is."""

    gates: list[Gate | None]


class ConnectorType(Shape):
    """A kind of connector."""

    type: str = Field(examples=["http"])
    label: str = Field(examples=["HTTP"])
    description: str
    config_schema: dict[str, Any] = Field(description="JSON Schema of its config")
    builtin: bool
    source: str = Field(description="built-in, or the plugin it comes from")


class LoadedPlugin(Shape):
    """A plugin and the types it brought, or why it could not be loaded."""

    name: str
    path: str | None = None
    evaluators: list[str] = Field(default_factory=list[str])
    connectors: list[str] = Field(default_factory=list[str])
    error: str | None = Field(default=None, description="Why it could not be loaded")


class ModelProvider(Shape):
    """A model provider of the project's config."""

    name: str = Field(examples=["openai"])
    address: str | None = Field(description="Where it is reached; null for the provider's own")
    is_default: bool
    has_key: bool = Field(description="Whether a key is set here, or none is needed")
    key: Literal["set", "needed", "not needed"] = Field(description="Where its key stands")
    problem: str | None = Field(default=None, description="Why it cannot be called, and what to set")


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


class IntakeStatus(Shape):
    """Taking in telemetry of production at this server."""

    enabled: bool
    running: bool = Field(description="Whether conversations are closed and handed over to the monitors")
    problem: str | None = None


class Status(Shape):
    """The project and the server that serves it."""

    name: str | None
    version: str
    storage: Literal["sqlite", "postgres"]
    has_model: bool
    token_required: bool
    processor: ProcessorStatus
    intake: IntakeStatus
    problem: str | None = Field(description="What keeps the server from its work, as /api/ready says it")
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


class EventJson(Shape):
    """One event of the stream; it is the data of a server-sent event that carries the same id."""

    id: int
    kind: str = Field(examples=["run.finished"])
    execution_id: str | None
    run_id: str | None
    at: Moment
    body: dict[str, Any]


class DefinitionText(Shape):
    """A definition as the text of a file."""

    text: str


class CasesText(Shape):
    """The text of a file of cases."""

    name: str = Field(max_length=1_000, description="Its ending says how it is written: .csv or .jsonl")
    text: str


class SearchHit(Shape):
    """Something that a search found."""

    kind: Literal["persona", "connector", "scenario", "eval", "monitor", "execution", "run"]
    id: str
    name: str
    created_at: Moment | None = None
    outcome: Outcome | None = None


class ExecutionPage(PageOf[Execution]):
    """Executions, newest first."""


class RunPage(PageOf[RunSummary]):
    """Runs without what was said, newest first."""


class RunFindingsPage(PageOf[RunFindings]):
    """What evaluators found, run by run, newest first."""


class EvaluationPage(PageOf[EvaluationSummary]):
    """Recorded evaluations in short, newest first."""


class FeedbackPage(PageOf[Feedback]):
    """What people said, newest first."""
