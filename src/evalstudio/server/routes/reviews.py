"""``/api/reviews``, and scoring executions again: recorded and stored conversations under the evaluators."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace

from ...base.problems import InvalidInput, Problem
from ...conversation.definitions import Scenario
from ...execution.drafting import draft_scenario
from ...execution.rescores import RescoreRequest, begin_rescore, rescore_execution, rescore_request
from ...execution.rescoring import Measure
from ...execution.review_request import request_by_eval
from ...execution.reviews import UNREADABLE, ReviewRequest, begin_review, resumed_review, review_conversations
from ...project.entities import Execution
from ...project.validation import inside
from ...recordings.reading import Read, Unreadable, conversations_in, read_conversations
from ...storage.errors import NotFound
from ..api_router import ApiRouter
from ..errors import ApiError, refusals
from ..middleware import JsonRoute
from ..requests import OnceDep, Studio, StudioDep
from ..shapes.base import Identity
from ..shapes.reviews import (
    MoreConversations,
    ReviewMeasure,
    ReviewProgress,
    StartRescore,
    StartReview,
)

router = ApiRouter(tags=["reviews"], route_class=JsonRoute)
log = logging.getLogger("evalstudio")
_OWN_FOLDER = "data"


@router.post("/reviews", operation_id="startReview", status_code=201, responses=refusals(404, 409, 413, 415))
async def start_review(studio: StudioDep, body: StartReview, once: OnceDep) -> Execution:
    """Judge recorded conversations as if they had been held here; it goes on after the answer.

    The execution is partial for as long as it is ``unfinished``. What cannot be read in the request is
    refused; what cannot be read in a file makes the execution partial, and the server's log says why.
    """
    if (known := await studio.store.made_by(once)) is not None:
        return await studio.store.execution(known)
    request = await _review_request(studio, body)
    request = replace(
        request,
        trigger=body.trigger,
        labels=body.labels,
        requirements=[*request.requirements, *body.requirements],
    )
    conversations = None if body.unfinished else await asyncio.to_thread(_conversations, studio, body)
    execution = await begin_review(studio.workspace, request, once=once)
    if conversations is not None:
        work = _review(studio, request, execution, conversations)
        studio.background.start(work, f"Review {execution.id}")
    return execution


@router.post(
    "/executions/{id}/conversations",
    operation_id="reviewConversations",
    responses=refusals(404, 413, 415, 503),
)
async def review_more(
    studio: StudioDep,
    id: Identity,
    body: MoreConversations,
) -> ReviewProgress:
    """Judge more conversations of a review that was started as ``unfinished``, before the answer.

    The same conversations sent again are not judged again.
    """
    execution = await resumed_review(studio.workspace, id)
    request = await _review_request(studio, body)
    if body.unreadable:
        await studio.store.mark_partial(id, UNREADABLE)
    items = list(conversations_in(body.conversations, "request", fields=body.fields, format=body.format))
    review = await review_conversations(
        studio.workspace,
        request,
        execution,
        iter(items),
        stop=studio.background.stopping,
        is_last=body.is_last,
    )
    if review.stopped:
        raise ApiError(503, "The server is stopping; send the same conversations again.")
    return ReviewProgress(
        execution=review.execution,
        reviewed=review.reviewed,
        known=review.known,
        refused=[str(one) for one in review.unreadable],
    )


async def _review_request(studio: Studio, body: ReviewMeasure) -> ReviewRequest:
    if body.evaluators is not None:
        return ReviewRequest(
            [Scenario(name=body.name, evaluators=[*body.evaluators], criteria=body.criteria)]
        )
    field, store = "evalId" if body.eval_id else "scenarioId", studio.store
    try:
        if body.eval_id is not None:
            return await request_by_eval(studio.workspace, await store.get("eval", body.eval_id))
        return ReviewRequest([await store.get("scenario", body.scenario_id or "")])
    except NotFound as error:
        raise InvalidInput(Problem(str(error), (field,))) from None


def _conversations(studio: Studio, body: StartReview) -> Iterator[Read]:
    if body.file is not None:
        path = inside(studio.workspace.folder, body.file)
        own = (studio.workspace.folder / _OWN_FOLDER).resolve()
        if path.is_relative_to(own) or not path.is_file():
            raise InvalidInput(Problem("there is no such file of conversations in the project", ("file",)))
        return read_conversations(path, fields=body.fields, format=body.format)
    items = list(
        conversations_in(body.conversations or (), "request", fields=body.fields, format=body.format)
    )
    problems = [
        Problem(one.reason, ("conversations", one.line - 1) if one.line else ("conversations",))
        for one in items
        if isinstance(one, Unreadable)
    ]
    if problems:
        raise InvalidInput(*problems)
    return iter(items)


async def _review(
    studio: Studio, request: ReviewRequest, execution: Execution, conversations: Iterator[Read]
) -> None:
    review = await review_conversations(
        studio.workspace, request, execution, conversations, stop=studio.background.stopping
    )
    for problem in review.unreadable:
        log.warning("Review %s: %s", execution.id, problem)


@router.post(
    "/executions/{id}/rescore",
    operation_id="rescoreExecution",
    status_code=201,
    responses=refusals(404, 409, 413, 415),
)
async def rescore_runs(
    studio: StudioDep,
    id: Identity,
    body: StartRescore,
    once: OnceDep,
) -> Execution:
    """Score the conversations of an execution again, beside what it came to; it goes on after the answer.

    Compare the two to see what changed. No agent is called, and no model whose evaluator did not change.
    """
    if (known := await studio.store.made_by(once)) is not None:
        return await studio.store.execution(known)
    await studio.store.execution(id)
    request = await rescore_request(studio.workspace, body.run_id or id, await _measure(studio, body))
    if request.original.id != id:
        raise InvalidInput(Problem("is a run of another execution", ("runId",)))
    request = replace(
        request,
        trigger=body.trigger,
        labels=body.labels,
        requirements=[*request.requirements, *body.requirements],
    )
    execution = await begin_rescore(studio.workspace, request, once=once)
    studio.background.start(_rescore(studio, request, execution), f"Rescoring {execution.id}")
    return execution


async def _measure(studio: Studio, body: StartRescore) -> Measure:
    scenario, evaluators = None, None
    if body.scenario_id is not None:
        try:
            scenario = await studio.store.get("scenario", body.scenario_id)
        except NotFound as error:
            raise InvalidInput(Problem(str(error), ("scenarioId",))) from None
    if body.evaluators is not None:
        evaluators = Scenario(name="evaluators", evaluators=[*body.evaluators], criteria=body.criteria)
    return Measure(scenario, evaluators, body.ask_again)


async def _rescore(studio: Studio, request: RescoreRequest, execution: Execution) -> None:
    await rescore_execution(studio.workspace, request, execution, stop=studio.background.stopping)


@router.post("/runs/{id}/scenario", operation_id="draftScenario", responses=refusals(404, 409))
async def draft(studio: StudioDep, id: Identity) -> Scenario:
    """A scenario drafted from what was said in a run; nothing is stored."""
    return await draft_scenario(studio.workspace, await studio.store.run(id))
