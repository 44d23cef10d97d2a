"""Scoring stored conversations again with the evaluators of today. No agent and no simulated user is called.

A model is asked again only where something has changed that its answer depends on: the entry's settings, the
scenario's texts and references, the code of the evaluator, the prompts, the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..conversation.definitions import Persona, Scenario
from ..conversation.judging import StoredFindings, judge_conversation
from ..conversation.preparation import PreparedScenario, prepare
from ..conversation.results import RunResult
from ..evaluators.contract import Fault
from ..evaluators.definition import Entry
from ..evaluators.results import UNSEEN_MODEL, Finding, Turn
from ..llm.usage import counting_usage, model_usage
from ..project.entities import Run, StoredScenario, derived_id
from ..recordings.conversation import RecordedConversation
from ..storage.contract import FinishedRun, NewRun, Snapshot
from ..storage.errors import NotFound
from .environment import environment_data
from .reviewing import scenario_snapshot, with_conversation
from .run_worker import ending_of
from .tracing import traced_rescoring
from .workspace import Workspace

_BROKE_OFF: tuple[Fault, ...] = ("agent", "simulator", "system")


# What a finding says of the models that were asked for it then.
_PAID = ("modelUsage", UNSEEN_MODEL)


class NotRescorable(Exception):
    """A run that has nothing to score, or is not over yet."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What stored conversations are scored by: today's scenarios, unless one of these is given.

    ``evaluators`` is a scenario whose evaluators and criteria take the place of each one's own. With
    ``ask_again`` models are asked also where nothing has changed.
    """

    scenario: Scenario | None = None
    evaluators: Scenario | None = None
    ask_again: bool = False

    def applied(self, scenario: Scenario) -> Scenario:
        scenario = self.scenario or scenario
        if self.evaluators is None:
            return scenario
        own = {"evaluators": self.evaluators.evaluators, "criteria": self.evaluators.criteria}
        return scenario.model_copy(update=own | {"success_criteria": None, "failure_criteria": None})


TODAY = Measure()


async def rescore(workspace: Workspace, run: Run, measure: Measure = TODAY) -> RunResult:
    """What the evaluators of today say about the conversation of then. Nothing is stored."""
    if run.result is None:
        raise NotRescorable(f"Only a finished run can be scored again; this one is {run.status}.")
    if not answered_turns(run):
        raise NotRescorable("There is nothing to score: the agent never answered in this run.")
    return await _judge(workspace, run, await _prepare(workspace, run, measure))


async def rescored_run(
    workspace: Workspace, run: Run, measure: Measure, execution_id: str, environment: Mapping[str, Any] | None
) -> FinishedRun:
    """A finished run scored again, as a run of another execution. One that broke off stays an error."""
    again = await _prepare(workspace, run, measure)
    stored: StoredFindings = {}
    if not measure.ask_again:
        stored = reusable(workspace, run, again, environment)
    with counting_usage() as usage:
        result = await _judge(workspace, run, again, stored, execution_id)
    ending = ending_of(result, Turn(number=1), 0, ())
    output = dict(ending.output)
    if recording := (run.output or {}).get("recording"):
        output["recording"] = recording
    ending = replace(ending, output=output, last_turn=None, **model_usage(usage, result.all_findings))
    judged = {turn.number: turn for turn in result.turns}
    turns = [judged.get(turn.number, turn) for turn in run.turns]
    return FinishedRun(_new_run(run, again, execution_id), turns, ending)


def _new_run(run: Run, again: _Prepared, execution_id: str) -> NewRun:
    same = ("scenario_id", "scenario_name", "persona_id", "persona_name", "connector_id", "connector_name")
    fields: dict[str, Any] = {name: getattr(run, name) for name in same}
    case = run.case.model_dump(mode="json", by_alias=True, exclude_none=True) if run.case else None
    return NewRun(
        scenario=scenario_snapshot(again.scenario),
        connector=Snapshot.of(again.then["connector"] or {}),
        persona=Snapshot.of(again.then["persona"]) if again.then["persona"] else None,
        case=case,
        repetition=run.repetition,
        id=derived_id(execution_id, run.id),
        **fields,
    )


def answered_turns(run: Run) -> list[Turn]:
    """The turns in which the agent answered; one that broke off is left out."""
    return [turn for turn in run.turns if turn.number > 0 and turn.messages]


async def _judge(
    workspace: Workspace,
    run: Run,
    again: _Prepared,
    stored: StoredFindings | None = None,
    execution_id: str | None = None,
) -> RunResult:
    verdict = run.result
    fault = verdict.fault if verdict is not None and verdict.fault in _BROKE_OFF else None
    judging = judge_conversation(
        again.prepared,
        answered_turns(run),
        workspace.services(),
        # A conversation that broke off is not whole, whoever looks at it later.
        fault=None if fault is None or verdict is None else (fault, run.error or verdict.reason),
        state=(run.output or {}).get("state"),
        thread_id=run.thread_id,
        stored=stored,
    )
    return await traced_rescoring(workspace.telemetry, run, judging, execution_id)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A run's scenario of today, prepared for its conversation, and everything as it was then."""

    scenario: Scenario
    prepared: PreparedScenario
    then: Mapping[str, Mapping[str, Any] | None]
    persona: Persona | None
    conversation: RecordedConversation


