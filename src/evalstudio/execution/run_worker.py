"""Conducting one run: a conversation with every finished turn kept before the next begins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ..connectors.cassette_session import open_session
from ..connectors.contract import ConnectorDefinition, ConnectorSettings, RunInfo
from ..conversation.definitions import Case, Persona, Scenario
from ..conversation.loop import Agent, AgentAnswered, Finished, TurnEnded, UserSpoke, converse
from ..conversation.preparation import PreparedScenario, prepare
from ..conversation.results import RunResult, Turn
from ..evaluators.running import Finding
from ..messages import Message, TokensUsage
from ..project.entities import Connector, RunVerdict
from ..project.validation import check_connector
from ..storage.contract import ClaimedRun, RunEnding, TurnRecord
from .workspace import Workspace

_MOST_PLANS = 512


class RunWorker:
    """Holds the conversations of claimed runs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._plans: OrderedDict[
            tuple[int, int, bytes], tuple[ClaimedRun, PreparedScenario, Persona | None]
        ] = OrderedDict()
        self._lines: dict[int, tuple[ClaimedRun, ConnectorDefinition, ConnectorSettings[Any]]] = {}

    async def execute(self, claimed: ClaimedRun) -> RunEnding:
        """Hold the conversation of a run and keep its turns; how it ended is for the caller to keep."""
        try:
            plan, persona = self._plan(claimed)
            agent = self._agent(claimed, persona)
        except ValueError as error:
            return system_error(str(error))
        return await self._hold(claimed, plan, agent)

    async def _hold(self, claimed: ClaimedRun, plan: PreparedScenario, agent: Agent) -> RunEnding:
        store, lease = self._workspace.store, claimed.lease
        if plan.seeds:
            await store.append_turn(lease, TurnRecord(0, plan.seeds))
        said: list[Message] = []
        number, kept = 1, 0
        async for event in converse(plan, agent, self._workspace.services()):
            match event:
                case UserSpoke(turn=number, message=message):
                    said = [message]
                case AgentAnswered(invocation=invocation):
                    said = [*said, *invocation.messages]
                case TurnEnded(turn=turn, decision=decision) if not decision.over:
                    await store.append_turn(lease, _record(turn))
                    said, kept = [], turn.number
                case TurnEnded():
                    pass
                case Finished(result=result):
                    return _ending(result, number, said, kept)
        raise AssertionError("a conversation always finishes")

    def _plan(self, claimed: ClaimedRun) -> tuple[PreparedScenario, Persona | None]:
        """The plan of a run; runs that share their snapshots and case share their plan."""
        case_key = orjson.dumps(claimed.case, option=orjson.OPT_SORT_KEYS)
        key = (id(claimed.scenario), id(claimed.persona), case_key)
        known = self._plans.get(key)
        if known is not None:
            self._plans.move_to_end(key)
            return known[1], known[2]
        box = self._workspace.box
        persona = Persona.model_validate(box.open(claimed.persona)) if claimed.persona else None
        plan = prepare(
            Scenario.model_validate(dict(claimed.scenario)),
            self._workspace.registry,
            case=Case.model_validate(claimed.case) if claimed.case is not None else None,
            persona=persona,
            has_model=self._workspace.has_model,
        )
        # The claimed run is kept with its plan: its snapshots must live as long as their ids are used.
        self._plans[key] = (claimed, plan, persona)
        if len(self._plans) > _MOST_PLANS:
            self._plans.popitem(last=False)
        return plan, persona

    def _agent(self, claimed: ClaimedRun, persona: Persona | None) -> Agent:
        known = self._lines.get(id(claimed.connector))
        if known is None:
            connector = Connector.model_validate(self._workspace.box.open(claimed.connector))
            definition, config = check_connector(connector, self._workspace.registry)
            settings: ConnectorSettings[Any] = ConnectorSettings(
                config, connector.base_url or "", connector.headers, self._workspace.scope
            )
            known = self._lines[id(claimed.connector)] = (claimed, definition, settings)
        _, definition, settings = known
        # A second attempt is a conversation of its own: it shares nothing with the first.
        lease, run = claimed.lease, claimed.run
        run_id = lease.run_id if lease.attempt == 1 else f"{lease.run_id}-{lease.attempt}"
        asker = (run.scenario_name, run.case_name, run.persona_name, run.connector_name, str(run.repetition))
        return open_session(
            definition,
            settings,
            pool=self._workspace.http,
            run=RunInfo(id=run_id),
            extra_headers=persona.headers if persona else None,
            cassette=self._workspace.cassette,
            asker=" · ".join(part for part in asker if part),
        )


def _record(turn: Turn) -> TurnRecord:
    spoken = [turn.user_message] if turn.user_message is not None else []
    return TurnRecord(
        turn.number,
        [*spoken, *turn.messages],
        turn.results,
        turn.invocation.latency_ms,
        turn.invocation.tokens_usage,
    )


def _ending(result: RunResult, number: int, said: list[Message], kept: int) -> RunEnding:
    """How the run ended, with the turn that was not kept yet: the last, or the one that broke off.

    A turn after which the simulated user left, or could not be voiced, was kept before anybody knew that it
    was the last: only what the evaluators found at the end comes along for it.
    """
    last: TurnRecord | None = None
    at_the_end: Sequence[Finding] = ()
    if result.turns and result.turns[-1].number > kept:
        last = _record(result.turns[-1])
    elif said:
        last = TurnRecord(number, said)
    elif result.turns:
        at_the_end = [r for r in result.turns[-1].results if r.gate == "finally"]
    tokens = [t.invocation.tokens_usage for t in result.turns if t.invocation.tokens_usage is not None]
    output = result.output()
    return RunEnding(
        verdict=RunVerdict(
            success=result.passed,
            outcome=result.outcome,
            fault=result.fault,
            score=result.score,
            overall_score=result.overall_score,
            reason=result.reason,
            asserted=result.verdict.asserted,
        ),
        output=output,
        latency_ms=output["totalLatencyMs"] if result.turns else None,
        tokens_usage=sum(tokens, TokensUsage()) if tokens else None,
        thread_id=result.thread_id,
        error=result.error,
        last_turn=last,
        final_results=at_the_end,
    )


def system_error(message: str, detail: Mapping[str, Any] | None = None) -> RunEnding:
    """A run that could not be held through no fault of the agent's."""
    verdict = RunVerdict(success=False, outcome="error", fault="system", reason=message, asserted=True)
    return RunEnding(verdict=verdict, output=dict(detail or {}), error=message)
