"""``/api/personas``: who simulated users are."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...conversation.definitions import Persona
from ...project.entities import StoredPersona
from ...storage.contract import Filters
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import ETAG, IfMatch, OnceDep, PagingDep, PeriodDep, StudioDep, TextQuery, set_etag
from ..shapes.base import Identity
from ..shapes.system import PersonaPage
from ..shelf import PERSONAS

router = APIRouter(prefix="/personas", tags=["personas"], route_class=JsonRoute)


@router.get("", operation_id="listPersonas", responses=refusals())
async def list_personas(
    studio: StudioDep, paging: PagingDep, period: PeriodDep, text: TextQuery = None
) -> PersonaPage:
    """Personas, newest first."""
    page = await PERSONAS.page(studio, Filters(since=period.since, until=period.until, text=text), paging)
    return PersonaPage.model_construct(items=page.items, cursor=page.cursor)


@router.post(
    "", operation_id="createPersona", status_code=201, responses={201: ETAG, **refusals(409, 413, 415)}
)
async def create_persona(
    studio: StudioDep, body: Persona, response: Response, once: OnceDep
) -> StoredPersona:
    """Make a persona."""
    made = await PERSONAS.create(studio, body, once)
    set_etag(response, made.version)
    return made


@router.get("/{id}", operation_id="getPersona", responses={200: ETAG, **refusals(404)})
async def get_persona(studio: StudioDep, id: Identity, response: Response) -> StoredPersona:  # noqa: A002
    """One persona."""
    found = await PERSONAS.get(studio, id)
    set_etag(response, found.version)
    return found


@router.put(
    "/{id}",
    operation_id="updatePersona",
    responses={200: ETAG, **refusals(404, 409, 412, 413, 415)},
)
async def update_persona(
    studio: StudioDep,
    id: Identity,  # noqa: A002
    body: Persona,
    response: Response,
    if_match: IfMatch = None,
) -> StoredPersona:
    """Replace a persona."""
    kept = await PERSONAS.replace(studio, id, body, if_match)
    set_etag(response, kept.version)
    return kept


@router.delete("/{id}", operation_id="deletePersona", status_code=204, responses=refusals(404, 409, 412))
async def delete_persona(studio: StudioDep, id: Identity, if_match: IfMatch = None) -> None:  # noqa: A002
    """Delete a persona. What is in use stays."""
    await PERSONAS.delete(studio, id, if_match)
