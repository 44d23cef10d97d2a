"""``/api/scenarios``: what is tested."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query, Response

from ...conversation.definitions import Persona, Scenario
from ...conversation.preparation import prepare
from ...conversation.simulation import user_prompt
from ...project.entities import StoredScenario
from ...project.validation import cases_of
from ...storage.contract import Filters
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import ETAG, IfMatch, OnceDep, PagingDep, PeriodDep, StudioDep, TextQuery, set_etag
from ..shapes.base import Identity, Text
from ..shapes.system import Prompt, ScenarioPage
from ..shelf import SCENARIOS

router = APIRouter(prefix="/scenarios", tags=["scenarios"], route_class=JsonRoute)


@router.get("", operation_id="listScenarios", responses=refusals())
async def list_scenarios(
    studio: StudioDep,
    paging: PagingDep,
    period: PeriodDep,
    text: TextQuery = None,
    tag: Annotated[list[Text] | None, Query(max_length=20, description="With all of these tags")] = None,
) -> ScenarioPage:
    """Scenarios, newest first."""
    filters = Filters(since=period.since, until=period.until, text=text, tags=tag or ())
    page = await SCENARIOS.page(studio, filters, paging)
    return ScenarioPage.model_construct(items=page.items, cursor=page.cursor)


@router.post(
    "", operation_id="createScenario", status_code=201, responses={201: ETAG, **refusals(409, 413, 415)}
)
async def create_scenario(
    studio: StudioDep, body: Scenario, response: Response, once: OnceDep
) -> StoredScenario:
    """Make a scenario."""
    made = await SCENARIOS.create(studio, body, once)
    set_etag(response, made.version)
    return made


@router.get("/{id}", operation_id="getScenario", responses={200: ETAG, **refusals(404)})
async def get_scenario(studio: StudioDep, id: Identity, response: Response) -> StoredScenario:  # noqa: A002
    """One scenario."""
    found = await SCENARIOS.get(studio, id)
    set_etag(response, found.version)
    return found


@router.put(
    "/{id}",
    operation_id="updateScenario",
    responses={200: ETAG, **refusals(404, 409, 412, 413, 415)},
)
async def update_scenario(
    studio: StudioDep,
    id: Identity,  # noqa: A002
    body: Scenario,
    response: Response,
    if_match: IfMatch = None,
) -> StoredScenario:
    """Replace a scenario."""
    kept = await SCENARIOS.replace(studio, id, body, if_match)
    set_etag(response, kept.version)
    return kept


@router.delete("/{id}", operation_id="deleteScenario", status_code=204, responses=refusals(404, 409, 412))
async def delete_scenario(studio: StudioDep, id: Identity, if_match: IfMatch = None) -> None:  # noqa: A002
    """Delete a scenario. What is in use stays."""
    await SCENARIOS.delete(studio, id, if_match)


@router.get("/{id}/prompt", operation_id="getScenarioPrompt", responses=refusals(404))
async def get_prompt(
    studio: StudioDep,
    id: Identity,  # noqa: A002
    persona_id: Annotated[Identity | None, Query(alias="personaId")] = None,
) -> Prompt:
    """What the simulated user of a scenario is told, as one of its personas; its first case filled in."""
    scenario = await SCENARIOS.kept(studio, id)
    persona = await studio.store.get("persona", persona_id) if persona_id else None
    cases = cases_of(scenario, studio.workspace.folder)
    plan = prepare(
        scenario,
        studio.workspace.registry,
        case=cases[0] if cases else None,
        persona=cast("Persona | None", persona),
        has_model=True,
    )
    return Prompt(prompt=user_prompt(plan))
