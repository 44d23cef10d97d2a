"""``/api/evaluations`` and ``/api/feedback``: scoring recorded responses, and what people say of them."""

from __future__ import annotations

import asyncio
from typing import Annotated, cast

from fastapi import Query

from ...base.problems import InvalidInput
from ...evaluators.records import EvaluationInput
from ...evaluators.results import Outcome
from ...scoring.runner import EvaluationRunner
from ...storage.contract import Filters, IdempotencyKey
from ..api_router import ApiRouter
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import OnceDep, PagingDep, PeriodDep, Studio, StudioDep
from ..shapes.base import Identity, Text
from ..shapes.scoring import (
    EvaluationResultJson,
    EvaluationSummary,
    Feedback,
    NewFeedback,
    Scored,
    ScoreMany,
    ScoreOne,
    ScoringConfig,
)
from ..shapes.system import EvaluationPage, FeedbackPage

router = ApiRouter(prefix="/evaluations", tags=["evaluations"], route_class=JsonRoute)

_AT_ONCE = 8


@router.get("", operation_id="listEvaluations")
async def list_evaluations(
    studio: StudioDep,
    paging: PagingDep,
    period: PeriodDep,
    agent_id: Annotated[Text | None, Query(alias="agentId")] = None,
    session_id: Annotated[Text | None, Query(alias="sessionId")] = None,
    outcome: Outcome | None = None,
) -> EvaluationPage:
    """Recorded evaluations in short, newest first."""
    filters = Filters(agent_id=agent_id, session_id=session_id, outcome=outcome, **period)
    page = await studio.store.evaluations(filters, **paging)
    items = [EvaluationSummary.model_validate(item) for item in page.items]
    return EvaluationPage.model_construct(items=items, cursor=page.cursor)


@router.post("", operation_id="createEvaluation", status_code=201, responses=refusals(413, 415))
async def create(studio: StudioDep, body: ScoreOne, once: OnceDep) -> EvaluationResultJson:
    """Score one recorded response and keep the result."""
    return await _score(studio, _runner(studio, body.config, body.input), body.input, once)


@router.post("/batch", operation_id="createEvaluations", status_code=201, responses=refusals(413, 415))
async def create_many(studio: StudioDep, body: ScoreMany, once: OnceDep) -> Scored:
    """Score recorded responses with the same evaluators and keep the results."""
    runner = _runner(studio, body.config, *body.inputs)
    limit = asyncio.Semaphore(_AT_ONCE)

    async def score(place: int, record: EvaluationInput) -> EvaluationResultJson:
        own = IdempotencyKey(f"{once.key} {place}", once.fingerprint) if once else None
        async with limit:
            return await _score(studio, runner, record, own)

    scored = await asyncio.gather(*(score(place, record) for place, record in enumerate(body.inputs)))
    return Scored.model_construct(items=scored)


@router.get("/{id}", operation_id="getEvaluation", responses=refusals(404))
async def get(studio: StudioDep, id: Identity) -> EvaluationResultJson:
    """A recorded evaluation with all of its results."""
    return cast(EvaluationResultJson, await studio.store.evaluation(id))


def _runner(studio: Studio, config: ScoringConfig, *records: EvaluationInput) -> EvaluationRunner:
    """What scores these records, all of which it can score."""
    services, registry = studio.workspace.services(), studio.workspace.registry
    settings = config.model_dump(by_alias=True, exclude_unset=True)
    try:
        runner = EvaluationRunner(
            settings,
            registry=registry,
            llm=services.llm,
            embedder=services.embedder,
            limits=services.limits,
        )
        for record in records:
            runner.check_criteria(record)
    except InvalidInput as error:
        raise error.within("config") from None
    return runner


async def _score(
    studio: Studio, runner: EvaluationRunner, record: EvaluationInput, once: IdempotencyKey | None
) -> EvaluationResultJson:
    """Score and keep; what was scored under the same key is not paid for again."""
    evaluation_id = await studio.store.made_by(once) if once else None
    if evaluation_id is None:
        evaluation_id = await studio.store.save_evaluation(await runner.run(record), once=once)
    return cast(EvaluationResultJson, await studio.store.evaluation(evaluation_id))


feedback_router = ApiRouter(prefix="/feedback", tags=["feedback"], route_class=JsonRoute)


@feedback_router.get("", operation_id="listFeedback")
async def list_feedback(
    studio: StudioDep,
    paging: PagingDep,
    run_id: Annotated[Identity | None, Query(alias="runId")] = None,
    evaluation_id: Annotated[Identity | None, Query(alias="evaluationId")] = None,
) -> FeedbackPage:
    """What was said, newest first; about one run or one evaluation if wished."""
    page = await studio.store.feedback(run_id=run_id, evaluation_id=evaluation_id, **paging)
    items = [Feedback.model_validate(item) for item in page.items]
    return FeedbackPage.model_construct(items=items, cursor=page.cursor)


@feedback_router.post("", operation_id="createFeedback", status_code=201, responses=refusals(404, 413, 415))
async def create_feedback(studio: StudioDep, body: NewFeedback, once: OnceDep) -> Feedback:
    """Say something about a run or an evaluation."""
    subject = {"run_id": body.run_id, "evaluation_id": body.evaluation_id}
    feedback = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={*subject})
    return Feedback.model_validate(await studio.store.add_feedback(feedback, **subject, once=once))
