"""Recorded evaluations, and what people say about runs and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select

from ..base.json_text import HasJson
from ..project.entities import iso, new_id
from .contract import Filters, IdempotencyKey, Page
from .errors import NotFound
from .lists import in_period, paged
from .rows import AnyRow, moment_of
from .schema import evaluations, feedback, runs, short_key
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
    if not (unit.again and _has(unit, row["id"])):
        unit.add(evaluations, row)
        remember(unit, once, row["id"])
    return row["id"]


def _has(unit: Transaction, wanted: str) -> bool:
    found = unit.connection.execute(select(evaluations.c.id).where(evaluations.c.id == wanted))
    return found.first() is not None


def get_evaluation(unit: Transaction, wanted: str) -> dict[str, Any]:
    row = unit.connection.execute(select(evaluations).where(evaluations.c.id == wanted)).one_or_none()
    if row is None:
        raise NotFound("evaluation", wanted)
    return {**row.body, "id": row.id, "createdAt": iso(moment_of(row.created))}


def list_evaluations(
    unit: Transaction, filters: Filters, cursor: str | None, limit: int
) -> Page[dict[str, Any]]:
    """Summaries: the whole result is read one at a time."""
    query = select(*(column for column in evaluations.c if column.name != "body"))
    query = query.where(*in_period(evaluations.c.id, filters))
    if filters.outcome is not None:
        query = query.where(evaluations.c.outcome == filters.outcome)
    if filters.agent_id is not None:
        query = query.where(evaluations.c.agent_id == short_key(filters.agent_id))
    if filters.session_id is not None:
        query = query.where(evaluations.c.session_id == short_key(filters.session_id))
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
    if (target or unit.again) and (row := _feedback_row(unit, identity)) is not None:
        return _shown(row)
    table, wanted = (runs, run_id) if run_id is not None else (evaluations, evaluation_id)
    if unit.connection.execute(select(table.c.id).where(table.c.id == wanted)).first() is None:
        raise NotFound("run" if run_id is not None else "evaluation", str(wanted))
    unit.connection.execute(
        insert(feedback).values(
            id=identity, run_id=run_id, evaluation_id=evaluation_id, created=now_ms(), body=dict(body)
        )
    )
    if target is None:
        remember(unit, once, identity)
    row = _feedback_row(unit, identity)
    assert row is not None
    return _shown(row)


def list_feedback(
    unit: Transaction, run_id: str | None, evaluation_id: str | None, cursor: str | None, limit: int
) -> Page[dict[str, Any]]:
    query = select(feedback)
    if run_id is not None:
        query = query.where(feedback.c.run_id == run_id)
    if evaluation_id is not None:
        query = query.where(feedback.c.evaluation_id == evaluation_id)
    return paged(unit, query, feedback.c.id, _shown, cursor, limit)


def _feedback_row(unit: Transaction, identity: str) -> AnyRow | None:
    return unit.connection.execute(select(feedback).where(feedback.c.id == identity)).one_or_none()


def _shown(row: AnyRow) -> dict[str, Any]:
    return {
        **row.body,
        "id": row.id,
        "runId": row.run_id,
        "evaluationId": row.evaluation_id,
        "createdAt": iso(moment_of(row.created)),
    }
