"""From a scenario to what a conversation needs: entries resolved, texts filled in, all of it checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..base.problems import InvalidInput, Problem, ProblemList, suggestion
from ..evaluators.contract import Embedder, LanguageModel, PersonaInfo, ScenarioInfo
from ..evaluators.criteria import EvaluationCriteria, check_declared, criterion_references
from ..evaluators.definition import Entry, with_keys
from ..messages import Message
from ..plugins import PluginRegistry
from .definitions import Case, EvaluatorUse, Persona, Scenario
from .placeholders import fill, fill_message

T = TypeVar("T", str, str | None, Message)

JUDGE = "criteria"
USUAL_MAX_MESSAGES = 10
_CRITERIA = ("successCriteria", "failureCriteria", "success_criteria", "failure_criteria")


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
        return _awaits_agent(self.seeds)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Fills a scenario's texts with a case's values; without a case they stay as they are written."""

    values: Mapping[str, Any] | None
    problems: ProblemList
    subject: str = ""

    def filled(self, text: T, *path: str | int) -> T:
        if text is not None and self.values is not None:
            fill_any: Any = fill_message if isinstance(text, Message) else fill
            with self.problems.collect(*path, subject=self.subject):
                return fill_any(text, self.values)
        return text

    def use(self, use: EvaluatorUse, *path: str | int) -> EvaluatorUse:
        """Criteria have placeholders wherever they are written; other settings mean what they say."""
        criteria = {key: use.config[key] for key in _CRITERIA if isinstance(use.config.get(key), str)}
        filled = {key: self.filled(text, *path, "config", key) for key, text in criteria.items()}
        return use.model_copy(update={"config": use.config | filled}) if filled else use


def _entries(scenario: Scenario, registry: PluginRegistry, texts: _Texts) -> list[Entry]:
    """The evaluators that can be used; what is wrong with the others is among the problems."""
    problems = texts.problems
    entries: list[Entry] = []
    if (judge := _implicit(scenario, texts)) is not None:
        with problems.collect():
            entries.append(_resolve(judge, registry))
    for number, use in enumerate(scenario.evaluators):
        with problems.collect("evaluators", number):
            filled = use if isinstance(use, Entry) else texts.use(use, "evaluators", number)
            entry = filled if isinstance(filled, Entry) else _resolve(filled, registry)
            entries.append(_checked(entry, scenario.criteria))
    listed = {entry.definition.type for entry in entries}
    for definition in registry.auto_evaluators():
        if definition.type not in listed:
            with problems.collect(subject=definition.type):
                entries.append(_checked(definition.use(), scenario.criteria))
    with problems.collect():
        return with_keys(entries)
    return entries


def _implicit(scenario: Scenario, texts: _Texts) -> EvaluatorUse | None:
    if scenario.success_criteria or scenario.failure_criteria:
        config = {
            "successCriteria": texts.filled(scenario.success_criteria, "successCriteria"),
            "failureCriteria": texts.filled(scenario.failure_criteria, "failureCriteria"),
            "failureCriteriaMode": scenario.failure_criteria_mode,
        }
        settings = {key: item for key, item in config.items() if item is not None}
        return EvaluatorUse(type="llm-judge", config=settings, name=JUDGE)
    if scenario.criteria and not scenario.evaluators:
        return EvaluatorUse(type="criteria-judge")
    return None


def _resolve(use: EvaluatorUse, registry: PluginRegistry) -> Entry:
    definition = registry.get_evaluator(use.type)
    if definition is None:
        known = [item["type"] for item in registry.list_evaluator_types()]
        message = f'no evaluator is called "{use.type}"'
        raise InvalidInput(Problem(message, ("type",), suggestion(use.type, known)))
    return definition.use(use.config, gate=use.gate, name=use.name, reduce=use.reduce)


def _checked(entry: Entry, criteria: Sequence[EvaluationCriteria]) -> Entry:
    many: Sequence[str] | None = getattr(entry.config, "criterion_names", None)
    if many is not None and not (many or criteria):
        raise InvalidInput(Problem("there is nothing to judge", (), "declare criteria on the scenario"))
    check_declared(criterion_references(entry.config), criteria, "the scenario's")
    return entry


def prepare(
    scenario: Scenario,
    registry: PluginRegistry,
    *,
    case: Case | None = None,
    persona: Persona | None = None,
    has_model: bool = False,
    usual_max_messages: int = USUAL_MAX_MESSAGES,
) -> PreparedScenario:
    """Everything one conversation needs, or ``InvalidInput`` with everything that is wrong.

    ``usual_max_messages`` holds where the scenario sets no limit; its script is never cut short by it.
    """
    problems = ProblemList()
    texts = _Texts(case.vars if case else None, problems, f'case "{case.name}"' if case and case.name else "")
    entries = _entries(scenario, registry, texts)
    seeds = [texts.filled(m, "messages", number) for number, m in enumerate(scenario.messages)]
    script = [texts.filled(text, "script", number) for number, text in enumerate(scenario.script)]
    instructions = texts.filled(scenario.instructions, "instructions")
    criteria = [_filled_criterion(one, number, texts) for number, one in enumerate(scenario.criteria)]
    limit = scenario.max_messages or max(_needed(seeds, script), usual_max_messages)
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
    with problems.collect():
        check_prepared(prepared, has_model=has_model)
    problems.check()
    return prepared


def _awaits_agent(seeds: Sequence[Message]) -> bool:
    return bool(seeds) and seeds[-1].role in ("user", "tool")


def _needed(seeds: Sequence[Message], script: Sequence[str]) -> int:
    """How many messages the script takes: one of the user and one reply each, and a reply to the seeds."""
    return 2 * len(script) + _awaits_agent(seeds)


def _filled_criterion(criterion: EvaluationCriteria, number: int, texts: _Texts) -> EvaluationCriteria:
    if texts.values is None:
        return criterion
    description = texts.filled(criterion.description, "criteria", number, "description")
    return criterion.model_copy(update={"description": description})


def _needs_simulation(
    persona: Persona | None, seeds: Sequence[Message], script: Sequence[str], instructions: str | None
) -> bool:
    """A persona goes on where the script ends; without one, only a scenario without a script is simulated."""
    return persona is not None or (not script and (bool(instructions) or not _awaits_agent(seeds)))


def check_prepared(prepared: PreparedScenario, *, has_model: bool) -> None:
    """Somebody must speak first, and the limit must allow for a turn."""
    problems = ProblemList()
    if not prepared.agent_first:
        if not prepared.script and not prepared.simulated:
            hint = "add a script, end the seed messages with a user message, "
            hint += "or set llmSettings so that the user can be simulated"
            problems.append(Problem("nobody can speak first", hint=hint))
        if prepared.max_messages < 2:
            message = "leaves no room for a user message and its reply"
            problems.append(Problem(message, ("maxMessages",), "2 is the least"))
    needed = _needed(prepared.seeds, prepared.script)
    if 2 <= prepared.max_messages < needed:
        message = f"is {prepared.max_messages}, but the script needs {needed}"
        hint = "raise it, or leave it out to make the scenario as long as its script"
        problems.append(Problem(message, ("maxMessages",), hint))
    judges = [entry for entry in prepared.entries if entry.definition.cost == "llm"]
    if not has_model and judges and getattr(judges[0].config, "llm", None) is None:
        message = f'"{judges[0].key}" needs a language model'
        problems.append(Problem(message, hint="set llmSettings in the config file, or pass llm="))
    problems.check()


@dataclass(frozen=True, slots=True)
class Services:
    """What a conversation may call on: models and embeddings."""

    llm: LanguageModel | None = None
    embedder: Embedder | None = None
