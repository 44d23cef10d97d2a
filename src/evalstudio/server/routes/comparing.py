"""``/api/compare`` and ``/api/baselines``: better or worse, and than what."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query
from pydantic import StringConstraints

from ...base.problems import InvalidInput, Problem
from ...execution.baselines import remove_baseline, set_baseline
from ...execution.compared_runs import ComparedRuns, SubjectQuery, compared_runs
from ...execution.comparing import ComparisonRequest, compare_named
from ...execution.comparing_results import compare_files, name_results_files
from ...project.entities import Baseline
from ...reporting.comparison import ComparisonResult
from ..api_router import ApiRouter
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import StudioDep
from ..shapes.base import Identity, Text
from ..shapes.runs import SetBaseline
from ..shapes.scoring import FilePath

router = ApiRouter(tags=["compare"], route_class=JsonRoute)

Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_WHICH = "An execution's id, last, last~1, or a baseline's name; or a results file in the project folder"
EvalQuery = Annotated[Identity | None, Query(alias="evalId")]


@router.get("/compare", operation_id="compareExecutions")
async def compare(
    studio: StudioDep,
    base: Annotated[FilePath, Query(description=_WHICH)],
    candidate: Annotated[FilePath, Query(description="The same")] = "last",
    eval_id: EvalQuery = None,
    base_connector: Annotated[Word | None, Query(alias="baseConnector")] = None,
    candidate_connector: Annotated[Word | None, Query(alias="candidateConnector")] = None,
    alpha: Annotated[float, Query(gt=0, le=0.5, description="How often no change may be called one")] = 0.05,
    min_effect: Annotated[
        float,
        Query(alias="minEffect", ge=0, le=1, description="The smallest drop of the pass rate that counts"),
    ] = 0.0,
    allow_gone: Annotated[
        bool, Query(alias="allowGone", description="Whether subjects may be missing that the base ran")
    ] = False,
) -> ComparisonResult:
    """Whether the candidate is better or worse than the base, and how sure that is."""
    folder = studio.workspace.folder
    if name_results_files(folder, base, candidate):
        return await asyncio.to_thread(
            compare_files,
            folder,
            base,
            candidate,
            alpha=alpha,
            min_effect=min_effect,
            allow_gone=allow_gone,
        )
    connectors = _both(base_connector, candidate_connector)
    request = ComparisonRequest(base, candidate, eval_id, connectors, alpha, min_effect, allow_gone)
    return await compare_named(studio.store, request)


def _both(base: str | None, candidate: str | None) -> tuple[str, str] | None:
    if base is None and candidate is None:
        return None
    if base is None or candidate is None:
        missing = "candidateConnector" if candidate is None else "baseConnector"
        raise InvalidInput(Problem("name a connector of both, or of neither", (missing,)))
    return base, candidate


@router.get("/compare/runs", operation_id="getComparedRuns", responses=refusals(404))
async def runs_of_subject(
    studio: StudioDep,
    base: Annotated[Identity, Query(description="An execution's id")],
    candidate: Annotated[Identity, Query(description="The same")],
    scenario_id: Annotated[Identity, Query(alias="scenarioId")],
    case_name: Annotated[Text | None, Query(alias="caseName")] = None,
    persona_id: Annotated[Identity | None, Query(alias="personaId")] = None,
    connector_id: Annotated[Identity | None, Query(alias="connectorId")] = None,
    base_connector: Annotated[Word | None, Query(alias="baseConnector")] = None,
    candidate_connector: Annotated[Word | None, Query(alias="candidateConnector")] = None,
) -> ComparedRuns:
    """The runs of one subject on both sides, and what changed in the definitions they were made of."""
    for execution in (base, candidate):
        await studio.store.execution(execution)
    subject = SubjectQuery(scenario_id, case_name, persona_id, connector_id)
    connectors = _both(base_connector, candidate_connector)
    return await compared_runs(studio.store, base, candidate, subject, connectors)


@router.get("/baselines", operation_id="listBaselines")
async def list_baselines(studio: StudioDep, eval_id: EvalQuery = None) -> list[Baseline]:
    """The baselines that were set, of all evals or of one."""
    return await studio.store.baselines(eval_id)


@router.put("/baselines", operation_id="setBaseline", responses=refusals(413, 415))
async def put_baseline(studio: StudioDep, body: SetBaseline) -> Baseline:
    """Make an execution the baseline of this name, in the place of the one before."""
    return await set_baseline(studio.store, body.name, body.execution, eval_id=body.eval_id)


@router.delete("/baselines", operation_id="removeBaseline", status_code=204, responses=refusals(404))
async def delete_baseline(
    studio: StudioDep, name: Annotated[Word, Query()], eval_id: EvalQuery = None
) -> None:
    """Forget a baseline; its execution stays."""
    await remove_baseline(studio.store, name, eval_id=eval_id)
