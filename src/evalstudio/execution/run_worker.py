"""Working on one run: a conversation with every finished turn stored before the next begins."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from ..base.console import PrintLog
from ..base.json_text import json_text
from ..base.redaction import Redaction
from ..connectors.cassette_session import open_session
from ..connectors.contract import ConnectorDefinition, ConnectorSettings, RunInfo
from ..conversation.definitions import Case, Persona, Scenario
from ..conversation.loop import Agent, Finished, TurnEnded, UserSpoke, converse
from ..conversation.preparation import PreparedScenario, prepare
from ..conversation.results import RunResult
from ..evaluators.contract import Fault
from ..evaluators.results import Finding, Turn, Verdict
from ..llm.usage import counting_usage, model_usage
from ..messages import read_cost
from ..project.secrets import check_recipient
from ..storage.contract import ClaimedRun, RunEnding
from .tracing import traced_run
from .workspace import Workspace

_MOST_PREPARED = 512


class AttemptInterrupted(Exception):
    """The process was stopped in the middle of a run: it is tried again, a bounded number of times."""


class RunWorker:
    """Conducts the conversations of claimed runs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._prepared_runs: OrderedDict[
            tuple[int, int, bytes], tuple[ClaimedRun, PreparedScenario, Persona | None]
        ] = OrderedDict()
        self._connectors: dict[int, tuple[ClaimedRun, ConnectorDefinition, ConnectorSettings[Any]]] = {}

    async def execute(self, claimed: ClaimedRun) -> RunEnding:
        """Conduct the conversation of a run, traced where the project asks for it."""
        return await traced_run(self._workspace.telemetry, claimed, self._execute)

    async def _execute(self, claimed: ClaimedRun) -> RunEnding:
        """Conduct the conversation of a run and store its turns; the caller stores how it ended."""
        try:
            prepared, persona = self._prepare(claimed)
            if persona is not None:
                check_recipient(persona, claimed.run.connector_id, claimed.run.connector_name)
            agent = self._agent(claimed, persona)
        except ValueError as error:
            return system_error(str(error))
        if (refused := self._refused_model(prepared)) is not None:
            return refused
        log = PrintLog()
        with log.capturing(), counting_usage() as usage:
            ending, findings = await self._converse(claimed, prepared, agent)
        ending = replace(ending, **model_usage(usage, findings))
        if printed := log.text():
            redact: Redaction = getattr(agent, "redaction", Redaction())
            output = {**ending.output, "log": redact(printed)}
            return replace(ending, output=output)
        return ending

    def _refused_model(self, prepared: PreparedScenario) -> RunEnding | None:
        """The end of a run whose model refuses the credentials: the agent need not be asked for nothing."""
        llm = self._workspace.llm
        if llm is None:
            return None
        if prepared.simulated and (reason := llm.refusal("persona")) is not None:
            return _error("simulator", reason)
        judges = [entry for entry in prepared.entries if entry.definition.cost == "llm"]
        reasons = [llm.refusal("evaluation", getattr(entry.config, "model", None)) for entry in judges]
        reason = next((reason for reason in reasons if reason is not None), None)
        return None if reason is None else _error("judge", reason)

    async def _converse(
        self, claimed: ClaimedRun, prepared: PreparedScenario, agent: Agent
    ) -> tuple[RunEnding, list[Finding]]:
        """How it ended, and all that was found."""
        store, lease = self._workspace.store, claimed.lease
        if prepared.seeds:
            await store.append_turn(lease, Turn(number=0, messages=prepared.seeds))
        broken_off = Turn(number=1)
        stored: tuple[int, Sequence[Finding]] = (0, ())
        async for event in converse(prepared, agent, self._workspace.services()):
            match event:
                case UserSpoke(turn=number, message=message):
                    broken_off = Turn.of(number, user_message=message)
                case TurnEnded(turn=turn, decision=decision) if not decision.over:
                    await store.append_turn(lease, turn)
                    stored = (turn.number, turn.results)
                case Finished(result=result) if result.interrupted:
                    raise AttemptInterrupted(result.error or result.reason)
                case Finished(result=result):
                    return ending_of(result, broken_off, *stored), result.all_findings
                case _:
                    pass
        raise AssertionError("a conversation always finishes")

    def _prepare(self, claimed: ClaimedRun) -> tuple[PreparedScenario, Persona | None]:
        """The prepared scenario of a run; runs that share their snapshots and case share it."""
        case_key = orjson.dumps(claimed.case, option=orjson.OPT_SORT_KEYS)
        key = (id(claimed.scenario), id(claimed.persona), case_key)
        known = self._prepared_runs.get(key)
        if known is not None:
            self._prepared_runs.move_to_end(key)
            return known[1], known[2]
        box = self._workspace.box
        persona = Persona.model_validate(box.open(claimed.persona)) if claimed.persona else None
        prepared = prepare(
            Scenario.model_validate(dict(claimed.scenario)),
            self._workspace.registry,
            case=Case.model_validate(claimed.case) if claimed.case is not None else None,
            persona=persona,
            has_model=self._workspace.has_model,
            usual_max_messages=self._workspace.usual_max_messages,
        )
        # The claimed run is kept beside it: its snapshots must live as long as their ids are used.
        self._prepared_runs[key] = (claimed, prepared, persona)
        if len(self._prepared_runs) > _MOST_PREPARED:
            self._prepared_runs.popitem(last=False)
        return prepared, persona

    def _agent(self, claimed: ClaimedRun, persona: Persona | None) -> Agent:
        key = id(claimed.connector)
        if key not in self._connectors:
            self._connectors[key] = (claimed, *self._workspace.agent_settings(claimed.connector))
        _, definition, settings = self._connectors[key]
        # A second attempt is a conversation of its own: it shares nothing with the first.
        lease, run = claimed.lease, claimed.run
        run_id = lease.run_id if lease.attempt == 1 else f"{lease.run_id}-{lease.attempt}"
        names = (run.scenario_name, run.case_name, run.persona_name, run.connector_name, str(run.repetition))
        return open_session(
            definition,
            settings,
            pool=self._workspace.http,
            run=RunInfo(
                id=run_id,
                scenario=run.scenario_name,
                case=run.case_name or "",
                case_values=dict((claimed.case or {}).get("vars") or {}),
            ),
            extra_headers=persona.headers if persona else None,
            cassette=self._workspace.cassette,
            run_key=" · ".join(name for name in names if name),
            secrets=self._workspace.secrets,
        )


