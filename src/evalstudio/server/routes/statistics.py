"""``/api/stats``: figures for dashboards: rates with what they rest on and their intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Depends, Path, Query

from ...base.times import milliseconds_between
from ...execution.evaluator_history import evaluator_history, evaluators_figures
from ...reporting.histories import EvaluatorHistory, ScenarioHistory, scenario_history
from ...reporting.run_figures import Distributions, EvaluatorsFigures, distributions, findings_of
from ...reporting.statistics import ExecutionSummary, FlakyHistory, count, flakiest, rates_of, summarize
from ...storage.contract import Filters, GroupedBy, RunGroup, Tally, all_runs
from ...storage.errors import NotFound
from ..api_router import ApiRouter
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import PagingDep, PeriodDep, StudioDep
from ..shapes.base import Identity, Text
from ..shapes.runs import Cell, ConnectorRow, ExecutionFigures, Figures, Matrix, MatrixRow
from ..shapes.system import RunFindingsPage
from .runs import RunFilters

_OF_EXECUTION = ("eval_id", "status", "trigger", "created_at", "partial", "replayed", "source", "labels")

_READ_EXECUTIONS = 200

router = ApiRouter(prefix="/stats", tags=["stats"], route_class=JsonRoute)

WholeQuery = Annotated[bool, Query(description="Only live executions that are not partial or replayed")]


def whole_runs(filters: RunFilters, whole: WholeQuery = True) -> Filters:
    """Runs of whole executions, unless others are asked for or one execution is named."""
    return replace(filters, whole=whole and filters.execution_id is None)


WholeRuns = Annotated[Filters, Depends(whole_runs)]


@router.get("/executions", operation_id="getExecutionStats")
async def executions(
    studio: StudioDep,
    period: PeriodDep,
    eval_id: Annotated[Identity | None, Query(alias="evalId")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    whole: WholeQuery = True,
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
            **{name: getattr(known[one.id], name) for name in _OF_EXECUTION},
            duration_ms=milliseconds_between(known[one.id].started_at, known[one.id].completed_at),
        )
        for one in tallies
        if one.id in known
    ]


@router.get("/executions/{id}", operation_id="getExecutionSummary", responses=refusals(404))
async def execution_summary(studio: StudioDep, id: Identity) -> ExecutionSummary:
    """What an execution came to, or has come to so far: the same numbers as the command line prints."""
    execution = await studio.store.execution(id)
    groups = await studio.store.run_groups(Filters(execution_id=id))
    return summarize(groups, agent_errors_fail=execution.agent_errors_fail)


@router.get("/executions/{id}/distributions", operation_id="getDistributions", responses=refusals(404))
async def execution_distributions(studio: StudioDep, id: Identity) -> Distributions:
    """How the scores and latencies of an execution's runs are spread."""
    await studio.store.execution(id)
    return distributions([run async for run in all_runs(studio.store, Filters(execution_id=id))])


@router.get("/executions/{id}/findings", operation_id="listFindings", responses=refusals(404))
async def execution_findings(
    studio: StudioDep,
    id: Identity,
    paging: PagingDep,
    evaluator: Annotated[
        list[Text], Query(min_length=1, max_length=20, description="Names or types, in the order of columns")
    ],
) -> RunFindingsPage:
    """What these evaluators found in each run of an execution: the columns of its table."""
    await studio.store.execution(id)
    page = await studio.store.results_of(id, **paging)
    rows = [findings_of(run.id, run.output.get("evaluatorResults") or (), evaluator) for run in page.items]
    return RunFindingsPage(items=rows, cursor=page.cursor)


@router.get("/flaky", operation_id="getFlakiest")
async def flaky(
    studio: StudioDep, filters: WholeRuns, limit: Annotated[int, Query(ge=1, le=200)] = 5
) -> list[FlakyHistory]:
    """The subjects whose repetitions disagreed in the largest share of their executions."""
    return flakiest(await studio.store.run_groups(filters), limit)


@router.get("/matrix", operation_id="getMatrix")
async def scenario_matrix(
    studio: StudioDep,
    eval_id: Annotated[Identity, Query(alias="evalId")],
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
    whole: WholeQuery = True,
) -> Matrix:
    """The scenarios of an eval across its newest executions, on all connectors and on each."""
    page = await studio.store.executions(Filters(eval_id=eval_id, whole=whole), limit=limit)
    matrix = _MatrixBuilder()
    for execution in page.items:
        # One query per execution, each answered by an index.
        matrix.add(execution.id, await studio.store.run_groups(Filters(execution_id=execution.id)))
    return Matrix.model_construct(executions=page.items, rows=matrix.rows())


