"""From rows to entities, and the snapshots they refer to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from ..evaluators.results import Verdict
from ..project.entities import Counts, Execution, RunSummary
from .contract import Snapshot
from .schema import executions, runs, snapshots
from .transaction import COUNTED, Transaction, now_ms

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


def verdict_of(row: AnyRow) -> Verdict | None:
    if row.outcome is None:
        return None
    return Verdict(
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


_REMEMBERED = 256


def keep(unit: Transaction, found: Mapping[str, Snapshot]) -> None:
    """Keep snapshots that are not kept yet, and mark all as used now, so that pruning spares them."""
    if not found:
        return
    moment = now_ms()
    # Sorted, so that two processes queueing the same things never wait for each other in a circle.
    rows = [{"hash": key, "used": moment, "body": found[key].body} for key in sorted(found)]
    insert = (postgresql.insert if unit.is_postgres else sqlite.insert)(snapshots)
    unit.connection.execute(
        insert.on_conflict_do_update(index_elements=["hash"], set_={"used": insert.excluded.used}), rows
    )


class SnapshotCache:
    """Snapshots already read: content never changes under its hash."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    def of(self, unit: Transaction, hashes: Iterable[str | None]) -> dict[str, Mapping[str, Any]]:
        wanted = {key for key in hashes if key is not None}
        found = {key: self._known[key] for key in wanted if key in self._known}
        if missing := sorted(wanted - found.keys()):
            rows = unit.connection.execute(
                select(snapshots.c.hash, snapshots.c.body).where(snapshots.c.hash.in_(missing))
            )
            found |= {row.hash: orjson.loads(row.body) for row in rows}
        for key, body in found.items():
            self._known[key] = body
            self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found
