"""Threads of messages: what calls of a model have in common, and what each of them added."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..base.json_text import json_text
from ..messages import Message
from .span_messages import Exchange, Key, ToolRun, key_of


@dataclass(slots=True)
class Said:
    """A message of a thread and the moment of it, where that is known."""

    message: Message
    key: Key
    at: int | None = None
    exchange: Exchange | None = None


@dataclass(slots=True)
class Thread:
    said: list[Said] = field(default_factory=list[Said])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])

    @property
    def keys(self) -> list[Key]:
        return [one.key for one in self.said]

    def add(self, exchange: Exchange, known: int) -> None:
        """Add what an exchange says beyond the first so many messages of its inputs."""
        answers = [place for place, one in enumerate(exchange.inputs) if one.role == "assistant"]
        for place, message in enumerate(exchange.inputs[known:], known):
            # What was said before an answer in the history was said at a moment nobody knows.
            at = exchange.span.start if not answers or place > answers[-1] else None
            self.said.append(Said(message, key_of(message), at))
        for message in exchange.outputs:
            self.said.append(Said(message, key_of(message), exchange.span.end, exchange))
        self.exchanges.append(exchange)


def continued(thread: Sequence[Key], keys: Sequence[Key]) -> int:
    """How many of a call's messages a thread ends with: all of the thread, or the part still sent."""
    if list(keys[: len(thread)]) == list(thread):
        return len(thread)
    longest = min(len(thread), len(keys))
    for size in range(longest, 0, -1):
        # A window that begins in the middle of the history.
        if keys[size - 1] == thread[-1] and list(thread[-size:]) == list(keys[:size]):
            return size
    return 0


def common(thread: Sequence[Key], keys: Sequence[Key]) -> int:
    pairs = zip(thread, keys, strict=False)
    return next(
        (place for place, (one, other) in enumerate(pairs) if one != other), min(len(thread), len(keys))
    )


def calls_of(thread: Thread, said: Sequence[Said]) -> list[Said]:
    """The tool calls of another thread and their results, without what was said there."""
    shown = {id(one) for one in said}
    known = {call.id for one in said for call in one.message.tool_calls or () if call.id}
    others: list[Said] = []
    for one in thread.said:
        message = one.message
        calls = [call for call in message.tool_calls or () if not call.id or call.id not in known]
        if id(one) in shown or one.at is None:
            continue
        if calls:
            alone = Message(role="assistant", content=None, tool_calls=calls, name=message.name)
            others.append(Said(alone, key_of(alone), one.at))
        elif message.role == "tool":
            others.append(Said(message, one.key, one.at))
    return others


def insert_all(said: list[Said], others: Iterable[Said]) -> None:
    for one in others:
        insert(said, one)


def insert(said: list[Said], one: Said) -> None:
    """At its moment, and never before the first question."""
    at = one.at or 0
    before = [place for place, other in enumerate(said) if other.at is None or other.at <= at]
    first = next((place for place, other in enumerate(said) if other.message.role == "user"), -1)
    said.insert(max(before[-1] if before else -1, first) + 1, one)


def add_result(said: list[Said], run: ToolRun, call_id: str) -> None:
    """A result that no later call of the model repeated."""
    if any(one.message.tool_call_id == call_id for one in said):
        return
    place = next(
        place
        for place, one in enumerate(said)
        if any(call.id == call_id for call in one.message.tool_calls or ())
    )
    answer = run.answer(call_id)
    said.insert(place + 1, Said(answer, key_of(answer), run.span.end))


def traces_of_questions(main: Thread) -> dict[int, str]:
    """In which trace each question was asked: that of the next answer."""
    traces: dict[int, str] = {}
    waiting: list[Said] = []
    for one in main.said:
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
