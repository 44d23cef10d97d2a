"""The simulated user: a language model in the part of a persona.

It sees the conversation from its own side: what it said as its own words, what the agent said as the
other's. Tool traffic is hidden from it, and what it knows and wants is hidden from everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ..evaluators.contract import Answer
from ..evaluators.model_replies import ModelReply
from ..messages import Message, TokensUsage, text_of
from .preparation import PreparedScenario

Shape = TypeVar("Shape", bound=BaseModel)

_TRIES = 3
_SIDES = {"user": "assistant", "assistant": "user"}
_OPENING = "(You are connected to the agent. You speak first.)"
_SILENCE = "(The agent said nothing. Go on.)"


class SimulatorModel(Protocol):
    """What the simulation needs of ``llm``."""

    async def answer(
        self,
        messages: Sequence[Message],
        schema: type[Shape],
        *,
        model: str | None = None,
        role: str = "persona",
    ) -> Answer[Shape]: ...


class SimulatorError(Exception):
    """The simulated user did not play its part."""


class UserTurn(ModelReply):
    """What the simulated user does next."""

    model_config = ConfigDict(extra="ignore")

    message: str = Field("", description="The next thing you say; empty when you stop")
    stop: bool = Field(False, description="True when your goal is reached or hopeless and you leave now")
    stop_reason: str = Field("", description="Why you leave, when you do")


class SimulatedUser:
    """Writes the user's messages, one at a time. ``left_because`` is set once it has left."""

    def __init__(self, prepared: PreparedScenario, llm: SimulatorModel) -> None:
        self._prompt = Message(role="system", content=user_prompt(prepared))
        self._llm = llm
        self.usage = TokensUsage()
        self.left_because: str | None = None

    async def speak(self, messages: Sequence[Message]) -> str | None:
        """The next user message, or nothing when the user leaves."""
        prompt = [self._prompt, *flipped(messages)]
        last = next((text_of(message) for message in reversed(messages) if message.role == "user"), "")
        problem = ""
        for _ in range(_TRIES):
            answer = await self._answer(prompt)
            if answer.stop:
                self.left_because = answer.stop_reason.strip()
                return None
            text = answer.message.strip()
            problem = _problem(text, last)
            if not problem:
                return text
            prompt += [Message(role="assistant", content=text or "(nothing)"), _again(problem)]
        raise SimulatorError(f"the simulated user {problem}, {_TRIES} times in a row")

    async def _answer(self, prompt: list[Message]) -> UserTurn:
        try:
            answer = await self._llm.answer(prompt, UserTurn, role="persona")
        except Exception as error:
            raise SimulatorError(str(error) or type(error).__name__) from error
        self.usage += answer.usage
        return answer.value


def _problem(text: str, last: str) -> str:
    if not text:
        return "said nothing"
    return "repeated its last message" if _bare(text) == _bare(last) else ""


def _bare(text: str) -> str:
    return " ".join(text.casefold().split())


def _again(problem: str) -> Message:
    reproach = f"You {problem.replace('its', 'your')}."
    hint = "Say something new that moves things on, or stop if there is no point."
    return Message(role="user", content=f"({reproach} {hint})")


def flipped(messages: Sequence[Message]) -> list[Message]:
    """The conversation from the user's side. Tool calls, tool results and system messages are not seen.

    The sides alternate and the other one begins and ends: many models accept nothing else.
    """
    sides: list[tuple[str, str]] = []
    for message in messages:
        side, text = _SIDES.get(message.role), text_of(message)
        if side is None or not text.strip():
            continue
        if not sides and side == "assistant":
            sides.append(("user", _OPENING))
        if sides and sides[-1][0] == side:
            sides[-1] = (side, f"{sides[-1][1]}\n\n{text}")
        else:
            sides.append((side, text))
    if not sides or sides[-1][0] == "assistant":
        sides.append(("user", _SILENCE if sides else _OPENING))
    return [Message(role=side, content=text) for side, text in sides]


def user_prompt(prepared: PreparedScenario) -> str:
    """What the simulated user is told about itself."""
    persona = prepared.persona
    parts = [
        "You play a person who talks to an AI agent. Stay in this role: write only what this person would "
        "type, in their words and their language. You are not an assistant, you do not help, and you never "
        "mention that this is a test."
    ]
    if persona is not None:
        parts.append(f"You are {persona.name}.{f' {persona.description}' if persona.description else ''}")
        if persona.system_prompt:
            parts.append(persona.system_prompt)
        if persona.wants:
            parts.append(f"What you want: {persona.wants}")
        if persona.knows:
            parts.append(f"What you know, and tell only when it comes up: {persona.knows}")
    if prepared.instructions:
        parts.append(f"The situation: {prepared.instructions}")
    parts.append(
        "Say one thing at a time, briefly. Do not repeat yourself. When you have what you want, or it is "
        "clear that you will not get it, stop instead of exchanging goodbyes."
    )
    return "\n\n".join(parts)
