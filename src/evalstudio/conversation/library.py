"""``run_scenario``: a first result in five lines, no project needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from ..base.concurrency import run_sync
from ..base.problems import InvalidInput, Problem, problems_of, suggestion
from ..base.redaction import environment_secrets
from ..cassettes import Cassette
from ..connectors.cassette_session import open_session
from ..connectors.contract import ConnectorDefinition, ConnectorSettings, ProjectScope, RunInfo
from ..connectors.http_pool import HttpPool
from ..connectors.python import callable_connector
from ..evaluators.contract import Embedder
from ..llm.client import Llm
from ..llm.embeddings import embedder_of
from ..llm.settings import LlmSettings, known_secrets
from ..plugins import PluginRegistry, create_registry
from ..telemetry import RunFacts, traced
from ..telemetry.opening import TelemetrySource
from .definitions import Case, Persona, Scenario
from .loop import converse, finished
from .preparation import Services, check_case_values, prepare
from .results import RunResult

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
AgentLike = Callable[..., Any] | ConnectorDefinition | Mapping[str, Any]


async def run_scenario(
    scenario: Scenario | Mapping[str, Any],
    connector: AgentLike,
    *,
    persona: Persona | Mapping[str, Any] | None = None,
    case: Case | Mapping[str, Any] | str | None = None,
    llm: Any = None,
    embedder: Embedder | None = None,
    registry: PluginRegistry | None = None,
    cassette: Cassette | None = None,
) -> RunResult:
    """Hold one conversation with an agent and say what it came to.

    ``connector`` is the agent: any callable of the messages, a connector definition, or a mapping with
    ``type`` (a name or a definition), ``baseUrl``, ``headers`` and ``config``. ``llm`` is an ``Llm``, its
    settings, or any object with an ``answer`` method; scripted scenarios without a judge need none. On a
    ``cassette`` the agent's answers, and those of a model given by its settings, are recorded or replayed.
    """
    scenario = read_definition(Scenario, scenario, "scenario")
    persona = None if persona is None else read_definition(Persona, persona, "persona")
    types = registry or create_registry()
    async with AsyncExitStack() as stack:
        model = await open_model(llm, cassette, stack)
        row = chosen_case(scenario, case)
        prepared = prepare(scenario, types, case=row, persona=persona, has_model=model is not None)
        pool = HttpPool()
        stack.push_async_callback(pool.close)
        definition, settings = _agent(connector, types)
        check_case_values(settings.config, row)
        run = RunInfo(
            id=uuid4().hex,
            scenario=scenario.name,
            case=(row.name or "") if row else "",
            case_values=dict(row.vars) if row else {},
        )
        headers = persona.headers if persona else {}
        key = " · ".join(part for part in (run.scenario, run.case, persona.name if persona else "") if part)
        session = open_session(
            definition,
            settings,
            pool=pool,
            run=run,
            extra_headers=headers,
            cassette=cassette,
            run_key=key,
            secrets=secrets_of(model),
        )
        services = Services(model, embedder or embedder_of(model))
        source = TelemetrySource(secrets=secrets_of(model))
        stack.push_async_callback(source.close)
        facts = RunFacts(run.id, None, None, scenario.name, run.case or None, connector=definition.type)
        return await traced(source.opened, facts, finished(converse(prepared, session, services)))


def parameters_of(function: Callable[P, Any]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Gives a function that passes everything on the parameters of the one it calls."""
    return cast(Any, wraps(function, assigned=()))


@parameters_of(run_scenario)
def run_scenario_sync(*args: Any, **options: Any) -> RunResult:
    """``run_scenario`` from plain code, also where a loop is already running."""
    return run_sync(lambda: run_scenario(*args, **options))


def read_definition(model: type[M], value: object, subject: str) -> M:
    """A definition given as data; one that is a model already comes back as it is."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error, value, model)).within(subject=subject) from None


async def open_model(llm: Any, cassette: Cassette | None, stack: AsyncExitStack) -> Any:
    if isinstance(llm, Mapping):
        llm = LlmSettings.model_validate(llm)
    if isinstance(llm, LlmSettings):
        return await stack.enter_async_context(Llm(llm, cassette=cassette))
    return llm


def secrets_of(model: Any) -> frozenset[str]:
    keys = known_secrets(model.settings) if isinstance(model, Llm) else []
    return environment_secrets() | {key for key in keys if key}


def chosen_case(scenario: Scenario, case: Case | Mapping[str, Any] | str | None) -> Case | None:
    if isinstance(case, Case | Mapping):
        return read_definition(Case, case, "case")
    cases = scenario.cases if isinstance(scenario.cases, list) else []
    if isinstance(case, str):
        row = next((item for item in cases if item.name == case), None)
        if row is None:
            names = ", ".join(item.name or "(unnamed)" for item in cases) or "none"
            raise InvalidInput(Problem(f'no case is called "{case}"', hint=f"there are: {names}"))
        return row
    if len(cases) > 1 or isinstance(scenario.cases, str):
        raise InvalidInput(Problem("the scenario has several cases", hint="say which with case="))
    return cases[0] if cases else None


Agent = tuple[ConnectorDefinition, ConnectorSettings[Any]]


def _agent(connector: AgentLike, registry: PluginRegistry) -> Agent:
    if not isinstance(connector, Mapping):
        definition = (
            connector if isinstance(connector, ConnectorDefinition) else callable_connector(connector)
        )
        return definition, definition.settings()
    fields = cast(Mapping[str, Any], connector)
    definition = _definition(fields.get("type", ""), registry)
    address, headers = fields.get("baseUrl") or fields.get("base_url") or "", fields.get("headers") or ()
    scope = ProjectScope(Path.cwd())
    return definition, definition.settings(fields.get("config"), str(address), dict(headers), scope)


def _definition(kind: object, registry: PluginRegistry) -> ConnectorDefinition:
    if isinstance(kind, ConnectorDefinition):
        return kind
    definition = registry.get_connector(str(kind))
    if definition is None:
        known = [item["type"] for item in registry.list_connector_types()]
        hint = suggestion(str(kind), known, "there are:")
        raise InvalidInput(Problem(f'no connector type is called "{kind}"', hint=hint))
    return definition
