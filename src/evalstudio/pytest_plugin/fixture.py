"""The fixture ``evalstudio``: scenarios against a function or a connector, with a result to assert."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack, cast

import pytest
from pydantic import BaseModel, ValidationError

from ..base.concurrency import run_sync
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem, problems_of, suggestion
from ..connectors.contract import ConnectorDefinition
from ..connectors.python import callable_connector
from ..conversation.definitions import Case, EvaluatorUse, Persona, Scenario
from ..evaluators.definition import Entry
from ..execution.file_definitions import named_id
from ..execution.request import ExecutionRequest
from ..plugins.registry import Definition
from ..project.changes import SUFFIXES, ProjectState
from ..project.entities import StoredConnector, StoredPersona, StoredScenario, name_key
from . import RESULTS, RUNS
from .definitions import FileDefinitions
from .engine import Engine
from .results import ScenarioResult, run_result

ScenarioLike = Scenario | Mapping[str, Any] | str | Path
AgentLike = Callable[..., Any] | ConnectorDefinition | Mapping[str, Any] | str
PersonaLike = Persona | Mapping[str, Any] | str
CaseLike = Case | Mapping[str, Any]
_FUNCTION = "python-function"


@dataclass(slots=True)
class _Call:
    """What one call needs, gathered from its arguments."""

    state: ProjectState
    definitions: list[Definition] = field(default_factory=list[Definition])

    def add(self, entity: StoredPersona | StoredScenario | StoredConnector, kind: Any) -> None:
        self.state.entities[kind, name_key(entity.name)] = entity


class RunOptions(TypedDict, total=False):
    """What a scenario may be run with."""

    case: CaseLike | str | None
    cases: Sequence[CaseLike] | str | None
    persona: PersonaLike | None
    repetitions: int
    llm: Any


class ScenarioRunner:
    """Runs scenarios for one test."""

    def __init__(self, node: pytest.Item) -> None:
        self._node = node
        self._engine = Engine.of(node.config)

    def run(
        self,
        scenario: ScenarioLike,
        agent: AgentLike,
        **options: Unpack[RunOptions],
    ) -> ScenarioResult:
        """Hold the conversations of a scenario with an agent and say what they came to.

        ``scenario`` is one in code, a file of some, or the name of one in the files that are collected.
        ``agent`` is any callable of the messages, a connector's definition or settings, or the name of one in
        the files. Every case runs, or those of ``cases`` (a list, or a CSV or JSONL file), or one ``case``.
        In an async test, ``run_async`` stays in the loop of the test.
        """
        return run_sync(lambda: self._run(scenario, agent, **options))

    async def run_async(
        self,
        scenario: ScenarioLike,
        agent: AgentLike,
        **options: Unpack[RunOptions],
    ) -> ScenarioResult:
        """The same in the event loop of the test, which must be asyncio's."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError("run_async needs asyncio; under trio call run() in a thread") from None
        return await self._run(scenario, agent, **options)

    async def _run(
        self,
        scenario: ScenarioLike,
        agent: AgentLike,
        *,
        case: CaseLike | str | None = None,
        cases: Sequence[CaseLike] | str | None = None,
        persona: PersonaLike | None = None,
        repetitions: int = 1,
        llm: Any = None,
    ) -> ScenarioResult:
        if repetitions < 1:
            raise InvalidInput(f"repetitions is 1 or more, not {repetitions}")
        call = _Call(self._definitions(scenario))
        scenarios = self._scenarios(call, scenario)
        if case is not None or cases is not None:
            scenarios = [self._with_cases(one, case, cases) for one in scenarios]
        if persona is not None:
            person = _persona(call, persona)
            scenarios = [one.model_copy(update={"persona_ids": [person.id]}) for one in scenarios]
        request = ExecutionRequest(scenarios, [_connector(call, agent)], repetitions, trigger="pytest")
        finished = await self._engine.run(request, call.state, definitions=call.definitions, llm=llm)
        self._node.stash.setdefault(RUNS, []).extend(finished)
        result = ScenarioResult([run_result(one, repeated=repetitions > 1) for one in finished])
        self._node.stash.setdefault(RESULTS, []).append(result)
        return result

    def _definitions(self, scenario: ScenarioLike) -> ProjectState:
        """What may be referred to by name: the file that is run, else the files that are collected."""
        definitions = FileDefinitions.of(self._node.config)
        path = self._path(scenario)
        known = definitions.read([path]).state if path else definitions.collected().state
        return ProjectState(dict(known.entities), dict(known.documents))

    def _path(self, scenario: ScenarioLike) -> Path | None:
        if isinstance(scenario, str) and not scenario.lower().endswith(SUFFIXES):
            return None
        return self._engine.root / scenario if isinstance(scenario, str | Path) else None

    def _scenarios(self, call: _Call, scenario: ScenarioLike) -> list[StoredScenario]:
        if self._path(scenario) is not None:
            scenarios: list[StoredScenario] = call.state.of_kind("scenario")
            if not scenarios:
                raise InvalidInput.at(str(scenario), "has no scenarios")
            return scenarios
        if isinstance(scenario, str):
            return [_named(call, "scenario", scenario)]
        return [_scenario(call, cast(Scenario | Mapping[str, Any], scenario))]

    def _with_cases(
        self, scenario: StoredScenario, case: CaseLike | str | None, cases: Sequence[CaseLike] | str | None
    ) -> StoredScenario:
        from ..project.validation import cases_of

        if case is not None and cases is not None:
            raise InvalidInput("case and cases exclude each other")
        if cases is not None and not cases:
            raise InvalidInput("cases is an empty table; nothing would be run")
        if cases is not None:
            rows = cases if isinstance(cases, str) else [_read(Case, one, "case") for one in cases]
            return scenario.model_copy(update={"cases": rows})
        if not isinstance(case, str):
            return scenario.model_copy(update={"cases": [_read(Case, case, "case")]})
        own = cases_of(scenario, self._engine.folder)
        named = {one.name or f"case {number}": one for number, one in enumerate(own, 1)}
        if case not in named:
            raise InvalidInput(Problem(f'no case is called "{case}"', hint=suggestion(case, [*named])))
        return scenario.model_copy(update={"cases": [named[case].model_copy(update={"name": case})]})


