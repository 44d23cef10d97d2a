"""From rows to entities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ..project.entities import Counts, Execution, RunSummary, RunVerdict
from .schema import executions, runs
from .transaction import COUNTED

AnyRow = Any  # a row of whichever columns were selected

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

RUN_COLUMNS = [
    column
    for column in runs.c
    if column.name not in {"case", "name_key", "queued", "losses", "lease_until", "worker_id"}
    and not column.name.endswith("_snapshot")
]
EXECUTION_COLUMNS = list(executions.c)


def moment_of(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds_of(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def maybe(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else moment_of(milliseconds)


def execution_of(row: AnyRow) -> Execution:
    return Execution.model_construct(
        id=row.id,
        created_at=moment_of(row.created),
        updated_at=moment_of(row.updated),
        eval_id=row.eval_id,
        eval_name=row.eval_name,
        status=row.status,
        counts=Counts.model_construct(**{name: getattr(row, name) for name in COUNTED}),
        started_at=maybe(row.started),
        completed_at=maybe(row.completed),
        trigger=row.trigger,
        labels=row.labels,
    )


def verdict_of(row: AnyRow) -> RunVerdict | None:
    if row.outcome is None:
        return None
    return RunVerdict.model_construct(
        success=row.outcome == "pass",
        outcome=row.outcome,
        fault=row.fault,
        score=row.score,
        overall_score=row.overall_score,
        reason=row.reason or "",
        asserted=bool(row.asserted),
    )


def run_fields(row: AnyRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "created_at": moment_of(row.created),
        "updated_at": moment_of(row.updated),
        "execution_id": row.execution_id,
        "eval_id": row.eval_id,
        "scenario_id": row.scenario_id,
        "scenario_name": row.scenario_name,
        "persona_id": row.persona_id,
        "persona_name": row.persona_name,
        "connector_id": row.connector_id,
        "connector_name": row.connector_name,
        "case_name": row.case_name,
        "repetition": row.repetition,
        "attempt": row.attempt,
        "status": row.status,
        "started_at": maybe(row.started),
        "completed_at": maybe(row.completed),
        "latency_ms": row.latency_ms,
        "total_tokens": row.total_tokens,
        "turn_count": row.turn_count,
        "thread_id": row.thread_id,
        "result": verdict_of(row),
        "error": row.error,
    }


def summary_of(row: AnyRow) -> RunSummary:
    return RunSummary.model_construct(**run_fields(row))
