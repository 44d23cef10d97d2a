"""What recorded conversations are held against: an eval, a scenario, or the evaluators of a scoring plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..base.problems import InvalidInput, Problem, suggestion
from ..conversation.definitions import EvaluatorUse, Scenario
from ..evaluators.definition import Entry
from ..plugins import PluginRegistry
from ..project.documents import check_stored
from ..project.entities import StoredEval, StoredScenario
from ..project.requirements import Requirement
from ..scoring.config import resolve
from ..scoring.plan import ScoringPlan, read_plan
from .reviews import ReviewRequest
from .workspace import Workspace


async def request_by_eval(workspace: Workspace, stored: StoredEval) -> ReviewRequest:
    """By the scenarios and requirements of an eval; its connectors are not called."""
    check_stored(stored)
    scenarios = [await workspace.store.get("scenario", one) for one in stored.scenario_ids]
    for scenario in scenarios:
        check_stored(scenario)
    return ReviewRequest(scenarios, stored, requirements=stored.requirements)


async def request_by_scenario(workspace: Workspace, name: str) -> ReviewRequest:
    """By the scenario of this name or id."""
    page = await workspace.store.list_of("scenario", limit=500)
    known = [one for one in page.items if isinstance(one, StoredScenario)]
    chosen = next((one for one in known if one.id == name), None)
    chosen = chosen or await workspace.store.find("scenario", name)
    if chosen is None:
        names = [one.name for one in known]
        raise InvalidInput(Problem(f'there is no scenario called "{name}"', hint=suggestion(name, names)))
    check_stored(chosen)
    return ReviewRequest([chosen])


def request_by_plan(registry: PluginRegistry, path: Path) -> ReviewRequest:
    """By the evaluators, criteria and thresholds of a scoring plan. Models and plugins are the project's."""
    plan, files = read_plan(path)
    problems = [
        Problem(f"belongs to score; {advice}", (name,))
        for name, is_given, advice in (
            ("plugins", bool(plan.plugins), "a review uses the plugins of the project's config file"),
            ("llmSettings", plan.llm_settings is not None, "a review uses the models of the project"),
            ("failUnder", plan.fail_under is not None, "give thresholds of criteria, or --require"),
        )
        if is_given
    ]
    if problems:
        raise files.placed(InvalidInput(*problems))
    try:
        scenario = scenario_of_plan(plan, path.stem, registry)
    except InvalidInput as error:
        raise files.placed(error) from None
    requirements = [Requirement(criterion=name, min=least) for name, least in plan.thresholds.items()]
    return ReviewRequest([scenario], requirements=requirements)


def scenario_of_plan(plan: ScoringPlan, name: str, registry: PluginRegistry) -> Scenario:
    """A plan as a scenario: over a conversation the gates of its evaluators apply."""
    entries: Sequence[Entry] = [one.entry for one in resolve(plan.run_config(), registry)]
    return Scenario(name=name, evaluators=[*map(_use, entries)], criteria=plan.criteria)


def _use(entry: Entry) -> EvaluatorUse:
    definition = entry.definition
    own = definition.use(entry.written)
    return EvaluatorUse(
        type=definition.type,
        config=dict(entry.written),
        name=entry.name,
        gate=None if entry.gate == own.gate else entry.gate,
        reduce=None if entry.reduce == own.reduce else entry.reduce,
    )
