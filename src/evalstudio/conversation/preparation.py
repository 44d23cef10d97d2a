"""From a scenario to what a conversation needs: entries resolved, texts filled in, all of it checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

from pydantic.alias_generators import to_camel

from ..base.lazy_dataclass import dataclass
from ..base.problems import FieldPath, InvalidInput, Problem, ProblemList, suggestion
from ..configs import OWN_PLACEHOLDERS
from ..evaluators.contract import Embedder, Gate, LanguageModel, PersonaInfo, ScenarioInfo
from ..evaluators.criteria import EvaluationCriteria, check_declared, criterion_references
from ..evaluators.definition import Entry, EvaluatorDefinition, with_keys
from ..evaluators.limits import DEFAULT_LIMITS, EvaluatorLimits
from ..messages import Message
from ..plugins import PluginRegistry
from .definitions import Case, EvaluatorUse, Persona, Scenario
from .placeholders import (
    Values,
    check_names,
    fill,
    fill_data,
    fill_message,
    fill_template,
    has_placeholders,
    with_numbers_read,
)

T = TypeVar("T", str, str | None)

JUDGE = "criteria"
USUAL_MAX_MESSAGES = 10


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
    opening: Sequence[str] = ()

    @property
    def agent_first(self) -> bool:
        """Whether the seeds end with something the agent has yet to answer."""
        return _awaits_agent(self.seeds)


@dataclass(frozen=True, slots=True)
class _Filling:
    """Fills a scenario's texts and data with a case's values; what has none is among the problems."""

    values: Values
    problems: ProblemList
    subject: str = ""

    def text(self, text: T, *path: str | int) -> T:
        filled: Any = text and self._filled(lambda: fill(str(text), self.values), text, path)
        return filled

    def message(self, message: Message, *path: str | int) -> Message:
        return self._filled(lambda: fill_message(message, self.values), message, path)

    def data(self, data: Any, *path: str | int) -> Any:
        return self._filled(lambda: fill_data(data, self.values), data, path)

    def _filled(self, filled: Callable[[], Any], unfilled: Any, path: FieldPath) -> Any:
        with self.problems.collect(*path, subject=self.subject):
            return filled()
        return unfilled

    def entry(self, entry: Entry) -> Entry:
        """An entry made in code, its config filled like one from a file."""
        if not has_placeholders(entry.written):
            return entry
        definition = entry.definition
        own = definition.use(entry.written).gate
        gate = None if entry.gate == own else entry.gate
        return self.use(definition, entry.written, gate=gate, name=entry.name, reduce=entry.reduce)

    def use(self, definition: EvaluatorDefinition, config: Mapping[str, Any], **options: Any) -> Entry:
        """An evaluator with its config filled. Cells of a CSV file are text: one that stands for a whole
        setting is read as the number or truth value the setting takes."""
        filled = self.config(definition, config)
        try:
            return definition.use(filled, **options)
        except InvalidInput as error:
            places = [problem.path[1:] for problem in error.problems if problem.path[:1] == ("config",)]
            if (read := with_numbers_read(config, filled, places)) is None:
                raise
            with suppress(InvalidInput):
                return definition.use(read, **options)
            raise

    def config(self, definition: EvaluatorDefinition, config: Mapping[str, Any]) -> dict[str, Any]:
        """A config with its placeholders filled, but for those a setting fills itself later."""
        problems, filled = ProblemList(), dict[str, Any]()
        own = _own_placeholders(definition)
        for key, item in config.items():
            names = own.get(to_camel(key)) if isinstance(item, str) else None
            if names is None:
                with problems.collect():
                    filled |= fill_data({key: item}, self.values)
            else:
                with problems.collect(key):
                    filled[key] = fill_template(item, self.values, partial(_is_among, names))
        if problems:
            raise InvalidInput(*problems).within("config")
        return filled


def _own_placeholders(definition: EvaluatorDefinition) -> dict[str, list[str]]:
    """The settings that are templates themselves, with the names they fill in at every turn."""
    fields: Mapping[str, Any] = definition.config.schema.get("properties", {})
    return {key: shape[OWN_PLACEHOLDERS] for key, shape in fields.items() if OWN_PLACEHOLDERS in shape}


def _is_among(names: Sequence[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in names)


def _entries(scenario: Scenario, registry: PluginRegistry, filling: _Filling) -> list[Entry]:
    """The evaluators that can be used; what is wrong with the others is among the problems."""
    problems = filling.problems
    entries: list[Entry] = []
    if (judge := _implicit(scenario, filling)) is not None:
        with problems.collect():
            entries.append(_defined(judge, registry).use(judge.config, name=judge.name))
    for number, use in enumerate(scenario.evaluators):
        config = use.written if isinstance(use, Entry) else use.config
        # What every case has wrong is told once.
        subject = filling.subject if has_placeholders(config) else ""
        with problems.collect("evaluators", number, subject=subject):
            entry = filling.entry(use) if isinstance(use, Entry) else _resolve(use, registry, filling)
            entries.append(_checked(entry, scenario.criteria))
    listed = {entry.definition.type for entry in entries}
    for definition in registry.auto_evaluators():
        if definition.type not in listed:
            with problems.collect(subject=definition.type):
                entries.append(_checked(definition.use(), scenario.criteria))
    with problems.collect():
        return with_keys(entries)
    return entries


def _implicit(scenario: Scenario, filling: _Filling) -> EvaluatorUse | None:
    if scenario.success_criteria or scenario.failure_criteria:
        config = {
            "successCriteria": filling.text(scenario.success_criteria, "successCriteria"),
            "failureCriteria": filling.text(scenario.failure_criteria, "failureCriteria"),
            "failureCriteriaMode": scenario.failure_criteria_mode,
        }
        settings = {key: item for key, item in config.items() if item is not None}
        return EvaluatorUse(type="llm-judge", config=settings, name=JUDGE)
    if scenario.criteria and not scenario.evaluators:
        return EvaluatorUse(type="criteria-judge")
    return None


def _defined(use: EvaluatorUse, registry: PluginRegistry) -> EvaluatorDefinition:
    definition = registry.get_evaluator(use.type)
    if definition is None:
        known = [item["type"] for item in registry.list_evaluator_types()]
        message = f'no evaluator is called "{use.type}"'
        raise InvalidInput(Problem(message, ("type",), suggestion(use.type, known, "there are")))
    return definition


def _resolve(use: EvaluatorUse, registry: PluginRegistry, filling: _Filling) -> Entry:
    definition = _defined(use, registry)
    return filling.use(definition, use.config, gate=use.gate, name=use.name, reduce=use.reduce)


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
    recorded: bool = False,
) -> PreparedScenario:
    """Everything one conversation needs, or ``InvalidInput`` with everything that is wrong.

    ``usual_max_messages`` holds where the scenario sets no limit; its script is never cut short by it.
    One that is ``recorded`` was held already: nobody needs to be able to speak, and its seeds are its own.
    """
    if recorded:
        scenario = _without_speakers(scenario)
    problems = ProblemList()
    subject = f'case "{case.name}"' if case and case.name else ""
    filling = _Filling(case.vars if case else None, problems, subject)
    entries = _entries(scenario, registry, filling)
    seeds = [filling.message(message, "messages", number) for number, message in enumerate(scenario.messages)]
    script = [filling.text(text, "script", number) for number, text in enumerate(scenario.script)]
    problems += [
        Problem("is blank once it is filled in", ("script", number), subject=subject)
        for number, text in enumerate(script)
        if not text.strip()
    ]
    instructions = filling.text(scenario.instructions, "instructions")
    criteria = [_filled_criterion(one, number, filling) for number, one in enumerate(scenario.criteria)]
    reference = case.ground_truth if case and case.ground_truth is not None else scenario.ground_truth
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
        ground_truth=filling.data(reference, "groundTruth"),
        context=filling.data({**scenario.context, **(case.context if case else {})}, "context"),
        stop_on_failure=scenario.stop_on_failure,
        simulated=has_model and _needs_simulation(persona, seeds, script, instructions),
    )
    with problems.collect():
        check_prepared(prepared, has_model=has_model, recorded=recorded)
    problems.check()
    return prepared


def _without_speakers(scenario: Scenario) -> Scenario:
    """The scenario without what was to be said; of the script only its length is left."""
    spoken = ["(recorded)"] * len(scenario.script)
    return scenario.model_copy(update={"messages": [], "script": spoken, "max_messages": None})


def gates_of(uses: Sequence[EvaluatorUse], registry: PluginRegistry) -> list[Gate | None]:
    """The gate each entry has with its config; none where that cannot be read, as with open placeholders."""
    gates: list[Gate | None] = []
    for use in uses:
        definition, gate = registry.get_evaluator(use.type), use.gate
        if gate is None and definition is not None:
            with suppress(InvalidInput):
                gate = definition.use(use.config).gate if callable(definition.gate) else definition.gate
        gates.append(gate)
    return gates


def check_case_values(config: Any, case: Case | None) -> None:
    """Refuse a connector whose request asks for values that the case does not have."""
    names: Sequence[str] = getattr(config, "case_names", ())
    subject = f'case "{case.name}"' if case and case.name else ""
    problems = ProblemList()
    with problems.collect("config", "requestTemplate", subject=subject):
        check_names(names, case.vars if case else None)
    problems.check()


def _awaits_agent(seeds: Sequence[Message]) -> bool:
    return bool(seeds) and seeds[-1].role in ("user", "tool")


def _needed(seeds: Sequence[Message], script: Sequence[str]) -> int:
    """How many messages the script takes: one of the user and one reply each, and a reply to the seeds."""
    return 2 * len(script) + _awaits_agent(seeds)


def _filled_criterion(criterion: EvaluationCriteria, number: int, filling: _Filling) -> EvaluationCriteria:
    description = filling.text(criterion.description, "criteria", number, "description")
    return criterion.model_copy(update={"description": description})


def _needs_simulation(
    persona: Persona | None, seeds: Sequence[Message], script: Sequence[str], instructions: str | None
) -> bool:
    """A persona goes on where the script ends; without one, only a scenario without a script is simulated."""
    return persona is not None or (not script and (bool(instructions) or not _awaits_agent(seeds)))


def check_prepared(prepared: PreparedScenario, *, has_model: bool, recorded: bool = False) -> None:
    """Somebody must speak first, unless it is recorded, and the limit must allow for a turn."""
    problems = ProblemList()
    if not recorded and not prepared.agent_first:
        if not prepared.script and not prepared.simulated:
            hint = "add a script, end the seed messages with a user message, "
            hint += "or set llmSettings so that the user can be simulated"
            problems.append(Problem("nobody can speak first", hint=hint))
        if prepared.max_messages < 2:
            message = "leaves no room for a user message and its reply"
            problems.append(Problem(message, ("maxMessages",), "2 is the least"))
    needed = 0 if recorded else _needed(prepared.seeds, prepared.script)
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
    """What a conversation may call on: models and embeddings; and how much evaluators may take."""

    llm: LanguageModel | None = None
    embedder: Embedder | None = None
    limits: EvaluatorLimits = DEFAULT_LIMITS
