"""Scripted stand-ins for a model, for tests that are not about the protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalstudio.evaluators.contract import Answer
from evalstudio.messages import Message, TokensUsage

Replies = list[Any] | Callable[[Sequence[Message]], Any] | None


class ScriptedLlm:
    """Answers judge and persona from functions or lists, and remembers what it was asked."""

    def __init__(self, *, judge: Replies = None, persona: Replies = None) -> None:
        self._replies: dict[str, Any] = {"evaluation": judge, "persona": persona}
        self.asked: dict[str, list[list[Message]]] = {"evaluation": [], "persona": []}

    async def answer(
        self, messages: Sequence[Message], schema: Any, *, model: str | None = None, role: str = "evaluation"
    ) -> Answer[Any]:
        self.asked[role].append(list(messages))
        replies = self._replies[role]
        reply = replies(messages) if callable(replies) else replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        usage = TokensUsage(input_tokens=10, output_tokens=2, total_tokens=12)
        return Answer(schema.model_validate(reply), usage)
