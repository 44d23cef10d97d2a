"""``/api/evals``: sets of scenarios for connectors."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...project.entities import Eval, StoredEval
from ...storage.contract import Filters
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import ETAG, IfMatch, OnceDep, PagingDep, PeriodDep, StudioDep, TextQuery, set_etag
from ..shapes.base import Identity
from ..shapes.system import EvalPage
from ..shelf import EVALS

router = APIRouter(prefix="/evals", tags=["evals"], route_class=JsonRoute)


@router.get("", operation_id="listEvals", responses=refusals())
async def list_evals(
    studio: StudioDep, paging: PagingDep, period: PeriodDep, text: TextQuery = None
) -> EvalPage:
    """Evals, newest first."""
    page = await EVALS.page(studio, Filters(since=period.since, until=period.until, text=text), paging)
    return EvalPage.model_construct(items=page.items, cursor=page.cursor)


@router.post("", operation_id="createEval", status_code=201, responses={201: ETAG, **refusals(409, 413, 415)})
async def create_eval(studio: StudioDep, body: Eval, response: Response, once: OnceDep) -> StoredEval:
    """Make an eval."""
    made = await EVALS.create(studio, body, once)
    set_etag(response, made.version)
    return made


@router.get("/{id}", operation_id="getEval", responses={200: ETAG, **refusals(404)})
async def get_eval(studio: StudioDep, id: Identity, response: Response) -> StoredEval:  # noqa: A002
    """One eval."""
    found = await EVALS.get(studio, id)
    set_etag(response, found.version)
    return found


@router.put(
    "/{id}",
    operation_id="updateEval",
    responses={200: ETAG, **refusals(404, 409, 412, 413, 415)},
)
async def update_eval(
    studio: StudioDep,
    id: Identity,  # noqa: A002
    body: Eval,
    response: Response,
    if_match: IfMatch = None,
) -> StoredEval:
    """Replace an eval."""
    kept = await EVALS.replace(studio, id, body, if_match)
    set_etag(response, kept.version)
    return kept


@router.delete("/{id}", operation_id="deleteEval", status_code=204, responses=refusals(404, 409, 412))
async def delete_eval(studio: StudioDep, id: Identity, if_match: IfMatch = None) -> None:  # noqa: A002
    """Delete an eval. What is in use stays."""
    await EVALS.delete(studio, id, if_match)
