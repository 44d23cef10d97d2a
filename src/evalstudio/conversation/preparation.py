"""From a scenario to what a conversation needs: entries resolved, texts filled in, all of it checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..configs import InvalidConfig, closest
from ..evaluators.contract import Embedder, LanguageModel, PersonaInfo, ScenarioInfo
from ..evaluators.criteria import EvaluationCriteria
from ..evaluators.definition import Entry, with_keys
from ..messages import Message
from ..plugins import PluginRegistry
from .definitions import Case, EvaluatorUse, Persona, Scenario
from .placeholders import UnfilledPlaceholder, fill, fill_message

JUDGE = "criteria"
USUAL_MAX_MESSAGES = 10
_CRITERIA = ("successCriteria", "failureCriteria", "success_criteria", "failure_criteria")


class InvalidScenario(ValueError):
    """A scenario that cannot be run as it is; the message says why."""


@dataclass(frozen=True, slots=True)
class PreparedScenario:
    """Everything a conversation needs to know, settled before it begins."""

    scenario: ScenarioInfo
    entries: list[Entry]
    seeds: list[Message]
    script: list[str]
    instructions: str | None
    max_messages: int
    limited: bool = False
    persona: Persona | None = None
    persona_info: PersonaInfo | None = None
    criteria: Sequence[EvaluationCriteria] = ()
    ground_truth: Any = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stop_on_failure: bool = True
    simulated: bool = False

    @property
    def agent_first(self) -> bool:
        """Whether the seeds end with something the agent has yet to answer."""
        return bool(self.seeds) and self.seeds[-1].role in ("user", "tool")


def entries_of(
    scenario: Scenario, registry: PluginRegistry, values: Mapping[str, Any] | None = None
) -> list[Entry]:
    """The evaluators of a scenario: the implicit judge, those it lists, and those that always run."""
    found = _implicit(scenario, registry, values)
    for place, use in enumerate(scenario.evaluators):
        found.append(use if isinstance(use, Entry) else _resolve(place, _filled_use(use, values), registry))
    listed = {entry.definition.type for entry in found}
    found += [d.use() for d in registry.auto_evaluators() if d.type not in listed]
    keyed = with_keys(found)
    _check_criteria_names(keyed, scenario.criteria)
    return keyed


def _implicit(scenario: Scenario, registry: PluginRegistry, values: Mapping[str, Any] | None) -> list[Entry]:
    if scenario.success_criteria or scenario.failure_criteria:
        config = {
            "successCriteria": _filled(scenario.success_criteria, values),
            "failureCriteria": _filled(scenario.failure_criteria, values),
            "failureCriteriaMode": scenario.failure_criteria_mode,
        }
        given = {key: item for key, item in config.items() if item is not None}
        judge = EvaluatorUse(type="llm-judge", config=given, name=JUDGE)
        return [_resolve(None, judge, registry)]
    if scenario.criteria and not scenario.evaluators:
        return [_resolve(None, EvaluatorUse(type="criteria-judge"), registry)]
    return []


def _filled(text: str | None, values: Mapping[str, Any] | None) -> str | None:
    """The text with the case's values; without a case it stays as it is written."""
    return text if text is None or values is None else fill(text, values)


def _filled_use(use: EvaluatorUse, values: Mapping[str, Any] | None) -> EvaluatorUse:
    """Criteria have placeholders wherever they are written; other settings mean what they say."""
    filled = {
        key: _filled(use.config[key], values) for key in _CRITERIA if isinstance(use.config.get(key), str)
    }
    return use.model_copy(update={"config": use.config | filled}) if filled else use


def _resolve(place: int | None, use: EvaluatorUse, registry: PluginRegistry) -> Entry:
    where = JUDGE if place is None else f"evaluators[{place}]"
    definition = registry.get_evaluator(use.type)
    if definition is None:
        known = [item["type"] for item in registry.list_evaluator_types()]
        raise InvalidScenario(f'{where}.type: no evaluator is called "{use.type}"{closest(use.type, known)}')
    try:
        return definition.use(use.config, gate=use.gate, name=use.name, reduce=use.reduce)
    except InvalidConfig as error:
        path, message = error.problems[0]
        raise InvalidScenario(f"{where}.config{'.' if path else ''}{path}: {message} ({use.type})") from None


