"""Telemetry: what a run does, as OpenTelemetry's spans, events and metrics.

The engine calls the functions of this module. Outside a run whose project asks for telemetry each of them is
one look at a context variable, and nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..base.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ..messages import Message
    from .recording import RunTrace, Telemetry

T = TypeVar("T")
Ending = TypeVar("Ending", bound="TracedEnding")

current_run: ContextVar[RunTrace | None] = ContextVar("evalstudio_trace", default=None)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run before it begins. Without an execution it is a trace of its own.

    What is found about a ``recorded`` conversation is told of the spans it was recorded in, of any trace.
    A ``rescored`` one was held in the execution ``held_in``; what is found is told of the spans of that.
    """

    run_id: str
    execution_id: str | None = None
    eval_id: str | None = None
    scenario: str = ""
    case: str | None = None
    persona: str | None = None
    connector: str | None = None
    repetition: int = 1
    attempt: int = 1
    rescored: bool = False
    recorded: bool = False
    held_in: str | None = None


class TracedVerdict(Protocol):
    """What is told of a verdict."""

    @property
    def outcome(self) -> str: ...
    @property
    def fault(self) -> str | None: ...
    @property
    def score(self) -> float | None: ...


class TracedEnding(Protocol):
    """What is told of how a run ended."""

    @property
    def verdict(self) -> TracedVerdict: ...
    @property
    def thread_id(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...


class EvaluatorFinding(Protocol):
    """What is told of the finding of an evaluator."""

    @property
    def type(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def gate(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def word(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def fault(self) -> str | None: ...
    @property
    def criterion_name(self) -> str | None: ...
    @property
    def rule(self) -> int | None: ...
    @property
    def turn(self) -> int: ...


class AgentAnswer(Protocol):
    """What is told of an agent's answer; its metadata is given the agent's span, to be kept with the turn."""

    metadata: dict[str, Any]

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def latency_ms(self) -> float: ...
    @property
    def first_token_ms(self) -> float | None: ...
    @property
    def tokens_usage(self) -> Any: ...
    @property
    def thread_id(self) -> str | None: ...
    @property
    def attempts(self) -> Sequence[Any]: ...


class Span(Protocol):
    """Something under way that is told of when it is over."""

    def __enter__(self) -> Span: ...
    def __exit__(self, *error: Any) -> None: ...
    def answered(self, answer: AgentAnswer) -> None: ...
    def found(self, findings: Sequence[EvaluatorFinding]) -> None: ...


class _NoSpan:
    """Stands for a span where nothing is told."""

    __slots__ = ()

    def __enter__(self) -> _NoSpan:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def answered(self, answer: AgentAnswer) -> None:
        return None

    def found(self, findings: Sequence[EvaluatorFinding]) -> None:
        return None


_NO_SPAN = _NoSpan()


def begin_turn(number: int) -> None:
    """A turn begins, unless it has begun already."""
    if (run := current_run.get()) is not None:
        run.begin_turn(number)


def end_turn(findings: Sequence[EvaluatorFinding], metadata: Mapping[str, Any] | None) -> None:
    """The turn is over, with these findings. Its metadata may name the agent's span, kept from before."""
    if (run := current_run.get()) is not None:
        run.end_turn(findings, metadata)


def found_at_the_end(findings: Sequence[EvaluatorFinding]) -> None:
    """What was found when the conversation was over."""
    if (run := current_run.get()) is not None:
        run.results(findings, at_the_end=True)


def agent_call(connector_type: str, address: str, new_messages: Sequence[Message]) -> Span:
    """The agent is called; what is sent meanwhile carries the span's ``traceparent``."""
    run = current_run.get()
    return _NO_SPAN if run is None else run.agent_call(connector_type, address, new_messages)


def agent_headers(headers: Mapping[str, str]) -> None:
    """The headers of an agent's answer, which may name its own span."""
    if (run := current_run.get()) is not None:
        run.agent_headers(headers)


def traceparent() -> str | None:
    """The header that lets an agent continue our trace."""
    run = current_run.get()
    return None if run is None else run.traceparent()


def evaluator(evaluator_type: str, name: str) -> Span:
    """An evaluator looks at a turn."""
    run = current_run.get()
    return _NO_SPAN if run is None else run.evaluator(evaluator_type, name)


async def model_call(
    work: Awaitable[T], role: str, provider: str, model: str, messages: Sequence[Message] | None = None
) -> T:
    """What a model answers; without messages it is asked for embeddings."""
    run = current_run.get()
    return await (work if run is None else run.model_call(work, role, provider, model, messages))


async def traced(telemetry: Telemetry | None, facts: RunFacts, work: Awaitable[Ending]) -> Ending:
    """How a run ends, told as a span where telemetry is asked for."""
    if telemetry is None:
        return await work
    with telemetry.run(facts) as trace:
        ending = await work
        trace.ended(ending)
        return ending