async def _prepare(workspace: Workspace, run: Run, measure: Measure) -> _Prepared:
    """Today's scenario if there still is one, else the one of then; what was said stays that of then."""
    then = await workspace.store.snapshots(run.id)
    scenario = Scenario.model_validate(dict(then["scenario"] or {}))
    if run.scenario_id is not None and measure.scenario is None:
        with suppress(NotFound):
            scenario = await workspace.store.get("scenario", run.scenario_id)
    scenario = measure.applied(scenario)
    persona = Persona.model_validate(workspace.box.open(then["persona"])) if then["persona"] else None
    conversation = _conversation(run)
    return _Prepared(
        scenario,
        _prepared(workspace, scenario, run, persona, conversation),
        then,
        persona,
        conversation,
    )


def _prepared(
    workspace: Workspace,
    scenario: Scenario,
    run: Run,
    persona: Persona | None,
    conversation: RecordedConversation,
) -> PreparedScenario:
    prepared = prepare(
        scenario,
        workspace.registry,
        case=run.case,
        persona=persona,
        has_model=workspace.has_model,
        recorded=True,
    )
    return with_conversation(prepared, conversation)


def _conversation(run: Run) -> RecordedConversation:
    """What was said in a run, with the calls that a recording brought along."""
    seeds = [message for turn in run.turns if turn.number == 0 for message in turn.messages]
    recording = (run.output or {}).get("recording") or {}
    return RecordedConversation(
        run.id,
        answered_turns(run),
        seeds,
        expected_calls=recording.get("expectedCalls"),
        is_live=not recording,
    )


def reusable(
    workspace: Workspace, run: Run, again: _Prepared, environment: Mapping[str, Any] | None
) -> StoredFindings:
    """What models said of this conversation and would be asked the same again about.

    Where it is not known what they were asked with, nothing is.
    """
    if environment is None:
        return {}
    try:
        scenario = Scenario.model_validate(dict(again.then["scenario"] or {}))
        before = _prepared(workspace, scenario, run, again.persona, again.conversation)
    except (InvalidInput, ValueError):
        return {}
    if _asked_about(before) != _asked_about(again.prepared):
        return {}
    now = environment_data(workspace, [again.scenario])
    known = {entry.key: entry for entry in before.entries}
    same = {
        entry.key
        for entry in again.prepared.entries
        if entry.definition.cost != "fast"
        and _is_same(entry, known.get(entry.key))
        and _same_code(entry, environment, now)
    }
    return {
        (name, turn.number): findings
        for turn in run.turns
        for name in same
        if (findings := _answered(turn, name))
    }


def _asked_about(prepared: PreparedScenario) -> tuple[Any, ...]:
    """What an evaluator sees of a scenario, beside its own settings and what was said."""
    return (
        prepared.scenario.instructions,
        prepared.persona_info,
        [criterion.model_dump(exclude={"weight"}) for criterion in prepared.criteria],
        prepared.ground_truth,
        dict(prepared.context),
    )


def _is_same(entry: Entry, known: Entry | None) -> bool:
    if known is None:
        return False
    same_type = entry.definition.type == known.definition.type and entry.gate == known.gate
    return same_type and entry.written == known.written


def _same_code(entry: Entry, then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the code, the prompts and the models behind an entry are those of then."""
    kind = entry.definition.type
    before, after = (side.get("evaluators", {}).get(kind, {}).get("code") for side in (then, now))
    beside = ("models", "judgePrompts")
    return before is not None and before == after and all(then.get(one) == now.get(one) for one in beside)


def _answered(turn: Turn, name: str) -> list[Finding]:
    """What an entry found on a turn, if it was asked and could say; models were paid for it then."""
    findings = [finding for finding in turn.results if finding.name == name]
    if any(finding.error is not None or finding.not_asked for finding in findings):
        return []
    return [_reused(finding) for finding in findings]


def _reused(finding: Finding) -> Finding:
    paid = {key: item for key, item in finding.metadata.items() if key not in _PAID}
    return replace(finding, metadata=paid | {"reused": True}, pending=False)


async def named_scenario(workspace: Workspace, name: str) -> StoredScenario:
    """The scenario of this name or id."""
    with suppress(NotFound):
        return await workspace.store.get("scenario", name)
    scenario = await workspace.store.find("scenario", name)
    if scenario is None:
        raise InvalidInput(f'there is no scenario called "{name}"')
    return scenario