def _scenario(call: _Call, scenario: Scenario | Mapping[str, Any]) -> StoredScenario:
    """A scenario that is written in a test. Evaluators given as code are registered for this call."""
    names: list[str] = []
    if isinstance(scenario, Mapping):
        fields = dict(scenario)
        names = list(fields.pop("personas", ()))
        scenario = _read(Scenario, fields, "scenario")
    personas = [_named(call, "persona", name).id for name in names] or scenario.persona_ids
    evaluators = [_use(call, one) for one in scenario.evaluators]
    values = {name: getattr(scenario, name) for name in Scenario.model_fields}
    values |= {"evaluators": evaluators, "persona_ids": personas, "id": named_id("scenario", scenario.name)}
    return StoredScenario.model_validate(values)


def _use(call: _Call, evaluator: EvaluatorUse | Entry) -> EvaluatorUse:
    if isinstance(evaluator, EvaluatorUse):
        return evaluator
    definition = evaluator.definition
    call.definitions.append(definition)
    usual = definition.use(evaluator.written)
    return EvaluatorUse(
        type=definition.type,
        config=dict(evaluator.written),
        name=evaluator.name,
        gate=None if evaluator.gate == usual.gate else evaluator.gate,
        reduce=None if evaluator.reduce == usual.reduce else evaluator.reduce,
    )


def _persona(call: _Call, persona: PersonaLike) -> StoredPersona:
    if isinstance(persona, str):
        return _named(call, "persona", persona)
    values = _read(Persona, persona, "persona").model_dump()
    stored = StoredPersona.model_validate({**values, "id": named_id("persona", values["name"])})
    call.add(stored, "persona")
    return stored


def _connector(call: _Call, agent: AgentLike) -> StoredConnector:
    if isinstance(agent, str):
        return _named(call, "connector", agent)
    if isinstance(agent, Mapping):
        return _configured(call, dict(cast(Mapping[str, Any], agent)))
    if isinstance(agent, ConnectorDefinition):
        call.definitions.append(agent)
        return _stored(name=agent.type, type=agent.type)
    name = getattr(agent, "__qualname__", None) or type(agent).__qualname__
    call.definitions.append(replace(callable_connector(agent), type=_FUNCTION))
    return _stored(name=name.replace("<locals>.", ""), type=_FUNCTION)


def _configured(call: _Call, fields: dict[str, Any]) -> StoredConnector:
    kind = fields.get("type")
    if isinstance(kind, ConnectorDefinition):
        call.definitions.append(kind)
        fields["type"] = kind.type
    return _stored(**{"name": fields.get("type"), **fields})


def _stored(**fields: Any) -> StoredConnector:
    identity = named_id("connector", str(fields.get("name")))
    return _read(StoredConnector, {**fields, "id": identity}, "connector")


def _named(call: _Call, kind: Any, name: str) -> Any:
    entity = call.state.entity((kind, name_key(name)))
    if entity is None:
        names = [one.name for one in call.state.of_kind(kind)]
        hint = suggestion(name, names) if names else "name the files with evalstudio_files in the ini file"
        raise InvalidInput(Problem(f'there is no {kind} called "{name}"', hint=hint))
    return entity


M = TypeVar("M", bound=BaseModel)


def _read(model: type[M], value: object, subject: str) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error, value, model)).within(subject=subject) from None
