"""A recorded conversation in turns, as a live run would have kept it.

Readers of files, stored runs and production telemetry all end here: they say who said what and when, and
``ConversationBuilder`` makes turns of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.times import milliseconds_between
from ..evaluators.results import Turn
from ..messages import Message, TokensUsage


@dataclass(slots=True)
class RecordedConversation:
    """What was said, in turns, and what came along to judge it by.

    ``id`` names it in its source, ``origin`` says where it was read ("chats.jsonl, line 12").
    ``seeds`` is what was said before the first message of the user, system prompts included.
    ``task_id`` and ``trial`` tell repetitions of one task from different tasks; ``repetition`` is the number
    among them, where somebody counted before. ``error`` is why the agent
    broke off, in the words of the source. ``tools`` are the schemas of the tools the agent had.
    """

    id: str
    turns: list[Turn]
    seeds: list[Message] = field(default_factory=list[Message])
    origin: str = ""
    ground_truth: Any = None
    expected_calls: list[dict[str, Any]] | None = None
    state: dict[str, Any] | None = None
    tags: Sequence[str] = ()
    task_id: str | None = None
    trial: int | None = None
    repetition: int | None = None
    agent: str | None = None
    started: datetime | None = None
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str | None = None
    is_live: bool = False
    """Whether it was held live: its seeds are then words of the scenario, not of the agent."""

    @property
    def is_answered(self) -> bool:
        """Whether the agent said or called something after the last message of the user."""
        return bool(self.turns) and _has_answer(self.turns[-1])


@dataclass(slots=True)
class ConversationBuilder:
    """Puts messages, in the order in which they were said, into turns.

    Messages of the user that follow each other open one turn: nobody answered in between. Times give a
    turn its latency: from the user's last message to the last of the agent.
    """

    seeds: list[Message] = field(default_factory=list[Message])
    turns: list[Turn] = field(default_factory=list[Turn])
    _asked: datetime | None = None

    def add(
        self,
        message: Message,
        *,
        at: datetime | None = None,
        usage: TokensUsage | None = None,
        latency_ms: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        if message.role == "user":
            self._add_question(message, at)
        elif not self.turns:
            self.seeds.append(message)
        else:
            self._add_answer(self.turns[-1], message, at, usage, latency_ms)
            if metadata:
                self.turns[-1].metadata = {**(self.turns[-1].metadata or {}), **metadata}

    def _add_question(self, message: Message, at: datetime | None) -> None:
        self._asked = at
        if self.turns and not _has_answer(self.turns[-1]):
            self.turns[-1].messages.append(message)
        else:
            self.turns.append(Turn(number=len(self.turns) + 1, user_message=message))

    def _add_answer(
        self,
        turn: Turn,
        message: Message,
        at: datetime | None,
        usage: TokensUsage | None,
        latency_ms: float | None,
    ) -> None:
        turn.messages.append(message)
        if usage is not None:
            turn.tokens_usage = usage if turn.tokens_usage is None else turn.tokens_usage + usage
        if latency_ms is not None:
            turn.latency_ms = (turn.latency_ms or 0.0) + latency_ms
        elif (took := milliseconds_between(self._asked, at)) is not None:
            turn.latency_ms = took


def _has_answer(turn: Turn) -> bool:
    return any(message.role == "assistant" for message in turn.messages)
