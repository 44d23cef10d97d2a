"""Trying one scenario against one connector, as one of its personas and with one of its cases if wished."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from ..configs import closest
from ..execution.request import ExecutionRequest
from ..project.entities import StoredScenario
from ..project.validation import cases_of
from ..storage.errors import NotFound
from .errors import ApiError
from .requests import Studio
from .shapes.runs import StartRun

T = TypeVar("T")


async def trial_request(studio: Studio, body: StartRun) -> ExecutionRequest:
    scenario = await _known("scenarioId", studio.store.get("scenario", body.scenario_id))
    connector = await _known("connectorId", studio.store.get("connector", body.connector_id))
    if body.persona_id is not None:
        await _known("personaId", studio.store.get("persona", body.persona_id))
        scenario = scenario.model_copy(update={"persona_ids": [body.persona_id]})
    if body.case_name is not None:
        scenario = await _with_case(studio, scenario, body.case_name)
    return ExecutionRequest([scenario], [connector], body.repetitions, trigger="try", labels=body.labels)


async def _known(field: str, reading: Awaitable[T]) -> T:
    try:
        return await reading
    except NotFound as error:
        raise ApiError(422, f"{field}: {error}") from None


async def _with_case(studio: Studio, scenario: StoredScenario, name: str) -> StoredScenario:
    cases = await asyncio.to_thread(cases_of, scenario, studio.workspace.folder)
    found = [case for number, case in enumerate(cases, 1) if (case.name or f"case {number}") == name]
    if not found:
        names = [case.name or f"case {number}" for number, case in enumerate(cases, 1)]
        raise ApiError(422, f'caseName: the scenario has no case "{name}"{closest(name, names)}')
    return scenario.model_copy(update={"cases": [found[0].model_copy(update={"name": name})]})
