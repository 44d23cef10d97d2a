"""The turn loop as a stream of events that any caller can drive, store or show live.

One way through: user message, agent, evaluators, decision, next turn. Whoever stops listening ends the
conversation; nothing is left running behind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Literal, Protocol

from ..base.lazy_dataclass import dataclass
from ..cassettes import CassetteError
from ..connectors.contract import ConnectorError
from ..connectors.replies import AgentReply
from ..evaluators.aggregate import Decision, StopConditions
from ..evaluators.contract import Fault
from ..evaluators.results import Attempt, EndedBy, Turn
from ..messages import Message
from ..telemetry import begin_turn
from .judging import ConversationJudge, replies_with_text
from .preparation import PreparedScenario, Services
from .results import RunResult
from .simulation import SimulatedUser, SimulatorError


class Agent(Protocol):
    """One run's connection to one agent."""

    async def setup(self) -> None: ...
    async def invoke(self, messages: list[Message], new_messages: list[Message]) -> AgentReply: ...
    async def state(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class UserSpoke:
    """A user message is about to go out."""

    turn: int
    message: Message


@dataclass(frozen=True, slots=True)
class AgentAnswered:
    """The agent's new messages are in."""

    turn: Turn
    thread_id: str | None


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn is complete: evaluated and decided."""

    turn: Turn
    decision: Decision


@dataclass(frozen=True, slots=True)
class Finished:
    """The conversation is over."""

    result: RunResult


Event = UserSpoke | AgentAnswered | TurnEnded | Finished


@dataclass(slots=True)
class _Conversation:
    """A conversation under way: who speaks next, and how much has been said."""

    prepared: PreparedScenario
    judge: ConversationJudge
    script: list[str]
    user: SimulatedUser | None
    count: int = 0
    seen: int = 0
    thread_id: str | None = None

    @property
    def messages(self) -> list[Message]:
        return self.judge.messages

    def fits_another(self) -> bool:
        """A user message is sent only if its reply fits too; a script fits unless a limit is set."""
        if self.script and not self.prepared.limited:
            return True
        return self.count + 2 <= self.prepared.max_messages

    def stop_conditions(self) -> StopConditions:
        blocked: Literal["script", "limit"] | None = None
        if not self.fits_another():
            blocked = "limit"
        elif not self.script and self.user is None:
            blocked = "script"
        return StopConditions(script_left=bool(self.script), blocked_by=blocked)

    async def opening(self) -> Message | None:
        """The first user message; none where the seeds wait for the agent."""
        first = None if self.prepared.agent_first else await self.next_user_message()
        if first is None and not self.prepared.agent_first:
            raise SimulatorError("the simulated user left before saying anything")
        return first

    async def next_user_message(self) -> Message | None:
        """What the user says next; nothing when the user leaves."""
        if self.script:
            text = self.script.pop(0)
        else:
            text = None if self.user is None else await self.user.speak(self.messages)
        return None if text is None else Message.said("user", text)

    async def ask(self, agent: Agent, number: int, user_message: Message | None) -> Turn:
        """Have the agent answer what it has not seen yet."""
        begin_turn(number)
        reply = await agent.invoke(self.messages, self.messages[self.seen :])
        self.thread_id = reply.thread_id or self.thread_id
        self.messages.extend(reply.messages)
        self.seen = len(self.messages)
        self.count += len(replies_with_text(reply.messages))
        return Turn.of(
            number,
            user_message=user_message,
            messages=reply.messages,
            latency_ms=reply.latency_ms,
            tokens_usage=reply.tokens_usage,
            usage_missing=reply.usage_missing,
            first_token_ms=reply.first_token_ms,
            attempts=reply.attempts or None,
            metadata=reply.metadata or None,
            redacted=reply.redacted,
        )


async def converse(prepared: PreparedScenario, agent: Agent, services: Services) -> AsyncGenerator[Event]:
    """Hold one conversation and tell what happens. The last event is always ``Finished``."""
    judge = ConversationJudge(prepared, services, list(prepared.seeds))
    user = None
    if prepared.simulated and services.llm is not None:
        user = SimulatedUser(prepared, services.llm)  # pyright: ignore[reportArgumentType]
    conversation = _Conversation(prepared, judge, list(prepared.script), user)
    fault: tuple[Fault, str] | None = None
    traceback: str | None = None
    ended_by: EndedBy | None = None
    failed_attempts: list[Attempt] = []
    interrupted = False
    try:
        await agent.setup()
        message = await conversation.opening()
        while True:
            number = len(judge.turns) + 1
            if message is not None:
                conversation.messages.append(message)
                conversation.count += 1
                yield UserSpoke(number, message)
            turn = await conversation.ask(agent, number, message)
            yield AgentAnswered(turn, conversation.thread_id)
            decision = await judge.judge(turn, conversation.stop_conditions())
            yield TurnEnded(turn, decision)
            message = None if decision.over else await conversation.next_user_message()
            if message is None:
                break
        # A turn that decided nothing was the last one because the simulated user left.
        ended_by = decision.ended_by or "user"
        judge.state = await agent.state()
        if leaked := getattr(agent, "state_redacted", ()):
            turn.redacted = [*(turn.redacted or ()), *leaked]
    except ConnectorError as error:
        fault, traceback = ("system" if error.interrupted else "agent", str(error)), error.traceback
        failed_attempts, interrupted = error.attempts, error.interrupted
    except SimulatorError as error:
        fault = ("simulator", f"Simulator error: {error}")
    except CassetteError as error:
        fault = ("system", str(error))
    result = await judge.result(
        ended_by,
        fault,
        traceback=traceback,
        message_count=conversation.count,
        thread_id=conversation.thread_id,
        stop_reason=user.left_because if user else None,
        simulator_usage=user.usage if user else None,
    )
    result.failed_attempts = failed_attempts
    result.interrupted = interrupted
    result.hook_attempts = getattr(agent, "hook_attempts", {})
    yield Finished(result)


async def finished(events: AsyncIterator[Event]) -> RunResult:
    """Drive a conversation to its end."""
    *_, last = [event async for event in events]
    assert isinstance(last, Finished)
    return last.result
