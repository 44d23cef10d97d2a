"""``run_scenario``: a first result in five lines, no project needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

from ..connectors.functions import callable_connector
from ..connectors.contract import ConnectorDefinition, ConnectorSettings, RunInfo
from ..connectors.http_pool import HttpPool
from ..connectors.session import AgentSession
from ..evaluators.contract import Embedder
from ..llm.client import Llm
from ..llm.embeddings import LocalEmbedder
from ..llm.settings import LlmSettings
from ..plugins import PluginRegistry, create_registry
from ..sync import run_sync
from .definitions import Case, Persona, Scenario
from .loop import converse, finished
from .preparation import InvalidScenario, Services, prepare
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
) -> RunResult:
    """Hold one conversation with an agent and say what it came to.

    ``connector`` is the agent: any callable of the messages, a connector definition, or a mapping with
    ``type``, ``baseUrl``, ``headers`` and ``config``. ``llm`` is an ``Llm``, its settings, or any object
    with an ``answer`` method; scripted scenarios without a judge need none.
    """
    wanted = scenario if isinstance(scenario, Scenario) else Scenario.model_validate(scenario)
    who = persona if isinstance(persona, Persona | None) else Persona.model_validate(persona)
    types = registry or create_registry()
    async with AsyncExitStack() as stack:
        model = await _model(llm, stack)
        plan = prepare(wanted, types, case=_case(wanted, case), persona=who, has_model=model is not None)
        pool = HttpPool()
        stack.push_async_callback(pool.close)
        definition, settings = _agent(connector, types)
        run = RunInfo(id=uuid4().hex)
        headers = who.headers if who else {}
        session = AgentSession(definition, settings, pool=pool, run=run, extra_headers=headers)
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
) -> RunResult:
    """``run_scenario`` from plain code, also where a loop is already running."""
    return run_sync(
        lambda: run_scenario(
            scenario, connector, persona=persona, case=case, llm=llm, embedder=embedder, registry=registry
        )
    )


async def _model(llm: Any, stack: AsyncExitStack) -> Any:
    if isinstance(llm, Mapping):
        llm = LlmSettings.model_validate(llm)
    return await stack.enter_async_context(Llm(llm)) if isinstance(llm, LlmSettings) else llm


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
            raise InvalidScenario(f'no case is called "{case}"; there are: {names}')
        return found
    if len(cases) > 1 or isinstance(scenario.cases, str):
        raise InvalidScenario("the scenario has several cases; say which with case=")
    return cases[0] if cases else None


def _agent(
    connector: AgentLike, registry: PluginRegistry
) -> tuple[ConnectorDefinition, ConnectorSettings[Any]]:
    if isinstance(connector, ConnectorDefinition):
        return connector, ConnectorSettings(connector.config.parse(connector.type, {}))
    if isinstance(connector, Mapping):
        kind = str(connector.get("type", ""))
        definition = registry.get_connector(kind)
        if definition is None:
            known = ", ".join(item["type"] for item in registry.list_connector_types())
            raise InvalidScenario(f'no connector type is called "{kind}"; there are: {known}')
        config = definition.config.parse(kind, connector.get("config"))
        address = connector.get("baseUrl") or connector.get("base_url") or ""
        return definition, ConnectorSettings(config, str(address), dict(connector.get("headers") or {}))
    definition = callable_connector(connector)
    return definition, ConnectorSettings(definition.config.parse(definition.type, {}))
