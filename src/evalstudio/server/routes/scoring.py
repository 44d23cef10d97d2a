"""``/api/scoring``: what ``evalstudio score`` wrote into the project folder, opened and compared."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query
from pydantic import StringConstraints

from ...evaluators.results import Outcome
from ...execution.comparing_results import compare_results
from ...execution.scored_files import ResultsFileEntry, ScoredFile, list_results, read_results, results_path
from ...reporting.comparison import ComparisonResult
from ..api_router import ApiRouter
from ..middleware import JsonRoute
from ..requests import StudioDep

router = ApiRouter(prefix="/scoring", tags=["scoring"], route_class=JsonRoute)

FilePath = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


@router.get("/files", operation_id="listResultsFiles")
async def files(studio: StudioDep) -> list[ResultsFileEntry]:
    """The results files of ``evalstudio score -o`` in the project folder, newest first."""
    return await asyncio.to_thread(list_results, studio.workspace.folder)


@router.get("/results", operation_id="getScoredFile")
async def results(
    studio: StudioDep,
    path: Annotated[FilePath, Query(description="Of the results file, inside the project folder")],
    outcome: Outcome | None = None,
) -> ScoredFile:
    """What a results file comes to, and its records with their reasons."""
    return await asyncio.to_thread(read_results, studio.workspace.folder, path, outcome)


@router.get("/compare", operation_id="compareResultsFiles")
async def compare(
    studio: StudioDep, base: Annotated[FilePath, Query()], candidate: Annotated[FilePath, Query()]
) -> ComparisonResult:
    """Two results files, record by record, as ``evalstudio compare`` compares them."""
    folder = studio.workspace.folder
    paths = results_path(folder, base), results_path(folder, candidate)
    result = await asyncio.to_thread(compare_results, *paths)
    # Where the project lies is not told; the names are those that were given.
    sides = {"base": result.base, "candidate": result.candidate}
    names = {"base": base, "candidate": candidate}
    shown = {side: one.model_copy(update={"id": names[side]}) for side, one in sides.items()}
    return result.model_copy(update=shown)
