"""One run as spans, events and metrics. Imported only where telemetry is asked for.

Parents are passed by hand rather than by OpenTelemetry's context: turns are stretches of an async generator,
in which a context would leak to whoever drives it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import field
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry.trace import SpanKind, StatusCode

from ..base.lazy_dataclass import dataclass
from ..messages import Message
from . import EvaluatorFinding, RunFacts, TracedEnding, current_run, names
from .attributes import Attributes, Capture, Cleaner, evaluation_attributes, run_attributes
from .spans import AgentCall, EvaluatorCall, Recorder, SpanScope, ids_of, innermost, under
from .trace_context import SpanIds, execution_ids, ids_in, ids_kept

if TYPE_CHECKING:
    from .export import Pipeline

T = TypeVar("T")


# A server that runs for months remembers only so many executions; telling of one twice does no harm.
_MOST_TOLD = 1_000


@dataclass(frozen=True, slots=True)
class ExecutionFacts:
    """An execution that is over."""

    id: str
    status: str
    started_ns: int
    ended_ns: int
    eval_id: str | None = None
    eval_name: str | None = None
    trigger: str | None = None
    runs: Mapping[str, int] = field(default_factory=dict[str, int])


class Telemetry(Recorder):
    """What one project sends."""

    def __init__(
        self, pipeline: Pipeline, clean: Cleaner, capture: Capture, *, explanations: bool = True
    ) -> None:
        super().__init__(pipeline, clean, capture, explanations=explanations)
        self._told: set[tuple[str, int]] = set()

    def run(self, facts: RunFacts) -> RunTrace:
        """The trace of a run, begun when it is entered."""
        return RunTrace(self, facts)

    def execution_ended(self, facts: ExecutionFacts) -> None:
        """The span of an execution, made once it is over: its runs may have been anybody's."""
        if (facts.id, facts.ended_ns) in self._told:
            return
        if len(self._told) > _MOST_TOLD:
            self._told.clear()
        self._told.add((facts.id, facts.ended_ns))
        ids = execution_ids(facts.id)
        if not self.pipeline.samples(ids.trace_id, names.EXECUTION_SPAN):
            return
        counts = {f"{names.EXECUTION_RUNS}.{outcome}": count for outcome, count in facts.runs.items()}
        known = {
            names.EXECUTION_ID: facts.id,
            names.EXECUTION_STATUS: facts.status,
            names.EXECUTION_TRIGGER: facts.trigger,
            names.EVAL_ID: facts.eval_id,
            names.EVAL_NAME: facts.eval_name,
        }
        name = self.clean.text(" ".join(filter(None, (names.EXECUTION_SPAN, facts.eval_name))), 200)
        with self.pipeline.with_ids(ids.trace_id, ids.span_id):
            span = self.pipeline.tracer.start_span(
                name,
                otel_context.Context(),
                attributes=self.clean({**known, **counts}),
                start_time=facts.started_ns,
            )
        self.pipeline.end(span, facts.ended_ns)


