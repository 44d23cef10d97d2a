"""Threads of messages: what calls of a model have in common, and what each of them added."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..messages import Message
from .span_messages import Exchange, Key, ToolRun, key_of

# Within a second or two. A conversation of the largest size whose calls all repeat its history takes half.
MOST_STEPS = 2_000_000


@dataclass(slots=True)
class ThreadMessage:
    """A message of a thread and the moment of it, where that is known."""

    message: Message
    key: Key
    at: int | None = None
    exchange: Exchange | None = None


@dataclass(slots=True)
class Thread:
    messages: list[ThreadMessage] = field(default_factory=list[ThreadMessage])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    keys: list[Key] = field(default_factory=list[Key])

    def add(self, exchange: Exchange, known: int) -> list[ThreadMessage]:
        """Add what an exchange says beyond the first so many messages of its inputs."""
        answers = [place for place, one in enumerate(exchange.inputs) if one.role == "assistant"]
        new: list[ThreadMessage] = []
        for place, message in enumerate(exchange.inputs[known:], known):
            # What was said before an answer in the history was said at a moment nobody knows.
            at = exchange.span.start if not answers or place > answers[-1] else None
            new.append(ThreadMessage(message, exchange.keys[place], at))
        end = exchange.span.end
        new += [ThreadMessage(message, key_of(message), end, exchange) for message in exchange.outputs]
        self.exchanges.append(exchange)
        self.messages += new
        self.keys += [one.key for one in new]
        return new


class Work:
    """What putting a conversation together may take: spans can be made so that comparing them has no end."""

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        self._left = most_steps

    @property
    def is_over(self) -> bool:
        return self._left < 0

    def spend(self, steps: int) -> bool:
        """Take so many steps; false once there were too many, and nothing is compared any more."""
        self._left -= steps
        return self._left >= 0


class Threads:
    """The threads of a conversation. Those that a call can continue are found by their ends.

    ``nested`` tells threads inside a tool from those in which the user is answered.
    """

    def __init__(self, work: Work, *, has_id: bool) -> None:
        self.listed: list[Thread] = []
        self._work = work
        self._has_id = has_id
        self._places: dict[int, int] = {}
        self._nested: dict[bool, list[Thread]] = {False: [], True: []}
        self._by_first: dict[tuple[bool, Key], list[Thread]] = defaultdict(list)
        self._by_last: dict[tuple[bool, Key], dict[int, Thread]] = defaultdict(dict)
        self._by_call: dict[tuple[bool, str], Thread] = {}

    def place(self, exchange: Exchange, *, nested: bool) -> None:
        """Put an exchange into the thread that it continues."""
        known, best = self._continued(exchange, nested)
        if best is not None:
            self._extend(best, exchange, known, nested)
        elif (stateful := self._stateful(exchange, nested)) is not None:
            self._extend(stateful, exchange, 0, nested)
        else:
            self._branch(exchange, nested)

    def repeats(self, keys: Sequence[Key]) -> bool:
        """Whether a thread begins with all of these messages."""
        return any(self._common(one, keys) == len(keys) for one in self.listed)

    def _continued(self, exchange: Exchange, nested: bool) -> tuple[int, Thread | None]:
        keys, best = exchange.keys, (0, 0)
        for key in set(keys):
            for place, thread in self._by_last.get((nested, key), {}).items():
                best = max(best, (continued(thread.keys, keys, self._work), -place))
        return best[0], self.listed[-best[1]] if best[0] else None

    def _stateful(self, exchange: Exchange, nested: bool) -> Thread | None:
        """The thread of a call without history: its provider keeps it, and only what is new is sent."""
        if any(message.role == "assistant" for message in exchange.inputs):
            return None
        answered = {message.tool_call_id for message in exchange.inputs if message.tool_call_id}
        if answered:
            asking = [self._by_call[nested, one] for one in answered if (nested, one) in self._by_call]
            return max(asking, key=lambda one: self._places[id(one)], default=None)
        if not self._has_id:
            return None
        trace = exchange.span.trace_id
        for thread in reversed(self._nested[nested]):
            if not self._work.spend(1):
                break
            if thread.exchanges[-1].span.trace_id != trace:
                return thread
        return None

    def _branch(self, exchange: Exchange, nested: bool) -> None:
        """A thread of its own, with what it has in common with another one."""
        keys, thread = exchange.keys, Thread()
        alike = self._by_first.get((nested, keys[0]), []) if keys else []
        origin = max(alike, key=lambda one: self._common(one, keys), default=None)
        known = self._common(origin, keys) if origin is not None else 0
        if origin is not None and known and self._work.spend(len(origin.exchanges)):
            thread.messages, thread.keys = origin.messages[:known], origin.keys[:known]
            used = {id(one.exchange) for one in thread.messages if one.exchange is not None}
            thread.exchanges = [one for one in origin.exchanges if id(one) in used]
        self._places[id(thread)] = len(self.listed)
        self.listed.append(thread)
        self._nested[nested].append(thread)
        self._know_calls(thread, thread.messages, nested)
        self._extend(thread, exchange, len(thread.messages), nested)
        if thread.keys:
            self._by_first[nested, thread.keys[0]].append(thread)

    def _extend(self, thread: Thread, exchange: Exchange, known: int, nested: bool) -> None:
        place = self._places[id(thread)]
        if thread.keys:
            self._by_last[nested, thread.keys[-1]].pop(place, None)
        self._know_calls(thread, thread.add(exchange, known), nested)
        if thread.keys:
            self._by_last[nested, thread.keys[-1]][place] = thread

    def _know_calls(self, thread: Thread, messages: Iterable[ThreadMessage], nested: bool) -> None:
        for call_id in (call.id for one in messages for call in one.message.tool_calls or () if call.id):
            latest = self._by_call.get((nested, call_id))
            if latest is None or self._places[id(latest)] < self._places[id(thread)]:
                self._by_call[nested, call_id] = thread

    def _common(self, thread: Thread, keys: Sequence[Key]) -> int:
        size = common(thread.keys, keys)
        return size if self._work.spend(size + 4) else 0


def continued(thread: Sequence[Key], keys: Sequence[Key], work: Work) -> int:
    """How many of a call's messages a thread ends with: all of the thread, or the part still sent."""
    longest = min(len(thread), len(keys))
    if not work.spend(longest):
        return 0
    if keys[: len(thread)] == thread:
        return len(thread)
    for size in range(longest, 0, -1):
        # A window that begins in the middle of the history.
        if keys[size - 1] == thread[-1] and work.spend(size) and thread[-size:] == keys[:size]:
            return size
    return 0


