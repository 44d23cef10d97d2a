"""``/api/connectors``: how agents are reached."""

from __future__ import annotations

from time import perf_counter
from uuid import uuid4

from fastapi import APIRouter, Response

from ...connectors.connection import CallPolicy
from ...connectors.contract import ConnectorError, RunInfo
from ...connectors.session import AgentSession, test_connector
from ...project.entities import Connector, StoredConnector
from ...storage.contract import Filters
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import ETAG, IfMatch, OnceDep, PagingDep, PeriodDep, StudioDep, TextQuery, line_to, set_etag
from ..shapes.base import Identity
from ..shapes.system import ConnectorPage, ConnectorTest, ConnectorType, Invocation, InvocationResult
from ..shelf import CONNECTORS

router = APIRouter(prefix="/connectors", tags=["connectors"], route_class=JsonRoute)

# Somebody is waiting in front of a screen: the first answer counts.
_PROMPT = CallPolicy(retries=0, timeout_seconds=30.0, total_seconds=30.0)


@router.get("/types", operation_id="listConnectorTypes", responses=refusals())
async def list_types(studio: StudioDep) -> list[ConnectorType]:
    """Every kind of connector there is, built in or brought by a plugin."""
    return [ConnectorType.model_validate(one) for one in studio.workspace.registry.list_connector_types()]


@router.get("", operation_id="listConnectors", responses=refusals())
async def list_connectors(
    studio: StudioDep, paging: PagingDep, period: PeriodDep, text: TextQuery = None
) -> ConnectorPage:
    """Connectors, newest first."""
    page = await CONNECTORS.page(studio, Filters(since=period.since, until=period.until, text=text), paging)
    return ConnectorPage.model_construct(items=page.items, cursor=page.cursor)


@router.post(
    "", operation_id="createConnector", status_code=201, responses={201: ETAG, **refusals(409, 413, 415)}
)
async def create_connector(
    studio: StudioDep, body: Connector, response: Response, once: OnceDep
) -> StoredConnector:
    """Make a connector."""
    made = await CONNECTORS.create(studio, body, once)
    set_etag(response, made.version)
    return made


@router.get("/{id}", operation_id="getConnector", responses={200: ETAG, **refusals(404)})
async def get_connector(studio: StudioDep, id: Identity, response: Response) -> StoredConnector:  # noqa: A002
    """One connector."""
    found = await CONNECTORS.get(studio, id)
    set_etag(response, found.version)
    return found


@router.put(
    "/{id}",
    operation_id="updateConnector",
    responses={200: ETAG, **refusals(404, 409, 412, 413, 415)},
)
async def update_connector(
    studio: StudioDep,
    id: Identity,  # noqa: A002
    body: Connector,
    response: Response,
    if_match: IfMatch = None,
) -> StoredConnector:
    """Replace a connector."""
    kept = await CONNECTORS.replace(studio, id, body, if_match)
    set_etag(response, kept.version)
    return kept


@router.delete("/{id}", operation_id="deleteConnector", status_code=204, responses=refusals(404, 409, 412))
async def delete_connector(studio: StudioDep, id: Identity, if_match: IfMatch = None) -> None:  # noqa: A002
    """Delete a connector. What is in use stays."""
    await CONNECTORS.delete(studio, id, if_match)


@router.post("/{id}/test", operation_id="testConnector", responses=refusals(404))
async def test(studio: StudioDep, id: Identity) -> ConnectorTest:  # noqa: A002
    """Find out whether the agent is there and answers."""
    definition, settings = line_to(studio, await CONNECTORS.kept(studio, id))
    found = await test_connector(definition, settings, pool=studio.workspace.http, policy=_PROMPT)
    return ConnectorTest(
        success=found.success, latency_ms=found.latency_ms, response=found.response, error=found.error
    )


@router.post("/{id}/invoke", operation_id="invokeConnector", responses=refusals(404, 413, 415))
async def invoke(studio: StudioDep, id: Identity, body: Invocation) -> InvocationResult:  # noqa: A002
    """Say something to the agent."""
    definition, settings = line_to(studio, await CONNECTORS.kept(studio, id))
    run = RunInfo(id=f"invoke-{uuid4().hex[:12]}")
    session = AgentSession(definition, settings, pool=studio.workspace.http, run=run, policy=_PROMPT)
    start = perf_counter()
    try:
        reply = await session.invoke(body.messages, body.messages)
    except ConnectorError as error:
        return InvocationResult(success=False, latency_ms=(perf_counter() - start) * 1000, error=str(error))
    return InvocationResult(
        success=True, latency_ms=reply.latency_ms, messages=reply.messages, tokens_usage=reply.tokens_usage
    )
