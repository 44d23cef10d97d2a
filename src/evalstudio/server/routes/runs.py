"""``/api/executions`` and ``/api/runs``: evals at work, and single conversations."""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryFile
from typing import Annotated, Literal

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter
from starlette.background import BackgroundTask

from ...base.problems import InvalidInput, Problem
from ...conversation.definitions import Persona, Scenario
from ...evaluators.contract import Fault
from ...evaluators.results import Outcome, RunOutput
from ...execution.conclusion import conclude
from ...execution.request import (
    ExecutionRequest,
    only_failed,
    only_runs,
    request_for,
    start_execution,
    trial_request,
)
from ...execution.rescoring import NotRescorable, rescore
from ...project.entities import (
    AgentErrors,
    Connector,
    Execution,
    ExecutionSource,
    ExecutionStatus,
    Run,
    RunStatus,
)
from ...project.secrets import masked
from ...reporting.reports import write_reports, writer_for
from ...reporting.requirements import ExecutionConclusion
from ...storage.contract import Filters
from ...storage.errors import NotFound
from ..api_router import ApiRouter
from ..errors import ApiError, refusals
from ..quick_route import QuickRoute
from ..requests import JsonAnswer, OnceDep, PagingDep, PeriodDep, Studio, StudioDep, TextQuery
from ..shapes.base import Identity, Text
from ..shapes.runs import Affected, Rescored, RunDefinitions, StartedRuns, StartExecution, StartRun
from ..shapes.system import ExecutionPage, RunPage

executions_router = ApiRouter(prefix="/executions", tags=["executions"], route_class=QuickRoute)


@executions_router.get("", operation_id="listExecutions", response_model=ExecutionPage)
async def list_executions(
    studio: StudioDep,
    paging: PagingDep,
    period: PeriodDep,
    eval_id: Annotated[Identity | None, Query(alias="evalId")] = None,
    status: ExecutionStatus | None = None,
    text: TextQuery = None,
    label: Annotated[
        list[Text] | None, Query(max_length=20, description="With these labels: key=value, or key")
    ] = None,
    whole: Annotated[
        bool, Query(description="Only live executions that are not partial or replayed")
    ] = False,
    source: ExecutionSource | None = None,
    rescored_from: Annotated[Identity | None, Query(alias="rescoredFrom")] = None,
) -> JsonAnswer:
    """Executions, newest first."""
    filters = Filters(
        eval_id=eval_id,
        status=status,
        **period,
        text=text,
        labels=label or (),
        whole=whole,
        source=source,
        rescored_from=rescored_from,
    )
    return JsonAnswer(await studio.store.execution_page_json(filters, **paging))


@executions_router.post(
    "", operation_id="startExecution", status_code=201, responses=refusals(404, 409, 413, 415)
)
async def start_eval(studio: StudioDep, body: StartExecution, once: OnceDep) -> Execution:
    """Start an eval. All of its runs are checked before any is queued."""
    definition = await studio.store.get("eval", body.eval_id)
    request = await request_for(studio.workspace, definition, repetitions=body.repetitions)
    request = await _narrowed(studio, request, body)
    return await start_execution(studio.workspace, request, once=once)


async def _narrowed(studio: Studio, request: ExecutionRequest, body: StartExecution) -> ExecutionRequest:
    if body.scenario_ids is not None:
        known = {scenario.id: scenario for scenario in request.scenarios}
        for one in body.scenario_ids:
            if one not in known:
                raise InvalidInput(Problem(f'the eval has no scenario "{one}"', ("scenarioIds",)))
        request = replace(request, scenarios=[known[one] for one in dict.fromkeys(body.scenario_ids)])
    if body.connector_ids is not None:
        try:
            chosen = [await studio.store.get("connector", one) for one in dict.fromkeys(body.connector_ids)]
        except NotFound as error:
            raise InvalidInput(Problem(str(error), ("connectorIds",))) from None
        request = replace(request, connectors=chosen)
    if body.last_failed or body.failed_of is not None:
        request = await only_failed(studio.store, request, body.failed_of)
    if body.run_ids is not None:
        request = await only_runs(studio.store, request, body.run_ids)
    return replace(
        request,
        trigger=body.trigger,
        labels=body.labels,
        requirements=[*request.requirements, *body.requirements],
        budget=body.budget or request.budget,
        until_decided=body.until_decided,
        agent_errors=body.agent_errors,
    )


@executions_router.get("/{id}", operation_id="getExecution", responses=refusals(404))
async def get_execution(studio: StudioDep, id: Identity) -> Execution:
    """One execution with its counts."""
    return await studio.store.execution(id)