@router.get("/scenarios/{id}", operation_id="getScenarioHistory", responses=refusals(404))
async def history_of_scenario(studio: StudioDep, id: Identity) -> ScenarioHistory:
    """How a scenario did in the newest executions, by connector, and which of its subjects are flaky."""
    await studio.store.get("scenario", id)
    recent = (await studio.store.executions(Filters(whole=True), limit=_READ_EXECUTIONS)).items
    # The runs of an execution get their ids before it is stored.
    since = recent[-1].created_at - timedelta(hours=1) if recent else None
    groups = await studio.store.run_groups(Filters(scenario_id=id, since=since))
    return scenario_history(groups, {one.id: one for one in recent})


@router.get("/evaluators", operation_id="getEvaluatorStats", responses=refusals(404))
async def evaluators(
    studio: StudioDep,
    period: PeriodDep,
    execution_id: Annotated[Identity | None, Query(alias="executionId")] = None,
) -> EvaluatorsFigures:
    """Every evaluator in one execution, or in the newest that are over: those that failed most first."""
    status = None if execution_id else "completed"
    return await evaluators_figures(studio.store, Filters(execution_id=execution_id, status=status, **period))


@router.get("/evaluators/{type}", operation_id="getEvaluatorHistory", responses=refusals(404))
async def history_of_evaluator(
    studio: StudioDep,
    type: Annotated[Text, Path()],
) -> EvaluatorHistory:
    """What an evaluator said in the newest executions, where it is used, and its newest failures."""
    if studio.workspace.registry.get_evaluator(type) is None:
        raise NotFound("evaluator type", type)
    return await evaluator_history(studio.store, type)


@router.get("/{by}", operation_id="getStats")
async def grouped(
    studio: StudioDep,
    by: GroupedBy,
    filters: WholeRuns,
    slowest: Annotated[
        int | None, Query(ge=1, le=200, description="Only this many, the slowest on average first")
    ] = None,
) -> list[Figures]:
    """Runs by scenario, persona, connector or tag, in figures.

    Tags are those that the scenarios have now; a run counts in each of them.
    """
    tallies = await studio.store.tally(by, filters)
    if slowest is not None:
        timed = [(one.mean_latency_ms, one) for one in tallies if one.mean_latency_ms is not None]
        tallies = [one for _, one in sorted(timed, key=lambda pair: -pair[0])[:slowest]]
    return [Figures(**_figures(one)) for one in tallies]


def _figures(tally: Tally) -> dict[str, Any]:
    scored, attempted = rates_of(tally.subjects)
    measured = {field.name: getattr(tally, field.name) for field in fields(tally) if field.name != "subjects"}
    return {**measured, "pass_rate_of_scored": scored, "pass_rate_of_attempted": attempted}


class _MatrixBuilder:
    """Counts of scenarios by connector, filled execution by execution."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[str | None, str], defaultdict[str, list[RunGroup]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def add(self, execution_id: str, groups: Iterable[RunGroup]) -> None:
        for group in groups:
            subject = group.subject
            scenario = (subject.scenario_id, subject.scenario_id or subject.scenario_name)
            self._groups[scenario][execution_id].append(group)

    def rows(self) -> list[MatrixRow]:
        rows = [self._row(scenario[0], own) for scenario, own in self._groups.items()]
        return sorted(rows, key=lambda row: row.scenario_name or "")

    @staticmethod
    def _row(scenario_id: str | None, cells: Mapping[str, list[RunGroup]]) -> MatrixRow:
        every = [group for groups in cells.values() for group in groups]
        names = {one.subject.connector_id: one.subject.connector_name for one in every}
        return MatrixRow(
            scenario_id=scenario_id,
            scenario_name=every[0].subject.scenario_name,
            cells=_cells(cells),
            connectors=[
                ConnectorRow(connector_id=one, connector_name=name, cells=_cells(cells, one, narrowed=True))
                for one, name in names.items()
            ],
        )


def _cells(
    cells: Mapping[str, list[RunGroup]], connector: str | None = None, *, narrowed: bool = False
) -> list[Cell]:
    own = {
        execution: [one for one in groups if not narrowed or one.subject.connector_id == connector]
        for execution, groups in cells.items()
    }
    return [Cell(execution_id=one, counts=count(groups)) for one, groups in own.items() if groups]
