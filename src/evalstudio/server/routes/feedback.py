"""``/api/feedback``: what people say about runs and evaluations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ..bodies import JsonRoute
from ..errors import refusals
from ..paging import PagingDep
from ..shapes.base import Identity
from ..shapes.pages import FeedbackPage
from ..shapes.scoring import Feedback, NewFeedback
from ..studio import StudioDep
from ..versions import OnceDep

router = APIRouter(prefix="/feedback", tags=["feedback"], route_class=JsonRoute)


@router.get("", operation_id="listFeedback", responses=refusals())
async def list_feedback(
    studio: StudioDep,
    paging: PagingDep,
    run_id: Annotated[Identity | None, Query(alias="runId")] = None,
    evaluation_id: Annotated[Identity | None, Query(alias="evaluationId")] = None,
) -> FeedbackPage:
    """What was said, newest first; about one run or one evaluation if wished."""
    page = await studio.store.feedback(
        run_id=run_id, evaluation_id=evaluation_id, cursor=paging.cursor, limit=paging.limit
    )
    items = [Feedback.model_validate(item) for item in page.items]
    return FeedbackPage.model_construct(items=items, cursor=page.cursor)


@router.post("", operation_id="createFeedback", status_code=201, responses=refusals(404, 413, 415))
async def create_feedback(studio: StudioDep, body: NewFeedback, once: OnceDep) -> Feedback:
    """Say something about a run or an evaluation."""
    said = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"run_id", "evaluation_id"})
    kept = await studio.store.add_feedback(
        said, run_id=body.run_id, evaluation_id=body.evaluation_id, once=once
    )
    return Feedback.model_validate(kept)
