"""``run_scenario``: a first result in five lines, no project needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from ..base.concurrency import run_sync
from ..base.problems import InvalidInput, Problem, suggestion
from ..cassettes import Cassette
from ..connectors.cassette_session import open_session
from ..connectors.contract import ConnectorDefinition, ConnectorSettings, ProjectScope, RunInfo
from ..connectors.http_pool import HttpPool
from ..connectors.python import callable_connector
from ..evaluators.contract import Embedder
from ..llm.client import Llm
from ..llm.embeddings import LocalEmbedder
from ..llm.settings import LlmSettings
from ..plugins import PluginRegistry, create_registry
from .definitions import Case, Persona, Scenario
from .loop import converse, finished
from .preparation import Services, prepare
from .results import RunResult

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
    wanted = scenario if isinstance(scenario, Scenario) else Scenario.model_validate(scenario)
    who = persona if isinstance(persona, Persona | None) else Persona.model_validate(persona)
    types = registry or create_registry()
    async with AsyncExitStack() as stack:
        model = await _model(llm, cassette, stack)
        row = _case(wanted, case)
        plan = prepare(wanted, types, case=row, persona=who, has_model=model is not None)
        pool = HttpPool()
        stack.push_async_callback(pool.close)
        definition, settings = _agent(connector, types)
        run = RunInfo(id=uuid4().hex, scenario=wanted.name, case=(row.name or "") if row else "")
        headers = who.headers if who else {}
        key = " · ".join(part for part in (run.scenario, run.case, who.name if who else "") if part)
        session = open_session(
            definition, settings, pool=pool, run=run, extra_headers=headers, cassette=cassette, run_key=key
        )
        services = Services(model, embedder or (model if isinstance(model, Llm) else LocalEmbedder()))
        return await finished(converse(plan, session, services))


def run_scenario_sync(
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
    """``run_scenario`` from plain code, also where a loop is already running."""
    return run_sync(
        lambda: run_scenario(
            scenario,
            connector,
            persona=persona,
            case=case,
            llm=llm,
            embedder=embedder,
            registry=registry,
            cassette=cassette,
        )
    )


async def _model(llm: Any, cassette: Cassette | None, stack: AsyncExitStack) -> Any:
    if isinstance(llm, Mapping):
        llm = LlmSettings.model_validate(llm)
    if isinstance(llm, LlmSettings):
        return await stack.enter_async_context(Llm(llm, cassette=cassette))
    return llm


def _case(scenario: Scenario, case: Case | Mapping[str, Any] | str | None) -> Case | None:
    if isinstance(case, Case):
        return case
    if isinstance(case, Mapping):
        return Case.model_validate(case)
    cases = scenario.cases if isinstance(scenario.cases, list) else []
    if isinstance(case, str):
        found = next((item for item in cases if item.name == case), None)
        if found is None:
            names = ", ".join(item.name or "(unnamed)" for item in cases) or "none"
            raise InvalidInput(Problem(f'no case is called "{case}"', hint=f"there are: {names}"))
        return found
    if len(cases) > 1 or isinstance(scenario.cases, str):
        raise InvalidInput(Problem("the scenario has several cases", hint="say which with case="))
    return cases[0] if cases else None


def _agent(
    connector: AgentLike, registry: PluginRegistry
) -> tuple[ConnectorDefinition, ConnectorSettings[Any]]:
    if isinstance(connector, Mapping):
        return _configured(cast(Mapping[str, Any], connector), registry)
    definition = connector if isinstance(connector, ConnectorDefinition) else callable_connector(connector)
    return definition, ConnectorSettings(definition.config.parse(definition.type, {}))


def _configured(
    fields: Mapping[str, Any], registry: PluginRegistry
) -> tuple[ConnectorDefinition, ConnectorSettings[Any]]:
    definition = _definition(fields.get("type", ""), registry)
    config = definition.config.parse(definition.type, fields.get("config"))
    address = fields.get("baseUrl") or fields.get("base_url") or ""
    return definition, ConnectorSettings(
        config, str(address), dict(fields.get("headers") or {}), ProjectScope(Path.cwd())
    )


def _definition(kind: object, registry: PluginRegistry) -> ConnectorDefinition:
    if isinstance(kind, ConnectorDefinition):
        return kind
    definition = registry.get_connector(str(kind))
    if definition is None:
        known = [item["type"] for item in registry.list_connector_types()]
        hint = suggestion(str(kind), known, "there are:")
        raise InvalidInput(Problem(f'no connector type is called "{kind}"', hint=hint))
    return definition
