"""``/api/stats``: figures for dashboards: rates with what they rest on and their intervals."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ...reporting.statistics import ExecutionSummary, FlakyHistory, flakiest, rates_of, summarize
from ...storage.contract import Filters, GroupedBy, Tally
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import PeriodDep, Studio, StudioDep
from ..shapes.base import Identity
from ..shapes.runs import Cell, ExecutionFigures, Figures, Matrix, MatrixRow
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


@router.get("/executions/{id}", operation_id="getExecutionSummary", responses=refusals(404))
async def execution_summary(studio: StudioDep, id: Identity) -> ExecutionSummary:  # noqa: A002
    """What an execution came to, or has come to so far: the same numbers as the command line prints."""
    await studio.store.execution(id)
    return summarize(await studio.store.run_groups(Filters(execution_id=id)))


@router.get("/flaky", operation_id="getFlakiest", responses=refusals())
async def flaky(
    studio: StudioDep, filters: RunFilters, limit: Annotated[int, Query(ge=1, le=200)] = 5
) -> list[FlakyHistory]:
    """The subjects whose repetitions disagreed in the largest share of their executions."""
    return flakiest(await studio.store.run_groups(filters), limit)


@router.get("/matrix", operation_id="getMatrix", responses=refusals())
async def scenario_matrix(
    studio: StudioDep,
    eval_id: Annotated[Identity, Query(alias="evalId")],
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Matrix:
    """The scenarios of an eval across its newest executions."""
    return await matrix(studio, eval_id, limit)


@router.get("/{by}", operation_id="getStats", responses=refusals())
async def grouped(
    studio: StudioDep,
    by: GroupedBy,
    filters: RunFilters,
    slowest: Annotated[
        int | None, Query(ge=1, le=200, description="Only this many, the slowest on average first")
    ] = None,
) -> list[Figures]:
    """Runs by scenario, persona or connector, in figures."""
    tallies = await studio.store.tally(by, filters)
    if slowest is not None:
        timed = [(one.mean_latency_ms, one) for one in tallies if one.mean_latency_ms is not None]
        tallies = [one for _, one in sorted(timed, key=lambda pair: -pair[0])[:slowest]]
    return [figures_of(one) for one in tallies]


def figures_of(tally: Tally) -> Figures:
    scored, attempted = rates_of(tally.counts)
    return Figures(
        id=tally.id,
        name=tally.name,
        counts=tally.counts,
        pass_rate_of_scored=scored,
        pass_rate_of_attempted=attempted,
        mean_latency_ms=tally.mean_latency_ms,
        max_latency_ms=tally.max_latency_ms,
        mean_score=tally.mean_score,
        total_tokens=tally.total_tokens,
    )


async def execution_figures(studio: Studio, filters: Filters, limit: int) -> list[ExecutionFigures]:
    tallies = await studio.store.tally_executions(filters, limit=limit)
    page = await studio.store.executions(filters, limit=limit)
    made = {execution.id: execution.created_at for execution in page.items}
    return [
        ExecutionFigures(**dict(figures_of(one)), created_at=made[one.id])
        for one in tallies
        if one.id in made
    ]


async def matrix(studio: Studio, eval_id: str, limit: int) -> Matrix:
    """Scenarios by executions. One tally per execution, each answered by an index."""
    page = await studio.store.executions(Filters(eval_id=eval_id), limit=limit)
    rows: dict[str | None, MatrixRow] = {}
    for execution in page.items:
        for tally in await studio.store.tally("scenario", Filters(execution_id=execution.id)):
            row = rows.setdefault(
                tally.id, MatrixRow(scenario_id=tally.id, scenario_name=tally.name, cells=[])
            )
            row.cells.append(Cell(execution_id=execution.id, counts=tally.counts))
    return Matrix.model_construct(
        executions=page.items, rows=sorted(rows.values(), key=lambda row: row.scenario_name or "")
    )
