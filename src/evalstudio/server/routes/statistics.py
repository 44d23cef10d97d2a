"""``/api/stats``: figures for dashboards: rates with what they rest on and their intervals."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter, Query

from ...reporting.statistics import ExecutionSummary, FlakyHistory, flakiest, rates_of, summarize
from ...storage.contract import Filters, GroupedBy, Tally
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import PeriodDep, StudioDep
from ..shapes.base import Identity
from ..shapes.runs import Cell, ExecutionFigures, Figures, Matrix, MatrixRow
from .runs import RunFilters

router = APIRouter(prefix="/stats", tags=["stats"], route_class=JsonRoute)


@router.get("/executions", operation_id="getExecutionStats")
async def executions(
    studio: StudioDep,
    period: PeriodDep,
    eval_id: Annotated[Identity | None, Query(alias="evalId")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    whole: Annotated[bool, Query(description="Only live executions that are not partial or replayed")] = True,
) -> list[ExecutionFigures]:
    """The newest executions in figures: pass rates with intervals, latency, score, tokens.

    This is what trends are made of, so executions that are not whole are left out unless asked for.
    """
    filters = Filters(eval_id=eval_id, whole=whole, **period)
    tallies = await studio.store.tally_executions(filters, limit=limit)
    page = await studio.store.executions(filters, limit=limit)
    known = {execution.id: execution for execution in page.items}
    return [
        ExecutionFigures(
            **_figures(one),
            created_at=known[one.id].created_at,
            partial=known[one.id].partial,
            replayed=known[one.id].replayed,
            source=known[one.id].source,
            labels=known[one.id].labels,
        )
        for one in tallies
        if one.id in known
    ]


@router.get("/executions/{id}", operation_id="getExecutionSummary", responses=refusals(404))
async def execution_summary(studio: StudioDep, id: Identity) -> ExecutionSummary:  # noqa: A002
    """What an execution came to, or has come to so far: the same numbers as the command line prints."""
    await studio.store.execution(id)
    return summarize(await studio.store.run_groups(Filters(execution_id=id)))


@router.get("/flaky", operation_id="getFlakiest")
async def flaky(
    studio: StudioDep, filters: RunFilters, limit: Annotated[int, Query(ge=1, le=200)] = 5
) -> list[FlakyHistory]:
    """The subjects whose repetitions disagreed in the largest share of their executions."""
    return flakiest(await studio.store.run_groups(filters), limit)


@router.get("/matrix", operation_id="getMatrix")
async def scenario_matrix(
    studio: StudioDep,
    eval_id: Annotated[Identity, Query(alias="evalId")],
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Matrix:
    """The scenarios of an eval across its newest executions."""
    page = await studio.store.executions(Filters(eval_id=eval_id), limit=limit)
    rows: dict[str | None, MatrixRow] = {}
    for execution in page.items:
        # One tally per execution, each answered by an index.
        for tally in await studio.store.tally("scenario", Filters(execution_id=execution.id)):
            new = MatrixRow(scenario_id=tally.id, scenario_name=tally.name, cells=[])
            row = rows.setdefault(tally.id, new)
            row.cells.append(Cell(execution_id=execution.id, counts=tally.counts))
    by_name = sorted(rows.values(), key=lambda row: row.scenario_name or "")
    return Matrix.model_construct(executions=page.items, rows=by_name)


@router.get("/{by}", operation_id="getStats")
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
    return [Figures(**_figures(one)) for one in tallies]


def _figures(tally: Tally) -> dict[str, Any]:
    scored, attempted = rates_of(tally.subjects)
    measured = {field.name: getattr(tally, field.name) for field in fields(tally) if field.name != "subjects"}
    return {**measured, "pass_rate_of_scored": scored, "pass_rate_of_attempted": attempted}
