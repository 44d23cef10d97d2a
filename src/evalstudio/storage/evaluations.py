"""Recorded evaluations, and feedback on runs and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import insert, select

from ..base.json_text import HasJson
from ..base.times import iso, moment_of
from ..project.entities import new_id
from .columns import short_key
from .contract import EVERYTHING, Filters, IdempotencyKey, Page
from .errors import NotFound
from .lists import equal, in_period, one_row
from .pages import paged
from .rows import AnyRow
from .schema import evaluations, feedback, runs
from .transaction import Transaction, known_target, now_ms, remember


def evaluation_row(result: HasJson | Mapping[str, Any]) -> dict[str, Any]:
    """A result as it is kept; its text is made once, here."""
    body = dict(result) if isinstance(result, Mapping) else result.to_json()
    score = body.get("overallScore")
    return {
        "id": new_id(),
        "agent_id": _key(body.get("agentId")),
        "session_id": _key(body.get("sessionId")),
        "outcome": body.get("outcome"),
        "overall_score": score if isinstance(score, int | float) else None,
        "created": now_ms(),
        "body": body,
    }


def _key(value: object) -> str | None:
    return None if value is None else short_key(str(value))


def keep_evaluation(unit: Transaction, row: dict[str, Any], once: IdempotencyKey | None) -> str:
    if (target := known_target(unit, once)) is not None:
        return target
    if not (unit.again and unit.has(evaluations, row["id"])):
        unit.add(evaluations, row)
        remember(unit, once, row["id"])
    return row["id"]


def get_evaluation(unit: Transaction, evaluation_id: str) -> dict[str, Any]:
    query = select(evaluations).where(evaluations.c.id == evaluation_id)
    row = one_row(unit, query, "evaluation", evaluation_id)
    return {**row.body, "id": row.id, "createdAt": iso(moment_of(row.created))}


def list_evaluations(
    unit: Transaction, filters: Filters = EVERYTHING, *, cursor: str | None = None, limit: int = 50
) -> Page[dict[str, Any]]:
    """Summaries: the whole result is read one at a time."""
    query = select(*(column for column in evaluations.c if column.name != "body"))
    shortened = replace(filters, agent_id=_key(filters.agent_id), session_id=_key(filters.session_id))
    query = query.where(*in_period(evaluations.c.id, filters))
    query = query.where(*equal(evaluations, shortened, "outcome", "agent_id", "session_id"))
    return paged(unit, query, evaluations.c.id, _summary, cursor, limit)


def _summary(row: AnyRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "createdAt": iso(moment_of(row.created)),
        "agentId": row.agent_id,
        "sessionId": row.session_id,
        "outcome": row.outcome,
        "overallScore": row.overall_score,
    }


def add_feedback(
    unit: Transaction,
    identity: str,
    body: Mapping[str, Any],
    run_id: str | None,
    evaluation_id: str | None,
    once: IdempotencyKey | None,
) -> dict[str, Any]:
    if (run_id is None) == (evaluation_id is None):
        raise ValueError("feedback is on a run or on an evaluation, one of the two")
    if (target := known_target(unit, once)) is not None:
        identity = target
    if (target or unit.again) and unit.has(feedback, identity):
        return _get_feedback(unit, identity)
    if run_id is not None and not unit.has(runs, run_id):
        raise NotFound("run", run_id)
    if evaluation_id is not None and not unit.has(evaluations, evaluation_id):
        raise NotFound("evaluation", evaluation_id)
    unit.connection.execute(
        insert(feedback).values(
            id=identity, run_id=run_id, evaluation_id=evaluation_id, created=now_ms(), body=dict(body)
        )
    )
    if target is None:
        remember(unit, once, identity)
    return _get_feedback(unit, identity)


def list_feedback(
    unit: Transaction,
    *,
    run_id: str | None = None,
    evaluation_id: str | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[dict[str, Any]]:
    query = select(feedback)
    if run_id is not None:
        query = query.where(feedback.c.run_id == run_id)
    if evaluation_id is not None:
        query = query.where(feedback.c.evaluation_id == evaluation_id)
    return paged(unit, query, feedback.c.id, _feedback, cursor, limit)


def _get_feedback(unit: Transaction, identity: str) -> dict[str, Any]:
    return _feedback(unit.connection.execute(select(feedback).where(feedback.c.id == identity)).one())


def _feedback(row: AnyRow) -> dict[str, Any]:
    return {
        **row.body,
        "id": row.id,
        "runId": row.run_id,
        "evaluationId": row.evaluation_id,
        "createdAt": iso(moment_of(row.created)),
    }
