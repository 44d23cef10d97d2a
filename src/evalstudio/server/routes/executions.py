"""``/api/executions``: evals at work."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, cast

from fastapi import APIRouter, Query

from ...execution.starting import Order, only_failed, order_of, start_execution
from ...project.entities import Execution, ExecutionStatus, StoredConnector, StoredEval
from ...storage.contract import Filters
from ...storage.errors import NotFound
from ..bodies import JsonRoute
from ..errors import ApiError, refusals
from ..paging import PagingDep, PeriodDep, TextQuery
from ..shapes.base import Identity
from ..shapes.pages import ExecutionPage
from ..shapes.running import Affected, StartExecution
from ..studio import Studio, StudioDep
from ..versions import OnceDep

router = APIRouter(prefix="/executions", tags=["executions"], route_class=JsonRoute)


@router.get("", operation_id="listExecutions", responses=refusals())
async def list_executions(
    studio: StudioDep,
    paging: PagingDep,
    period: PeriodDep,
    eval_id: Annotated[Identity | None, Query(alias="evalId")] = None,
    status: ExecutionStatus | None = None,
    text: TextQuery = None,
) -> ExecutionPage:
    """Executions, newest first."""
    filters = Filters(eval_id=eval_id, status=status, since=period.since, until=period.until, text=text)
    page = await studio.store.executions(filters, cursor=paging.cursor, limit=paging.limit)
    return ExecutionPage.model_construct(items=page.items, cursor=page.cursor)


@router.post("", operation_id="startExecution", status_code=201, responses=refusals(404, 409, 413, 415))
async def start(studio: StudioDep, body: StartExecution, once: OnceDep) -> Execution:
    """Start an eval. All of its runs are checked before any is queued."""
    wanted = cast(StoredEval, await studio.store.get("eval", body.eval_id))
    order = await _order(studio, wanted, body)
    return await start_execution(studio.workspace, order, once=once)


async def _order(studio: Studio, wanted: StoredEval, body: StartExecution) -> Order:
    order = await order_of(studio.workspace, wanted, repetitions=body.repetitions)
    if body.scenario_ids is not None:
        known = {scenario.id: scenario for scenario in order.scenarios}
        for one in body.scenario_ids:
            if one not in known:
                raise ApiError(422, f'scenarioIds: the eval has no scenario "{one}"')
        order = replace(order, scenarios=[known[one] for one in dict.fromkeys(body.scenario_ids)])
    if body.connector_ids is not None:
        chosen = [await _connector(studio, one) for one in dict.fromkeys(body.connector_ids)]
        order = replace(order, connectors=chosen)
    if body.last_failed:
        order = await only_failed(studio.store, order)
    return replace(order, trigger=body.trigger, labels=body.labels)


async def _connector(studio: Studio, wanted: str) -> StoredConnector:
    try:
        return cast(StoredConnector, await studio.store.get("connector", wanted))
    except NotFound as error:
        raise ApiError(422, f"connectorIds: {error}") from None


@router.get("/{id}", operation_id="getExecution", responses=refusals(404))
async def get(studio: StudioDep, id: Identity) -> Execution:  # noqa: A002
    """One execution with its counts."""
    return await studio.store.execution(id)


@router.delete("/{id}", operation_id="deleteExecution", status_code=204, responses=refusals(404, 409))
async def delete(studio: StudioDep, id: Identity) -> None:  # noqa: A002
    """Delete an execution with all of its runs; what is still running is cancelled."""
    await studio.store.execution(id)
    await studio.store.delete_execution(id)


@router.post("/{id}/cancel", operation_id="cancelExecution", responses=refusals(404))
async def cancel(studio: StudioDep, id: Identity) -> Affected:  # noqa: A002
    """Cancel what is still queued or running."""
    await studio.store.execution(id)
    return Affected(count=await studio.store.cancel(execution_id=id))


@router.post("/{id}/retry", operation_id="retryExecution", responses=refusals(404))
async def retry(studio: StudioDep, id: Identity) -> Affected:  # noqa: A002
    """Queue its errored runs again."""
    await studio.store.execution(id)
    return Affected(count=await studio.store.retry(execution_id=id))