def _check_criteria_names(entries: Sequence[Entry], criteria: Sequence[EvaluationCriteria]) -> None:
    """A criterion that is not declared would silently leave its evaluator without a say."""
    known = {criterion.name for criterion in criteria}
    for entry in entries:
        one = getattr(entry.config, "criterion_name", None)
        many: Sequence[str] = getattr(entry.config, "criterion_names", ())
        for name in ([one] if one else []) + list(many):
            if name not in known:
                raise InvalidScenario(
                    f'{entry.key}: criterionName "{name}" is not among the scenario\'s criteria'
                    f"{closest(name, known) or ': declare it there'}"
                )


def _filled_criterion(criterion: EvaluationCriteria, values: Mapping[str, Any] | None) -> EvaluationCriteria:
    description = _filled(criterion.description, values)
    return criterion.model_copy(update={"description": description}) if values else criterion


def prepare(
    scenario: Scenario,
    registry: PluginRegistry,
    *,
    case: Case | None = None,
    persona: Persona | None = None,
    has_model: bool = False,
    usual_max_messages: int = USUAL_MAX_MESSAGES,
) -> PreparedScenario:
    """Everything one conversation needs, or ``InvalidScenario``.

    ``usual_max_messages`` holds where the scenario sets no limit; its script is never cut short by it.
    """
    values = case.vars if case else None
    try:
        entries = entries_of(scenario, registry, values)
        seeds = [m if values is None else fill_message(m, values) for m in scenario.messages]
        script = [text if values is None else fill(text, values) for text in scenario.script]
        instructions = _filled(scenario.instructions, values)
        criteria = [_filled_criterion(criterion, values) for criterion in scenario.criteria]
    except (UnfilledPlaceholder, InvalidConfig) as error:
        raise InvalidScenario(str(error)) from None
    agent_first = bool(seeds) and seeds[-1].role in ("user", "tool")
    needed = 2 * len(script) + agent_first
    limit = scenario.max_messages or max(needed, usual_max_messages)
    prepared = PreparedScenario(
        scenario=ScenarioInfo(scenario.name, instructions, limit),
        entries=entries,
        seeds=seeds,
        script=script,
        instructions=instructions,
        max_messages=limit,
        limited=scenario.max_messages is not None,
        persona=persona,
        persona_info=PersonaInfo(persona.name, persona.description) if persona else None,
        criteria=criteria,
        ground_truth=case.ground_truth if case and case.ground_truth is not None else scenario.ground_truth,
        context={**scenario.context, **(case.context if case else {})},
        stop_on_failure=scenario.stop_on_failure,
        simulated=has_model and _needs_simulation(persona, seeds, script, instructions),
    )
    check_prepared(prepared, has_model=has_model)
    return prepared


def _needs_simulation(
    persona: Persona | None, seeds: Sequence[Message], script: Sequence[str], instructions: str | None
) -> bool:
    """A persona goes on where the script ends; without one, only a scenario without a script is simulated."""
    if persona is not None:
        return True
    waits_for_agent = bool(seeds) and seeds[-1].role in ("user", "tool")
    return not script and (bool(instructions) or not waits_for_agent)


def check_prepared(prepared: PreparedScenario, *, has_model: bool) -> None:
    """Somebody must speak, and there must be room for a turn."""
    if not prepared.agent_first:
        if not prepared.script and not prepared.simulated:
            raise InvalidScenario(
                "nobody can speak first: add a script, end the seed messages with a user message, "
                "or set llmSettings so that the user can be simulated"
            )
        if prepared.max_messages < 2:
            raise InvalidScenario(
                "maxMessages: leaves no room for a user message and its reply; 2 is the least"
            )
    needed = 2 * len(prepared.script) + prepared.agent_first
    if prepared.max_messages < needed:
        raise InvalidScenario(
            f"maxMessages: is {prepared.max_messages}, but the script needs {needed}; "
            "raise it, or leave it out to make the scenario as long as its script"
        )
    if not has_model and any(entry.definition.cost == "llm" for entry in prepared.entries):
        judge = next(entry for entry in prepared.entries if entry.definition.cost == "llm")
        if getattr(judge.config, "llm", None) is None:
            raise InvalidScenario(
                f'"{judge.key}" needs a language model: set llmSettings in the config file, or pass llm='
            )


@dataclass(frozen=True, slots=True)
class Services:
    """What a conversation may call on: models and embeddings."""

    llm: LanguageModel | None = None
    embedder: Embedder | None = None