class RunTrace:
    """A run that is under way: its span, that of its turn, and which span the results are about."""

    def __init__(self, telemetry: Telemetry, facts: RunFacts) -> None:
        self.telemetry = telemetry
        self.clean = telemetry.clean
        self.facts = facts
        self._about: SpanIds | None = None
        self._known = run_attributes(facts)
        self._call: AgentCall | None = None
        self._turn: otel.Span | None = None
        self._turn_number = 0
        self._turn_start = 0.0
        self._label = self.clean.text(facts.connector or "agent", 100)

    def __enter__(self) -> RunTrace:
        facts, pipeline = self.facts, self.telemetry.pipeline
        parent = otel_context.Context()
        if facts.execution_id:
            ids = execution_ids(facts.execution_id)
            sampled = pipeline.samples(ids.trace_id, names.EXECUTION_SPAN)
            parent = under(SpanIds(ids.trace_id, ids.span_id, sampled))
        name = names.RESCORE_SPAN if facts.rescored else names.RUN_SPAN
        name = self.clean.text(f"{name} {facts.scenario}".strip(), 200)
        self.span = pipeline.tracer.start_span(name, parent, attributes=self.clean(self._known))
        self._token = current_run.set(self)
        return self

    def __exit__(self, kind: Any = None, error: BaseException | None = None, *_: Any) -> None:
        current_run.reset(self._token)
        self._end_turn(error is not None)
        if error is not None:
            self.span.set_attribute(names.ERROR_TYPE, type(error).__name__)
            self.span.set_status(StatusCode.ERROR, self.clean.text(str(error), 500))
        self.telemetry.pipeline.end(self.span)

    def ended(self, ending: TracedEnding) -> None:
        """What the run came to. An error is one of the span too; a failure of the agent's is none."""
        outcome, fault = ending.verdict.outcome, ending.verdict.fault
        told = {
            names.RUN_OUTCOME: outcome,
            names.RUN_FAULT: fault,
            names.RUN_SCORE: ending.verdict.score,
            names.CONVERSATION_ID: ending.thread_id,
        }
        self.span.set_attributes(self.clean(told))
        if outcome == "error":
            self._end_turn(failed=True)
            self.span.set_attribute(names.ERROR_TYPE, f"{fault or 'system'}_error")
            self.span.set_status(StatusCode.ERROR, self.clean.text(ending.error or "", 500))
        if not self.facts.rescored:
            common = {names.RUN_OUTCOME: outcome, names.CONNECTOR: self.facts.connector}
            self.telemetry.pipeline.runs.add(1, self.clean(common))

    def begin_turn(self, number: int) -> None:
        if self._turn is not None and self._turn_number == number:
            return
        self._end_turn(failed=False)
        self._turn_number, self._turn_start = number, perf_counter()
        self._call = self._about = None
        told = self.clean({names.RUN_ID: self.facts.run_id, names.TURN: number})
        self._turn = self._start(f"{names.TURN_SPAN} {number}", SpanKind.INTERNAL, told, self.span)

    def end_turn(self, findings: Sequence[EvaluatorFinding], metadata: Mapping[str, Any] | None) -> None:
        kept = ids_kept(metadata or {})
        if kept is not None and self._is_about(kept):
            self._about = kept
        elif self._call is not None:
            self._about = self._call.ids
        self.results(findings)
        self._end_turn(failed=False)

    def _is_about(self, ids: SpanIds) -> bool:
        """Whether results may be told of a span: an agent cannot put its results on somebody else's."""
        held_in = self.facts.held_in
        then = None if held_in is None else execution_ids(held_in).trace_id
        return self.facts.recorded or ids.trace_id in (ids_of(self.span).trace_id, then)

    def _end_turn(self, failed: bool) -> None:
        if self._turn is None:
            return
        if failed:
            self._turn.set_status(StatusCode.ERROR)
        common = self.clean({names.CONNECTOR: self.facts.connector})
        self.telemetry.pipeline.turn_duration.record(perf_counter() - self._turn_start, common)
        # What is found after the last turn is still about the agent's last answer.
        self._about = self._about or ids_of(self._turn)
        turn, self._turn = self._turn, None
        self.telemetry.pipeline.end(turn)

    def results(self, findings: Sequence[EvaluatorFinding], *, at_the_end: bool = False) -> None:
        """One event for each finding, on the span it is about."""
        about = self._about or ids_of(self._turn or self.span)
        for finding in findings:
            told = evaluation_attributes(finding, explained=self.telemetry.explanations)
            told |= {names.RUN_ID: self.facts.run_id, names.AT_THE_END: at_the_end or None}
            self.telemetry.emit(names.EVALUATION_RESULT, about, self.clean(told))
            common = {names.EVALUATOR_TYPE: finding.type, names.SCORE_LABEL: finding.word}
            self.telemetry.pipeline.evaluations.add(1, self.clean(common))

    def agent_call(self, connector_type: str, address: str, new_messages: Sequence[Message]) -> AgentCall:
        common = self.clean(
            {
                names.OPERATION: names.AGENT_SPAN,
                names.AGENT_NAME: self.facts.connector,
                names.CONNECTOR_TYPE: connector_type,
            }
        )
        told = {**common, **self.clean(_server(address))}
        span = self._start(f"{names.AGENT_SPAN} {self._label}", SpanKind.CLIENT, told)
        self._call = AgentCall(self.telemetry, span, common, new_messages)
        return self._call

    def agent_headers(self, headers: Mapping[str, str]) -> None:
        if self._call is not None and innermost.get() is self._call.span:
            self._call.continued(ids_in(headers))

    def traceparent(self) -> str:
        return ids_of(self._parent()).header()

    def evaluator(self, evaluator_type: str, name: str) -> EvaluatorCall:
        common = self.clean({names.EVALUATOR_TYPE: evaluator_type})
        told = {**common, **self.clean({names.EVALUATION_NAME: name, names.RUN_ID: self.facts.run_id})}
        title = self.clean.text(f"{names.EVALUATOR_SPAN} {name}", 200)
        return EvaluatorCall(self.telemetry, self._start(title, SpanKind.INTERNAL, told), common)

    async def model_call(
        self,
        work: Awaitable[T],
        role: str,
        provider: str,
        model: str,
        messages: Sequence[Message] | None = None,
    ) -> T:
        operation = names.EMBEDDINGS if messages is None else names.CHAT
        common = self.clean(
            {names.OPERATION: operation, names.PROVIDER: provider, names.REQUEST_MODEL: model}
        )
        told = {**common, names.MODEL_ROLE: role}
        span = self._start(self.clean.text(f"{operation} {model}", 200), SpanKind.CLIENT, told)
        call = SpanScope(self.telemetry, span)
        try:
            with call:
                answer = await work
                self._model_answered(call, answer, common, messages)
            return answer
        finally:
            extra = {names.ERROR_TYPE: call.error_type} if call.error_type else {}
            self.telemetry.pipeline.operation_duration.record(call.seconds, {**common, **extra})

    def _model_answered(
        self, call: SpanScope, answer: Any, common: Attributes, messages: Sequence[Message] | None
    ) -> None:
        # Of embeddings it is a pair: the vectors, and what they used.
        usage: Any = answer[1] if messages is None else answer.usage
        told = {
            names.INPUT_TOKENS: getattr(usage, "input_tokens", None),
            names.OUTPUT_TOKENS: getattr(usage, "output_tokens", None),
        }
        call.set(told)
        self.telemetry.tokens(usage, common)
        if messages is None:
            return
        if answer.finish:
            call.span.set_attribute(names.FINISH_REASONS, [self.clean.text(str(answer.finish), 100)])
        self.telemetry.content(call.span, messages, [Message(role="assistant", content=answer.text)], common)

    def _parent(self) -> otel.Span:
        return innermost.get() or self._turn or self.span

    def _start(
        self, name: str, kind: SpanKind, attributes: Attributes, parent: otel.Span | None = None
    ) -> otel.Span:
        above = otel.set_span_in_context(parent or self._parent(), otel_context.Context())
        return self.telemetry.pipeline.tracer.start_span(name, above, kind, attributes)


def _server(address: str) -> dict[str, object]:
    try:
        parts = urlsplit(address)
        return {names.SERVER_ADDRESS: parts.hostname, names.SERVER_PORT: parts.port}
    except ValueError:
        return {}
