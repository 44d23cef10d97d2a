"""Spans that are open inside a ``with``: calls of the agent, evaluators, calls of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry._logs import LogRecord
from opentelemetry.trace import StatusCode

from . import AgentAnswer, EvaluatorFinding, names
from .attributes import Attributes, Capture, Cleaner, evaluation_attributes
from .trace_context import SpanIds, ids_in

if TYPE_CHECKING:
    from ..messages import Message
    from .export import Pipeline

# The innermost span, for what is called inside it.
innermost: ContextVar[otel.Span | None] = ContextVar("evalstudio_span", default=None)


class Recorder:
    """Makes telemetry of what a project may send, and hands it on."""

    def __init__(
        self, pipeline: Pipeline, clean: Cleaner, capture: Capture, *, explanations: bool = True
    ) -> None:
        self.pipeline = pipeline
        self.clean = clean
        self.capture = capture
        self.explanations = explanations

    def tokens(self, usage: Any, common: Attributes) -> None:
        for direction in ("input", "output"):
            count: object = getattr(usage, f"{direction}_tokens", None)
            if isinstance(count, int) and 0 < count < 2**63:
                self.pipeline.token_usage.record(count, {**common, names.TOKEN_TYPE: direction})

    def content(
        self, span: otel.Span, sent: Sequence[Message], answered: Sequence[Message], common: Attributes
    ) -> None:
        """The texts of a call, where the environment asks for them."""
        capture = self.capture
        if not (capture.on_spans or capture.in_events):
            return
        told: Attributes = {
            names.INPUT_MESSAGES: self.clean.messages(sent),
            names.OUTPUT_MESSAGES: self.clean.messages(answered),
        }
        if capture.on_spans:
            span.set_attributes(told)
        if capture.in_events:
            self.emit(names.OPERATION_DETAILS, ids_of(span), {**common, **told})

    def emit(self, name: str, about: SpanIds, attributes: Attributes) -> None:
        record = LogRecord(timestamp=time_ns(), event_name=name, context=under(about), attributes=attributes)
        self.pipeline.emit(record)


class SpanScope:
    """A span that is open inside a ``with``, and the parent of what is called there."""

    def __init__(self, recorder: Recorder, span: otel.Span, *, shared: bool = False) -> None:
        self.recorder = recorder
        self.span = span
        self.start = perf_counter()
        self._shared = shared
        self._token: Token[otel.Span | None] | None = None
        self._attached: Token[otel_context.Context] | None = None
        self.error_type: str | None = None

    @property
    def seconds(self) -> float:
        return perf_counter() - self.start

    def set(self, values: Mapping[str, object]) -> None:
        self.span.set_attributes(self.recorder.clean(values))

    def fail(self, error_type: str, description: str) -> None:
        self.error_type = error_type
        self.set({names.ERROR_TYPE: error_type})
        self.span.set_status(StatusCode.ERROR, self.recorder.clean.text(description, 500))

    def __enter__(self) -> SpanScope:
        self._token = innermost.set(self.span)
        # An agent in this process that has telemetry of its own continues the trace.
        in_context = otel.set_span_in_context(self.span)
        self._attached = otel_context.attach(in_context) if self._shared else None
        return self

    def __exit__(self, kind: Any = None, error: BaseException | None = None, *_: Any) -> None:
        if self._token is not None:
            innermost.reset(self._token)
        if self._attached is not None:
            otel_context.detach(self._attached)
        if error is not None:
            cause: object = getattr(error, "cause", None) or getattr(error, "status", None)
            self.fail(str(cause or type(error).__name__), str(error) or type(error).__name__)
        self.over()
        self.recorder.pipeline.end(self.span)

    def over(self) -> None:
        """Called when it is over, before the span ends."""

    def answered(self, answer: AgentAnswer) -> None:
        raise NotImplementedError

    def found(self, findings: Sequence[EvaluatorFinding]) -> None:
        raise NotImplementedError


class AgentCall(SpanScope):
    """A call of the agent. Results are told of the agent's own span, where it continues our trace."""

    def __init__(
        self, recorder: Recorder, span: otel.Span, common: Attributes, sent: Sequence[Message]
    ) -> None:
        super().__init__(recorder, span, shared=True)
        self._common = common
        self._sent = sent
        self.ids = ids_of(span)
        self._linked = False

    def continued(self, ids: SpanIds | None) -> None:
        """The agent says which span is its own. In a trace that is not ours it is only linked to."""
        if ids is None:
            return
        if ids.trace_id == self.ids.trace_id:
            self.ids = ids
        elif not self._linked:
            self._linked = True
            self.span.add_link(span_context(ids))

    def answered(self, answer: AgentAnswer) -> None:
        self.continued(ids_in(answer.metadata))
        answer.metadata = {**answer.metadata, "traceparent": self.ids.header()}
        usage = answer.tokens_usage
        self.set(
            {
                names.CONVERSATION_ID: answer.thread_id,
                names.RESPONSE_ID: answer.metadata.get("responseId"),
                names.RESPONSE_MODEL: answer.metadata.get("model"),
                names.LATENCY: answer.latency_ms,
                names.FIRST_TOKEN: answer.first_token_ms,
                names.AGENT_ATTEMPTS: len(answer.attempts) or 1,
                names.INPUT_TOKENS: getattr(usage, "input_tokens", None),
                names.OUTPUT_TOKENS: getattr(usage, "output_tokens", None),
            }
        )
        self.recorder.tokens(usage, self._common)
        self.recorder.content(self.span, self._sent, answer.messages, self._common)

    def over(self) -> None:
        extra = {names.ERROR_TYPE: self.error_type} if self.error_type else {}
        self.recorder.pipeline.operation_duration.record(self.seconds, {**self._common, **extra})


class EvaluatorCall(SpanScope):
    """An evaluator at work on a turn."""

    def __init__(self, recorder: Recorder, span: otel.Span, common: Attributes) -> None:
        super().__init__(recorder, span)
        self._common = common

    def found(self, findings: Sequence[EvaluatorFinding]) -> None:
        if len(findings) == 1:
            told = evaluation_attributes(findings[0], explained=False)
            self.set({key: told[key] for key in (names.SCORE_VALUE, names.SCORE_LABEL)})
        errored = next((finding for finding in findings if finding.error is not None), None)
        if errored is not None:
            self.fail(f"{errored.fault or 'evaluator'}_error", errored.error or "")

    def over(self) -> None:
        self.recorder.pipeline.evaluator_duration.record(self.seconds, self._common)


def ids_of(span: otel.Span) -> SpanIds:
    known = span.get_span_context()
    return SpanIds(known.trace_id, known.span_id, known.trace_flags.sampled)


def span_context(ids: SpanIds) -> otel.SpanContext:
    flags = otel.TraceFlags(otel.TraceFlags.SAMPLED if ids.sampled else otel.TraceFlags.DEFAULT)
    return otel.SpanContext(ids.trace_id, ids.span_id, is_remote=True, trace_flags=flags)


def under(ids: SpanIds) -> otel_context.Context:
    return otel.set_span_in_context(otel.NonRecordingSpan(span_context(ids)), otel_context.Context())
