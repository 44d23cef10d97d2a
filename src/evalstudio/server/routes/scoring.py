"""``/api/scoring``: datasets scored by the server, and results of ``evalstudio score`` opened."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Path, Query

from ...evaluators.results import Outcome
from ...execution.project_files import FileEntry, ScoringSources, list_results, list_sources
from ...execution.scored_files import ScoredFile, read_results
from ...execution.scoring_plans import PlanCheck, PlanFile, check_plan, read_plan_file
from ...execution.scorings import Scoring, ScoringRequest
from ...storage.errors import NotFound
from ..api_router import ApiRouter
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import OnceDep, StudioDep, deleted_since
from ..shapes.base import Identity, Text
from ..shapes.scoring import FilePath, PlanDraft, StartScoring

router = ApiRouter(prefix="/scoring", tags=["scoring"], route_class=JsonRoute)

ScoringId = Annotated[Identity, Path(alias="id")]


@router.get("/sources", operation_id="listScoringSources")
async def sources(studio: StudioDep) -> ScoringSources:
    """The datasets and scoring plans in the project folder, newest first."""
    return await asyncio.to_thread(list_sources, studio.workspace.folder)


@router.get("/plan", operation_id="getScoringPlan")
async def plan(
    studio: StudioDep,
    path: Annotated[FilePath, Query(description="Of the plan, inside the project folder")],
) -> PlanFile:
    """A scoring plan of the project as its file has it, and what is wrong with it."""
    return await asyncio.to_thread(read_plan_file, studio.workspace, path)


@router.post("/plan/check", operation_id="checkScoringPlan", responses=refusals(413, 415))
async def check(studio: StudioDep, body: PlanDraft) -> PlanCheck:
    """A plan as text and as settings, with what is wrong with it; nothing is stored."""
    return await asyncio.to_thread(check_plan, studio.workspace, text=body.text, plan=body.plan)


@router.get("/jobs", operation_id="listScorings")
async def list_scorings(studio: StudioDep) -> list[Scoring]:
    """The datasets that the server scores or has scored, newest first."""
    return await studio.scorings.list()


@router.post("/jobs", operation_id="startScoring", status_code=201, responses=refusals(409, 413, 415))
async def start(studio: StudioDep, body: StartScoring, once: OnceDep) -> Scoring:
    """Score a dataset by a plan, each a file of the project or sent; it goes on after the answer.

    What is sent and what comes of it are kept in ``data/scorings`` of the project folder.
    """
    upload = (body.upload.name, body.upload.text) if body.upload else None
    request = ScoringRequest(body.dataset, upload, body.plan, body.plan_text, body.limit, body.skip_bad)
    try:
        return await studio.scorings.start(request, once=once)
    except NotFound as error:
        raise deleted_since(error) from None


@router.get("/jobs/{id}", operation_id="getScoring", responses=refusals(404))
async def get_scoring(studio: StudioDep, scoring_id: ScoringId) -> Scoring:
    """How far a scoring is, or what came of it."""
    return await studio.scorings.get(scoring_id)


@router.post("/jobs/{id}/cancel", operation_id="cancelScoring", responses=refusals(404))
async def cancel(studio: StudioDep, scoring_id: ScoringId) -> Scoring:
    """End a scoring that is under way; the results until then are kept."""
    return await studio.scorings.cancel(scoring_id)


@router.delete("/jobs/{id}", operation_id="deleteScoring", status_code=204, responses=refusals(404, 409))
async def delete(studio: StudioDep, scoring_id: ScoringId) -> None:
    """Delete a scoring that is over, with what was sent and its results."""
    await studio.scorings.delete(scoring_id)


@router.get("/files", operation_id="listResultsFiles")
async def files(studio: StudioDep) -> list[FileEntry]:
    """The results files in the project folder, newest first: of ``evalstudio score -o`` and of the server."""
    return await asyncio.to_thread(list_results, studio.workspace.folder)


@router.get("/results", operation_id="getScoredFile")
async def results(
    studio: StudioDep,
    path: Annotated[FilePath, Query(description="Of the results file, inside the project folder")],
    outcome: Outcome | None = None,
    record: Annotated[Text | None, Query(description="Only the records of this id")] = None,
) -> ScoredFile:
    """What a results file comes to, and its records with their reasons."""
    return await asyncio.to_thread(read_results, studio.workspace.folder, path, outcome, record)