@executions_router.get("/{id}/conclusion", operation_id="getExecutionConclusion", responses=refusals(404))
async def get_conclusion(
    studio: StudioDep,
    id: Identity,
    agent_errors: Annotated[
        AgentErrors | None,
        Query(alias="agentErrors", description="What an agent's errors count as, if not as it was started"),
    ] = None,
) -> ExecutionConclusion:
    """Whether an execution reached what is required, so far or in the end, with the evidence."""
    execution = await studio.store.execution(id)
    return (await conclude(studio.store, execution.counting(agent_errors))).result


@executions_router.delete(
    "/{id}", operation_id="deleteExecution", status_code=204, responses=refusals(404, 409)
)
async def delete_execution(studio: StudioDep, id: Identity) -> None:
    """Delete an execution with all of its runs; what is still running is cancelled."""
    await studio.store.execution(id)
    await studio.store.delete_execution(id)


@executions_router.post("/{id}/cancel", operation_id="cancelExecution", responses=refusals(404))
async def cancel_execution(studio: StudioDep, id: Identity) -> Affected:
    """Cancel what is still queued or running."""
    await studio.store.execution(id)
    return Affected(count=await studio.store.cancel(execution_id=id))


@executions_router.post("/{id}/retry", operation_id="retryExecution", responses=refusals(404))
async def retry_execution(studio: StudioDep, id: Identity) -> Affected:
    """Queue its errored runs again."""
    await studio.store.execution(id)
    return Affected(count=await studio.store.retry(execution_id=id))


ReportFormat = Literal["csv", "json", "jsonl", "junit", "html", "md"]
_REPORTS: dict[ReportFormat, tuple[str, str]] = {
    "csv": ("text/csv", "csv"),
    "json": ("application/json", "json"),
    "jsonl": ("application/x-ndjson", "jsonl"),
    "junit": ("application/xml", "xml"),
    "html": ("text/html", "html"),
    "md": ("text/markdown", "md"),
}
_CHUNK = 65_536


@executions_router.get(
    "/{id}/report",
    operation_id="getReport",
    responses=refusals(404),
    response_class=StreamingResponse,
)
async def get_report(
    studio: StudioDep,
    id: Identity,
    format: Annotated[ReportFormat, Query(description="What to write")] = "html",
) -> StreamingResponse:
    """The execution as a file, the same as `evalstudio report` writes."""
    execution = await studio.store.execution(id)
    conclusion = await conclude(studio.store, execution, detailed=True)
    media, ending = _REPORTS[format]
    # Kept on disk until it is sent: a report of many runs does not stay in memory.
    file = TemporaryFile("w+", encoding="utf-8", newline="")  # noqa: SIM115 - closed when it was sent
    await write_reports(conclusion.source, [writer_for(format, file)])
    file.seek(0)
    chunks = iter(lambda: file.read(_CHUNK), "")
    name = f'attachment; filename="execution-{execution.id}.{ending}"'
    return StreamingResponse(
        chunks,
        media_type=f"{media}; charset=utf-8",
        headers={"Content-Disposition": name},
        background=BackgroundTask(file.close),
    )


router = ApiRouter(prefix="/runs", tags=["runs"], route_class=QuickRoute)

_FIRST_RUNS = 100
Attempt = Annotated[int | None, Query(ge=1, le=1_000_000, description="An earlier attempt; else the last")]


async def run_filters(
    period: PeriodDep,
    execution_id: Annotated[Identity | None, Query(alias="executionId")] = None,
    eval_id: Annotated[Identity | None, Query(alias="evalId")] = None,
    scenario_id: Annotated[Identity | None, Query(alias="scenarioId")] = None,
    persona_id: Annotated[Identity | None, Query(alias="personaId")] = None,
    connector_id: Annotated[Identity | None, Query(alias="connectorId")] = None,
    status: RunStatus | None = None,
    outcome: Outcome | None = None,
    text: TextQuery = None,
    tag: Annotated[list[Text] | None, Query(max_length=20, description="Scenarios with these tags")] = None,
    label: Annotated[
        list[Text] | None, Query(max_length=20, description="Of executions with these: key=value, or key")
    ] = None,
    fault: Annotated[Fault | None, Query(description="Whose fault an error was")] = None,
    said: Annotated[str | None, Query(max_length=500, description="Part of what was said")] = None,
    evaluator: Annotated[Text | None, Query(description="With a result of this evaluator")] = None,
    verdict: Annotated[
        Literal["pass", "fail", "error", "skipped", "pending"] | None,
        Query(description="What that evaluator found"),
    ] = None,
    metric: Annotated[Text | None, Query(description="With a value of this metric")] = None,
    metric_min: Annotated[float | None, Query(alias="metricMin", allow_inf_nan=False)] = None,
    metric_max: Annotated[float | None, Query(alias="metricMax", allow_inf_nan=False)] = None,
) -> Filters:
    return Filters(
        labels=label or (),
        fault=fault,
        said=said,
        evaluator=evaluator,
        verdict=verdict,
        metric=metric,
        metric_min=metric_min,
        metric_max=metric_max,
        status=status,
        outcome=outcome,
        eval_id=eval_id,
        execution_id=execution_id,
        scenario_id=scenario_id,
        connector_id=connector_id,
        persona_id=persona_id,
        text=text,
        tags=tag or (),
        **period,
    )


