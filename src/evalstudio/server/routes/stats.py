"""``/api/stats``: figures for dashboards, computed by the database."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ...storage.contract import Filters, GroupedBy
from ..bodies import JsonRoute
from ..errors import refusals
from ..paging import PeriodDep
from ..shapes.base import Identity
from ..shapes.figures import ExecutionFigures, Figures, Matrix
from ..stats import execution_figures, figures_of, matrix
from ..studio import StudioDep
from .runs import RunFilters

router = APIRouter(prefix="/stats", tags=["stats"], route_class=JsonRoute)
EvalId = Annotated[Identity | None, Query(alias="evalId")]


@router.get("/executions", operation_id="getExecutionStats", responses=refusals())
async def executions(
    studio: StudioDep,
    period: PeriodDep,
    eval_id: EvalId = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> list[ExecutionFigures]:
    """The newest executions in figures: pass rates with intervals, latency, score, tokens."""
    filters = Filters(eval_id=eval_id, since=period.since, until=period.until)
    return await execution_figures(studio, filters, limit)


@router.get("/matrix", operation_id="getMatrix", responses=refusals())
async def scenario_matrix(
    studio: StudioDep,
    eval_id: Annotated[Identity, Query(alias="evalId")],
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Matrix:
    """The scenarios of an eval across its newest executions."""
    return await matrix(studio, eval_id, limit)


@router.get("/{by}", operation_id="getStats", responses=refusals())
async def grouped(studio: StudioDep, by: GroupedBy, filters: RunFilters) -> list[Figures]:
    """Runs by scenario, persona or connector, in figures."""
    return [figures_of(one) for one in await studio.store.tally(by, filters)]
