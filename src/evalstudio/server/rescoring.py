"""Scoring a kept conversation again with the evaluators its scenario has today.

The conversation is held once more with both sides played back: nobody is called but the evaluators.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from ..conversation.definitions import Persona, Scenario
from ..conversation.loop import Finished, converse
from ..conversation.preparation import PreparedScenario, prepare
from ..conversation.results import RunResult
from ..evaluators.contract import Invocation
from ..messages import Message, TokensUsage
from ..project.entities import Run, RunVerdict
from ..storage.errors import NotFound
from .errors import ApiError
from .requests import Studio
from .shapes.runs import Rescored, RunOutput

_MOST_MESSAGES = 1_000_000


class Playback:
    """An agent that says what it said, turn by turn."""

    def __init__(self, replies: list[Invocation], thread_id: str | None) -> None:
        self._replies = replies
        self._thread_id = thread_id

    async def setup(self) -> None:
        pass

    async def invoke(self, messages: list[Message], new_messages: list[Message]) -> Any:
        reply = self._replies.pop(0)
        return _Reply(reply.messages, reply.latency_ms, reply.tokens_usage, self._thread_id)

    async def state(self) -> dict[str, Any] | None:
        return None


class _Reply:
    def __init__(
        self,
        messages: list[Message],
        latency_ms: float,
        tokens_usage: TokensUsage | None,
        thread_id: str | None,
    ) -> None:
        self.messages, self.latency_ms = messages, latency_ms
        self.tokens_usage, self.thread_id = tokens_usage, thread_id


async def rescore(studio: Studio, run_id: str) -> Rescored:
    run = await studio.store.run(run_id)
    if run.result is None:
        raise ApiError(409, f"Only a finished run can be scored again; this one is {run.status}.")
    said, replies = played_back(run)
    if not replies:
        raise ApiError(409, "There is nothing to score: the agent never answered in this run.")
    plan = await _plan(studio, run)
    held = replace(plan, script=said, simulated=False, max_messages=_MOST_MESSAGES)
    result = await _hold(studio, held, Playback(replies, run.thread_id))
    verdict = RunVerdict(
        success=result.passed,
        outcome=result.outcome,
        fault=result.fault,
        score=result.score,
        overall_score=result.overall_score,
        reason=result.reason,
        asserted=result.verdict.asserted,
    )
    return Rescored.model_construct(
        result=verdict,
        output=cast(RunOutput, result.output()),
        changed=verdict.outcome != run.result.outcome,
    )


async def _hold(studio: Studio, plan: PreparedScenario, agent: Playback) -> RunResult:
    async for event in converse(plan, agent, studio.workspace.services()):
        if isinstance(event, Finished):
            return event.result
    raise AssertionError("a conversation always finishes")


async def _plan(studio: Studio, run: Run) -> PreparedScenario:
    """Today's scenario if there still is one, else the one of then."""
    then = await studio.store.snapshots(run.id)
    scenario: Scenario = Scenario.model_validate(dict(then["scenario"] or {}))
    seeds = scenario.messages
    if run.scenario_id is not None:
        with suppress(NotFound):
            scenario = await studio.store.get("scenario", run.scenario_id)
    persona = Persona.model_validate(dict(then["persona"])) if then["persona"] else None
    plan = prepare(
        scenario.model_copy(update={"messages": seeds}),
        studio.workspace.registry,
        case=run.case,
        persona=persona,
        has_model=studio.workspace.has_model,
    )
    return replace(plan, seeds=_seeds(run))


def _seeds(run: Run) -> list[Message]:
    return run.messages[: _count(run, 0)]


def _count(run: Run, number: int) -> int:
    """How many messages a turn holds; turn 0 is what was said before the first."""
    found = next((turn for turn in run.turns if turn.turn == number), None)
    return int((found.model_extra or {}).get("messageCount", 0)) if found else 0


def played_back(run: Run) -> tuple[list[str], list[Invocation]]:
    """What the user said and what the agent replied, turn by turn; a turn that broke off is left out."""
    said: list[str] = []
    replies: list[Invocation] = []
    place = _count(run, 0)
    for turn in run.turns:
        if turn.turn == 0:
            continue
        messages = run.messages[place : place + _count(run, turn.turn)]
        place += len(messages)
        first = bool(messages) and messages[0].role == "user"
        answer = messages[1:] if first else messages
        if not answer:
            break
        if first:
            said.append(messages[0].text)
        usage = TokensUsage.model_validate(turn.tokens_usage) if turn.tokens_usage else None
        replies.append(Invocation(turn.latency_ms or 0.0, answer, usage))
    return said, replies