RunFilters = Annotated[Filters, Depends(run_filters)]


@router.get("", operation_id="listRuns", response_model=RunPage)
async def list_runs(studio: StudioDep, paging: PagingDep, filters: RunFilters) -> JsonAnswer:
    """Runs without what was said, newest first.

    Where `said`, `evaluator` or `metric` is given, a page looks at a bounded number of runs: it may be short
    or empty although more follow; its cursor goes on.
    """
    return JsonAnswer(await studio.store.run_page_json(filters, **paging))


@router.post("", operation_id="startRun", status_code=201, responses=refusals(404, 409, 413, 415))
async def start_run(studio: StudioDep, body: StartRun, once: OnceDep) -> StartedRuns:
    """Try one scenario against one connector, as a playground."""
    request = await trial_request(
        studio.workspace,
        body.scenario_id,
        body.connector_id,
        persona_id=body.persona_id,
        case_name=body.case_name,
        repetitions=body.repetitions,
        labels=body.labels,
    )
    execution = await start_execution(studio.workspace, request, once=once)
    page = await studio.store.runs(Filters(execution_id=execution.id), limit=_FIRST_RUNS)
    return StartedRuns.model_construct(execution=execution, runs=page.items)


@router.get("/{id}", operation_id="getRun", responses=refusals(404), response_model=Run)
async def get_run(studio: StudioDep, id: Identity, attempt: Attempt = None) -> JsonAnswer:
    """A run with all that was said and its whole output."""
    return JsonAnswer(await studio.store.run_json(id, attempt=attempt))


@router.get("/{id}/definitions", operation_id="getRunDefinitions", responses=refusals(404))
async def get_definitions(studio: StudioDep, id: Identity) -> RunDefinitions:
    """The scenario, persona and connector of a run as they were when it was queued."""
    snapshots = await studio.store.snapshots(id)
    scenario, persona, connector = (snapshots[kind] for kind in ("scenario", "persona", "connector"))
    assert scenario is not None
    assert connector is not None
    return RunDefinitions(
        scenario=Scenario.model_validate(dict(scenario)),
        persona=None if persona is None else Persona.model_validate(masked(persona)),
        connector=Connector.model_validate(masked(connector)),
    )


def _affected(run: Run, count: int, rule: str) -> Affected:
    """The answer to a change of one run, which refuses runs in another state."""
    if not count:
        state = f"{run.status} ({run.result.outcome})" if run.result else run.status
        raise ApiError(409, f"Only a {rule}; this one is {state}.")
    return Affected(count=count)


@router.post("/{id}/retry", operation_id="retryRun", responses=refusals(404, 409))
async def retry_run(studio: StudioDep, id: Identity) -> Affected:
    """Queue an errored run again, as a new attempt."""
    run, count = await studio.store.run(id), await studio.store.retry(run_ids=[id])
    return _affected(run, count, "run that ended in an error can be retried")


@router.post("/{id}/cancel", operation_id="cancelRun", responses=refusals(404, 409))
async def cancel_run(studio: StudioDep, id: Identity) -> Affected:
    """Cancel a run that is queued or running."""
    run, count = await studio.store.run(id), await studio.store.cancel(run_ids=[id])
    return _affected(run, count, "queued or running run can be cancelled")


@router.post("/{id}/rescore", operation_id="rescoreRun", responses=refusals(404, 409))
async def rescore_run(studio: StudioDep, id: Identity) -> Rescored:
    """What the scenario's evaluators of today say about this conversation."""
    run = await studio.store.run(id)
    try:
        result = await rescore(studio.workspace, run)
    except NotRescorable as error:
        raise ApiError(409, str(error)) from None
    changed = run.result is None or result.outcome != run.result.outcome
    output = TypeAdapter(RunOutput).validate_python(result.output())
    return Rescored(result=result.verdict, output=output, changed=changed)


@router.delete("/{id}", operation_id="deleteRun", status_code=204, responses=refusals(404, 409))
async def delete_run(studio: StudioDep, id: Identity) -> None:
    """Delete a run that is over."""
    run = await studio.store.run(id)
    if not await studio.store.delete_runs([id]):
        raise ApiError(409, f"Only a run that is over can be deleted; this one is {run.status}.")