def ending_of(
    result: RunResult, broken_off: Turn, last_stored: int, stored_results: Sequence[Finding]
) -> RunEnding:
    """How the run ended, with the turn that is not stored yet: the last, or the one that broke off.

    A turn after which the simulated user left, or could not be voiced, was stored before anybody knew that it
    was the last: only what the evaluators found at the end comes along for it.
    """
    last = result.turns[-1] if result.turns else None
    final: Sequence[Finding] = ()
    if last is not None and last.number <= last_stored:
        kept = {id(finding) for finding in stored_results}
        final = [finding for finding in last.results if id(finding) not in kept]
        last = None
    if broken_off.number > len(result.turns) and broken_off.user_message is not None:
        last = broken_off
        last.attempts = result.failed_attempts or None
    output = result.output()
    return RunEnding(
        verdict=result.verdict,
        output=output,
        latency_ms=output.get("totalLatencyMs") if result.turns else None,
        tokens_usage=result.tokens_usage,
        thread_id=result.thread_id,
        answer_hash=_answer_hash(result.turns),
        error=result.error,
        last_turn=last,
        final_results=final,
        agent_cost=_agent_cost(result.turns),
    )


def _answer_hash(turns: Sequence[Turn]) -> str | None:
    """What the agent said and called in all turns, as a hash: whether two runs were answered alike.

    Ids of messages and calls differ in every run and are left out.
    """
    if not turns:
        return None
    digest = hashlib.sha256()
    for message in (message for turn in turns for message in turn.messages):
        calls = [(call.name, call.function.arguments) for call in message.tool_calls or ()]
        digest.update(json_text([message.role, message.text, calls]).encode())
    return digest.hexdigest()[:40]


def _agent_cost(turns: Sequence[Turn]) -> float | None:
    """What the agent says its answers cost, if it says so of each of them."""
    costs = [(turn.metadata or {}).get("cost") for turn in turns if turn.number > 0 and turn.messages]
    numbers = [number for number in map(read_cost, costs) if number is not None]
    return sum(numbers) if numbers and len(numbers) == len(costs) else None


def system_error(message: str, traceback: str | None = None) -> RunEnding:
    """The ending of a run that could not be conducted, through no fault of the agent's."""
    return replace(_error("system", message), output={"traceback": traceback} if traceback else {})


def _error(fault: Fault, message: str) -> RunEnding:
    return RunEnding(verdict=Verdict(outcome="error", fault=fault, reason=message), error=message)
