"""Scoring a stored conversation again with the evaluators its scenario has today. Nobody else is called."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ..conversation.definitions import Persona, Scenario
from ..conversation.judging import judge_conversation
from ..conversation.preparation import PreparedScenario, prepare
from ..conversation.results import RunResult
from ..evaluators.results import Turn
from ..project.entities import Run
from ..storage.errors import NotFound
from .tracing import traced_rescoring
from .workspace import Workspace


class NotRescorable(Exception):
    """A run that has nothing to score, or is not over yet."""


async def rescore(workspace: Workspace, run: Run) -> RunResult:
    """What the evaluators of today say about the conversation of then. Nothing is stored."""
    if run.result is None:
        raise NotRescorable(f"Only a finished run can be scored again; this one is {run.status}.")
    turns = answered_turns(run)
    if not turns:
        raise NotRescorable("There is nothing to score: the agent never answered in this run.")
    prepared = await _prepare(workspace, run)
    judging = judge_conversation(prepared, turns, workspace.services(), thread_id=run.thread_id)
    return await traced_rescoring(workspace.telemetry, run, judging)


def answered_turns(run: Run) -> list[Turn]:
    """The turns in which the agent answered; one that broke off is left out."""
    return [turn for turn in run.turns if turn.number > 0 and turn.messages]


async def _prepare(workspace: Workspace, run: Run) -> PreparedScenario:
    """Today's scenario if there still is one, else the one of then; what was said stays that of then."""
    then = await workspace.store.snapshots(run.id)
    scenario = Scenario.model_validate(dict(then["scenario"] or {}))
    messages = scenario.messages
    if run.scenario_id is not None:
        with suppress(NotFound):
            scenario = await workspace.store.get("scenario", run.scenario_id)
    persona = Persona.model_validate(dict(then["persona"])) if then["persona"] else None
    prepared = prepare(
        scenario.model_copy(update={"messages": messages}),
        workspace.registry,
        case=run.case,
        persona=persona,
        has_model=workspace.has_model,
    )
    seeds = [message for turn in run.turns if turn.number == 0 for message in turn.messages]
    return replace(prepared, seeds=seeds)