def common(thread: Sequence[Key], keys: Sequence[Key]) -> int:
    pairs = zip(thread, keys, strict=False)
    return next(
        (place for place, (one, other) in enumerate(pairs) if one != other), min(len(thread), len(keys))
    )


def calls_of(thread: Thread, messages: Sequence[ThreadMessage]) -> list[ThreadMessage]:
    """The tool calls of another thread and their results, without what was said there."""
    shown = {id(one) for one in messages}
    known = {call.id for one in messages for call in one.message.tool_calls or () if call.id}
    others: list[ThreadMessage] = []
    for one in thread.messages:
        message = one.message
        calls = [call for call in message.tool_calls or () if not call.id or call.id not in known]
        if id(one) in shown or one.at is None:
            continue
        if calls:
            alone = Message(role="assistant", content=None, tool_calls=calls, name=message.name)
            others.append(ThreadMessage(alone, key_of(alone), one.at))
        elif message.role == "tool":
            others.append(ThreadMessage(message, one.key, one.at))
    return others


def insert_all(messages: list[ThreadMessage], others: Iterable[ThreadMessage]) -> None:
    """Each at its moment, and never before the first question."""
    first = next((place for place, one in enumerate(messages) if one.message.role == "user"), -1)
    for one in others:
        at = one.at or 0
        place = next((n for n in range(len(messages) - 1, -1, -1) if (messages[n].at or 0) <= at), -1)
        messages.insert(max(place, first) + 1, one)


def add_results(messages: list[ThreadMessage], runs: Iterable[ToolRun]) -> list[ThreadMessage]:
    """What was said, with the results that no later call of the model repeated, each after its call."""
    answered = {one.message.tool_call_id for one in messages if one.message.tool_call_id}
    results: dict[str, ThreadMessage] = {}
    for run in runs:
        if run.call_id not in answered and run.call_id not in results:
            answer = run.answer(run.call_id)
            results[run.call_id] = ThreadMessage(answer, key_of(answer), run.span.end)
    whole: list[ThreadMessage] = []
    for one in messages:
        whole.append(one)
        calls = (call.id for call in one.message.tool_calls or ())
        whole += [results.pop(call_id) for call_id in calls if call_id in results]
    return whole


def traces_of_questions(main: Thread) -> dict[int, str]:
    """In which trace each question was asked: that of the next answer."""
    traces: dict[int, str] = {}
    waiting: list[ThreadMessage] = []
    for one in main.messages:
        if one.exchange is not None:
            traces |= {id(question): one.exchange.span.trace_id for question in waiting}
            waiting = []
        elif one.message.role == "user":
            waiting.append(one)
    return traces


def head_of(first: Exchange) -> str | None:
    """The history that a call began with, up to the last answer in it."""
    answers = [place for place, one in enumerate(first.inputs) if one.role == "assistant"]
    return hash_of(first.keys[: answers[-1] + 1]) if answers else None


def hash_of(keys: Sequence[Key]) -> str:
    return hashlib.sha256(json_text(keys).encode()).hexdigest()[:40]
