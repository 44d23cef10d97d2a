"""Trying one scenario against one connector, as one of its personas and with one of its cases if wished."""

from __future__ import annotations

import asyncio
from typing import cast

from ..base.problems import InvalidInput, Problem, suggestion
from ..execution.request import ExecutionRequest
from ..project.entities import StoredConnector, StoredScenario
from ..project.validation import cases_of
from ..storage.contract import DefinitionKind
from ..storage.errors import NotFound
from .requests import Studio
from .shapes.runs import StartRun


async def trial_request(studio: Studio, body: StartRun) -> ExecutionRequest:
    scenario = cast(StoredScenario, await _wanted(studio, "scenario", "scenarioId", body.scenario_id))
    connector = cast(StoredConnector, await _wanted(studio, "connector", "connectorId", body.connector_id))
    if body.persona_id is not None:
        await _wanted(studio, "persona", "personaId", body.persona_id)
        scenario = scenario.model_copy(update={"persona_ids": [body.persona_id]})
    if body.case_name is not None:
        scenario = await _with_case(studio, scenario, body.case_name)
    return ExecutionRequest([scenario], [connector], body.repetitions, trigger="try", labels=body.labels)


async def _wanted(studio: Studio, kind: DefinitionKind, field: str, wanted: str) -> object:
    try:
        return await studio.store.get(kind, wanted)
    except NotFound as error:
        raise InvalidInput(Problem(str(error), (field,))) from None


async def _with_case(studio: Studio, scenario: StoredScenario, name: str) -> StoredScenario:
    cases = await asyncio.to_thread(cases_of, scenario, studio.workspace.folder)
    found = [case for number, case in enumerate(cases, 1) if (case.name or f"case {number}") == name]
    if not found:
        names = [case.name or f"case {number}" for number, case in enumerate(cases, 1)]
        message = f'the scenario has no case "{name}"'
        raise InvalidInput(Problem(message, ("caseName",), suggestion(name, names)))
    return scenario.model_copy(update={"cases": [found[0].model_copy(update={"name": name})]})
