"""The turn loop as a stream of events that any caller can drive, store or show live.

One way through: user message, agent, evaluators, decision, next turn. Whoever stops listening ends the
conversation; nothing is left running behind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ..cassettes import CassetteError
from ..connectors.contract import ConnectorError
from ..evaluators.aggregate import (
    Decision,
    EndedBy,
    StopConditions,
    Verdict,
    conclude,
    decide,
    due,
    mark_pending,
)
from ..evaluators.contract import Fault, Invocation, TurnFacts
from ..evaluators.running import Finding, run_turn
from ..messages import Message, TokensUsage, text_of
from .preparation import PreparedScenario, Services
from .results import RunResult, Turn, usage_of
from .simulation import SimulatedUser, SimulatorError


class Reply(Protocol):
    """What an agent answers."""

    @property
    def messages(self) -> list[Message]: ...
    @property
    def latency_ms(self) -> float: ...
    @property
    def tokens_usage(self) -> TokensUsage | None: ...
    @property
    def thread_id(self) -> str | None: ...


class Agent(Protocol):
    """One run's line to one agent."""

    async def setup(self) -> None: ...
    async def invoke(self, messages: list[Message], new_messages: list[Message]) -> Reply: ...
    async def state(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class UserSpoke:
    """A user message is about to go out."""

    turn: int
    message: Message


@dataclass(frozen=True, slots=True)
class AgentAnswered:
    """The agent's new messages are in."""

    turn: int
    invocation: Invocation
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
    """A conversation under way."""

    plan: PreparedScenario
    services: Services
    messages: list[Message]
    script: list[str]
    turns: list[Turn] = field(default_factory=list[Turn])
    count: int = 0
    seen: int = 0
    thread_id: str | None = None
    state: dict[str, Any] | None = None
    user: SimulatedUser | None = None

    @property
    def results(self) -> list[list[Finding]]:
        return [turn.results for turn in self.turns]

    def has_room(self) -> bool:
        """A user message is sent only if its reply fits too."""
        return self.count + 2 <= self.plan.max_messages

    def stop_conditions(self) -> StopConditions:
        blocked: Literal["script", "limit"] | None = None
        if not self.has_room():
            blocked = "limit"
        elif not self.script and self.user is None:
            blocked = "script"
        return StopConditions(script_left=bool(self.script), blocked_by=blocked)

    async def opening(self) -> Message | None:
        """The first user message; none where the seeds wait for the agent."""
        if self.plan.agent_first:
            return None
        first = await self.next_user_message()
        if first is None:
            raise SimulatorError("the simulated user left before saying anything")
        return first

    async def next_user_message(self) -> Message | None:
        """What the user says next; nothing when the user leaves."""
        if self.script:
            text = self.script.pop(0)
        else:
            text = None if self.user is None else await self.user.speak(self.messages)
        return None if text is None else Message(role="user", content=text)

    async def ask(self, agent: Agent) -> Invocation:
        """Have the agent answer what it has not seen yet."""
        reply = await agent.invoke(self.messages, self.messages[self.seen :])
        self.thread_id = reply.thread_id or self.thread_id
        self.messages.extend(reply.messages)
        self.seen = len(self.messages)
        self.count += len([m for m in reply.messages if m.role == "assistant" and text_of(m)])
        return Invocation(reply.latency_ms, reply.messages, reply.tokens_usage)

    def facts(self, invocation: Invocation, turn: int, *, is_final: bool) -> TurnFacts:
        plan = self.plan
        return TurnFacts(
            messages=list(self.messages),
            last_invocation=invocation,
            turn=turn,
            is_final=is_final,
            scenario=plan.scenario,
            persona=plan.persona_info,
            ground_truth=plan.ground_truth,
            context=plan.context,
            criteria=plan.criteria,
            state=self.state,
            invocations=[done.invocation for done in self.turns],
            llm=self.services.llm,
            embedder=self.services.embedder,
        )


async def converse(plan: PreparedScenario, agent: Agent, services: Services) -> AsyncGenerator[Event]:
    """Hold one conversation and tell what happens. The last event is always ``Finished``."""
    conversation = _Conversation(plan, services, list(plan.seeds), list(plan.script))
    if plan.simulated and services.llm is not None:
        conversation.user = SimulatedUser(plan, services.llm)  # pyright: ignore[reportArgumentType]
    fault: tuple[Fault, str] | None = None
    ended_by: EndedBy | None = None
    try:
        await agent.setup()
        spoken = await conversation.opening()
        while True:
            number = len(conversation.turns) + 1
            if spoken is not None:
                conversation.messages.append(spoken)
                conversation.count += 1
                yield UserSpoke(number, spoken)
            invocation = await conversation.ask(agent)
            yield AgentAnswered(number, invocation, conversation.thread_id)
            turn = Turn(number, spoken, invocation)
            decision = await _evaluate(conversation, turn)
            yield TurnEnded(turn, decision)
            spoken = None if decision.over else await conversation.next_user_message()
            if spoken is None:
                break
        # A turn that decided nothing was the last one because the simulated user left.
        ended_by = decision.ended_by or "user"
        conversation.state = await agent.state()
    except ConnectorError as error:
        fault = ("agent", str(error))
    except SimulatorError as error:
        fault = ("simulator", f"Simulator error: {error}")
    except CassetteError as error:
        fault = ("system", str(error))
    yield Finished(await _finish(conversation, ended_by, fault))


async def _evaluate(conversation: _Conversation, turn: Turn) -> Decision:
    """Run what is due after a turn, and decide whether the conversation goes on."""
    stop_conditions, results = conversation.stop_conditions(), conversation.results
    wanted = due(conversation.plan.entries, results)
    conversation.turns.append(turn)
    facts = conversation.facts(turn.invocation, turn.number, is_final=stop_conditions.blocked_by is not None)
    turn.results = await run_turn(wanted, facts)
    mark_pending(turn.results)
    results.append(turn.results)
    return decide(
        conversation.plan.entries, results, stop_conditions, stop_on_failure=conversation.plan.stop_on_failure
    )


async def _finish(
    conversation: _Conversation, ended_by: EndedBy | None, fault: tuple[Fault, str] | None
) -> RunResult:
    last = conversation.turns[-1] if conversation.turns else Turn(0, None)
    facts = conversation.facts(last.invocation, max(last.number, 1), is_final=True)
    wanted = [entry for entry in conversation.plan.entries if entry.gate == "finally"]
    if fault is None and wanted:
        last.results = [*last.results, *await run_turn(wanted, facts, models_after_failure=True)]
    verdict = conclude(conversation.plan.entries, conversation.results, facts)
    if fault is not None:
        verdict = _faulty(verdict, *fault)
        verdict.asserted = any(entry.kind == "assertion" for entry in conversation.plan.entries)
    usage = {
        "evaluation": usage_of(result for turn in conversation.turns for result in turn.results),
        "persona": conversation.user.usage if conversation.user else None,
    }
    return RunResult(
        scenario=conversation.plan.scenario.name,
        verdict=verdict,
        messages=conversation.messages,
        turns=conversation.turns,
        message_count=conversation.count,
        ended_by=ended_by,
        error=fault[1] if fault else _evaluator_error(verdict),
        thread_id=conversation.thread_id,
        state=conversation.state,
        stop_reason=conversation.user.left_because if conversation.user else None,
        usage={role: used for role, used in usage.items() if used and used.total_tokens},
    )


def _faulty(verdict: Verdict, fault: Fault, reason: str) -> Verdict:
    """A conversation that broke off is an error, unless something had already failed beyond repair."""
    failed = [r for r in verdict.evaluator_results if r.kind == "assertion" and r.failed]
    mark_pending(failed)
    broken = next((r for r in failed if not r.pending), None)
    if broken is not None:
        verdict.reason = broken.reason or f"{broken.label} failed"
        return verdict
    verdict.outcome, verdict.fault, verdict.reason, verdict.score = "error", fault, reason, None
    return verdict


def _evaluator_error(verdict: Verdict) -> str | None:
    return verdict.reason if verdict.outcome == "error" else None


async def finished(events: AsyncIterator[Event]) -> RunResult:
    """Drive a conversation to its end."""
    result: RunResult | None = None
    async for event in events:
        if isinstance(event, Finished):
            result = event.result
    assert result is not None
    return result
