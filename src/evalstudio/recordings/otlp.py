"""Conversations from OpenTelemetry's spans.

Every call of a model repeats the history, so nothing is concatenated: a call continues the thread whose
messages its history begins with, and only what is new is added. What was said beside the main thread, by an
agent inside a tool or by a classifier before the answer, is not part of the conversation; the tools called
there are, for a call that nobody sees would satisfy every check that forbids one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..messages import Message, text_of
from .conversation import ConversationBuilder, RecordedConversation
from .span_attributes import attributes_of
from .span_messages import (
    Exchange,
    MessageReader,
    error_of,
    exchange_of,
    history_of,
    key_of,
    tool_run_of,
    tools_of,
)
from .spans import Span, traceparent
from .threads import (
    Thread,
    ThreadMessage,
    Threads,
    Work,
    add_results,
    calls_of,
    common,
    hash_of,
    head_of,
    insert_all,
    traces_of_questions,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_REASONS = 3
_MOST_TRACES = 200


@dataclass(slots=True)
class Assembled:
    """A conversation, what can be filtered by, and how it is linked with others that have no id.

    ``tail`` stands for all that was said; ``head`` for the history that its first call began with. A
    conversation whose head is the tail of another one continues it.
    """

    conversation: RecordedConversation
    attributes: dict[str, Any]
    head: str | None = None
    tail: str | None = None


def assemble(
    spans: Iterable[Span], *, identity: str, origin: str = "", missing: Sequence[str] = ()
) -> Assembled:
    """The conversation that these spans tell of; ``missing`` is what is known to have been left out."""
    return _Assembly(list(spans), identity, origin, list(missing)).result()


class _Assembly:
    def __init__(self, spans: list[Span], identity: str, origin: str, missing: list[str]) -> None:
        self.identity, self.origin, self.missing = identity, origin, missing
        self.spans = sorted((one for one in spans if not one.event), key=lambda one: (one.start, one.end))
        self.by_id = {(one.trace_id, one.span_id): one for one in self.spans}
        events: dict[tuple[str, str], list[Span]] = defaultdict(list)
        for one in spans:
            if one.event:
                events[one.trace_id, one.span_id].append(one)
        models = [one for one in self.spans if one.role == "llm"]
        models += [one[0] for key, one in events.items() if key not in self.by_id]
        self.read = MessageReader()
        self.exchanges = [
            exchange_of(one, events.get((one.trace_id, one.span_id), ()), self.read)
            for one in _in_order(models)
        ]
        self.tools = [tool_run_of(one) for one in self.spans if one.role == "tool"]
        self.work = Work()
        self.threads = Threads(self.work, has_id=any(one.conversation_id for one in self.spans))
        self.inside_tool: dict[tuple[str, str], bool] = {}

    def result(self) -> Assembled:
        for exchange in self.exchanges:
            if (exchange.inputs or exchange.outputs) and not self.work.is_over:
                self._place(exchange)
        self._add_histories()
        main = self._main()
        messages = self._with_tools(main)
        conversation = self._conversation(main, messages)
        head = head_of(main.exchanges[0]) if main.exchanges else None
        tail = hash_of(main.keys) if main.messages else None
        return Assembled(conversation, attributes_of(self.spans), head, tail)

    def _place(self, exchange: Exchange) -> None:
        self.threads.place(exchange, nested=self._in_tool(exchange.span))

    def _in_tool(self, span: Span) -> bool:
        """Whether it happened while a tool was run: then somebody else than the user was answered."""
        passed: dict[tuple[str, str], None] = {}
        key, inside = (span.trace_id, span.parent_id), False
        while key not in passed and (parent := self.by_id.get(key)) is not None:
            inside = parent.role == "tool" or self.inside_tool.get(key, False)
            if inside or key in self.inside_tool:
                break
            passed[key] = None
            key = (parent.trace_id, parent.parent_id)
        self.inside_tool |= dict.fromkeys(passed, inside)
        return inside

    def _add_histories(self) -> None:
        """What only the span of a whole run of the agent tells: a call that failed has no messages itself."""
        for span in sorted((one for one in self.spans if one.role == "agent"), key=lambda one: one.end):
            history = history_of(span, self.read)
            if history is None or self.work.is_over:
                continue
            if history.problem and not self.threads.listed:
                self.missing.append(history.problem)
            if self.threads.repeats(history.keys):
                continue
            if span.error is not None or not self.threads.listed:
                self._place(history)

    def _main(self) -> Thread:
        """The thread in which the user was answered."""
        if not self.threads.listed:
            return Thread()
        finals = [_final_text(one) for one in self.spans if one.role == "agent"]

        def rank(thread: Thread) -> tuple[bool, bool, int, int, int]:
            last = text_of(thread.messages[-1].message).strip() if thread.messages else ""
            written = json_text(last)[1:-1]
            shown = bool(last) and any(
                self.work.spend(1 + len(one) // 1000) and (last in one or written in one) for one in finals
            )
            nested = self._in_tool(thread.exchanges[0].span)
            end = thread.exchanges[-1].span.end
            return not nested, shown, len(thread.exchanges), len(thread.messages), end

        return max(self.threads.listed, key=rank)

    def _with_tools(self, main: Thread) -> list[ThreadMessage]:
        """What was said, with the calls and results that the messages of the main thread do not show."""
        messages = list(main.messages)
        for thread in self.threads.listed:
            if thread is not main and self.work.spend(len(messages)):
                insert_all(messages, calls_of(thread, messages))
        calls = [(call.id, call.name) for one in messages for call in one.message.tool_calls or ()]
        unmatched = Counter(name for _, name in calls)
        known = {call_id: name for call_id, name in calls if call_id}
        for run in self.tools:
            if run.call_id in known:
                unmatched[known[run.call_id]] -= 1
        messages = add_results(messages, (run for run in self.tools if run.call_id in known))
        later = [run for run in self.tools if run.call_id not in known]
        others: list[ThreadMessage] = []
        for number, run in enumerate(later, 1):
            if unmatched[run.name] > 0:
                unmatched[run.name] -= 1
                continue
            call_id = run.call_id or f"{run.span.span_id}-{number}"
            call, answer = run.call(call_id), run.answer(call_id)
            others.append(ThreadMessage(call, key_of(call), run.span.start))
            others.append(ThreadMessage(answer, key_of(answer), max(run.span.end, run.span.start)))
        insert_all(messages, others)
        return messages

    def _conversation(self, main: Thread, messages: Sequence[ThreadMessage]) -> RecordedConversation:
        builder = ConversationBuilder()
        for message in _first_system(main):
            builder.add(message)
        usages = self._usages(messages)
        starts, ends = self._bounds(main)
        for place, one in enumerate(messages):
            at = starts.get(id(one), ends.get(id(one), one.at))
            builder.add(
                one.message,
                at=_moment(at) if at else None,
                usage=usages.get(place),
                metadata=None if one.exchange is None else {"traceparent": traceparent(one.exchange.span)},
            )
        started = min((one.start for one in self.spans if one.start), default=0)
        error = self._error()
        reasons = self._reasons()
        if not builder.turns and not reasons and error is None:
            reasons = ["none of its spans carries a message of the user"]
        metadata: dict[str, Any] = {"traces": sorted({one.trace_id for one in self.spans})[:_MOST_TRACES]}
        if reasons:
            metadata["incomplete"] = "; ".join(reasons)
        return RecordedConversation(
            id=self.identity,
            turns=builder.turns,
            seeds=builder.seeds,
            origin=self.origin,
            agent=_agent(self.spans),
            started=_moment(started) if started else None,
            tools=tools_of(one.attributes for one in self.exchanges),
            metadata=metadata,
            error=f"The telemetry is incomplete: {'; '.join(reasons)}" if reasons else error,
        )

    def _usages(self, messages: Sequence[ThreadMessage]) -> dict[int, Any]:
        """What each call used, at the first message that came at its end or later; all calls count."""
        usages: dict[int, Any] = {}
        own: dict[int, int] = {}
        later: list[tuple[int, int]] = []
        last = 0
        for place, one in enumerate(messages):
            own.setdefault(id(one.exchange), place)
            if one.message.role != "user":
                last = place
                if one.at is not None and (not later or one.at > later[-1][0]):
                    later.append((one.at, place))
        for exchange in (one for one in self.exchanges if one.usage is not None):
            after = bisect_left(later, (exchange.span.end, 0))
            place = own.get(id(exchange), later[after][1] if after < len(later) else last)
            if place:
                known = usages.get(place)
                usages[place] = exchange.usage if known is None else exchange.usage + known
        return usages

    def _bounds(self, main: Thread) -> tuple[dict[int, int], dict[int, int]]:
        """When a turn began and ended, where all of a trace is one turn: what the user waited for."""
        spans: dict[str, list[Span]] = defaultdict(list)
        for span in self.spans:
            spans[span.trace_id].append(span)
        asked: dict[str, list[ThreadMessage]] = defaultdict(list)
        answers: dict[str, ThreadMessage] = {}
        trace = main.exchanges[0].span.trace_id if main.exchanges else ""
        following = traces_of_questions(main)
        for one in main.messages:
            if one.exchange is not None:
                trace = one.exchange.span.trace_id
                answers[trace] = one
            elif one.message.role == "user" and one.at is not None:
                asked[following.get(id(one), trace)].append(one)
        alone = [trace for trace, questions in asked.items() if len(questions) == 1]
        starts = {id(asked[trace][0]): min(one.start for one in spans[trace]) for trace in alone}
        ends = {id(answers[one]): max(s.end for s in spans[one]) for one in alone if one in answers}
        return starts, ends

    def _reasons(self) -> list[str]:
        """Why it is not whole."""
        reasons = [*self.missing]
        if self.work.is_over:
            reasons.append("its calls repeat each other in too many ways to be put together")
        reasons += [one.problem for one in self.exchanges if one.problem]
        reasons += [one.missing for one in self.spans if one.missing and one.role in ("llm", "tool")]
        unique = list(dict.fromkeys(reasons))
        more = [f"and {len(unique) - _MOST_REASONS:,} more"] if len(unique) > _MOST_REASONS else []
        return unique[:_MOST_REASONS] + more

    def _error(self) -> str | None:
        """Why the agent broke off: what failed, and nothing above it went on."""
        for span in self.spans:
            parent = self.by_id.get((span.trace_id, span.parent_id))
            if span.error is None or (parent is not None and parent.error is not None):
                continue
            if parent is None and span.role != "tool" and not self._repeated(span):
                return self._cause(span)
        return None

    def _cause(self, span: Span) -> str:
        """What went wrong in the words of the innermost span."""
        inner = [one for one in self.spans if one.error is not None and one.trace_id == span.trace_id]
        return error_of(inner[-1] if inner else span)

    def _repeated(self, span: Span) -> bool:
        """Whether a failed call of a model was made again and answered."""
        if not self.work.spend(len(self.exchanges)):
            return False
        failed = next((one for one in self.exchanges if one.span is span and one.inputs), None)
        if failed is None:
            return False
        later = (one for one in self.exchanges if one.span.start >= span.start and one.outputs)
        return any(common(one.keys, failed.keys) == len(failed.keys) for one in later)


def _in_order(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda one: (one.start, one.end))


def _first_system(main: Thread) -> list[Message]:
    return next((one.system for one in main.exchanges if one.system), list[Message]())


def _final_text(span: Span) -> str:
    values = (
        span.attributes.get(name) for name in ("final_result", "output.value", "gen_ai.output.messages")
    )
    return "\n".join(value if isinstance(value, str) else json_text(value) for value in values if value)


def _moment(nanoseconds: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return None


def _agent(spans: Sequence[Span]) -> str | None:
    names = [one.attributes.get("gen_ai.agent.name") for one in spans]
    names += [one.resource.get("service.name") for one in spans]
    return next((str(name) for name in names if name), None)
