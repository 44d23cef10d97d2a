"""From rows to entities, and the snapshots they refer to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from ..evaluators.results import Verdict
from ..project.entities import Counts, Execution, RunSummary
from ..project.requirements import Budget, Requirement
from .contract import Snapshot
from .schema import COUNTED, runs, snapshots
from .transaction import Transaction, now_ms

AnyRow = Any  # a row of whichever columns were selected

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

RUN_COLUMNS = [
    column
    for column in runs.c
    if column.name not in {"case", "name_key", "queued", "losses", "lease_until", "worker_id"}
    and not column.name.endswith(("_snapshot", "_hash"))
]
_SAME_IN_RUNS = [column.name for column in RUN_COLUMNS if column.name in RunSummary.model_fields]


_SAME_IN_EXECUTIONS = (
    *("id", "eval_id", "eval_name", "status", "trigger", "labels", "partial", "replayed"),
    *("source", "rescored_from"),
)


def moment_of(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds_of(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _times(row: AnyRow) -> dict[str, Any]:
    return {
        "created_at": moment_of(row.created),
        "updated_at": moment_of(row.updated),
        "started_at": None if row.started is None else moment_of(row.started),
        "completed_at": None if row.completed is None else moment_of(row.completed),
    }


def execution_of(row: AnyRow) -> Execution:
    same = {name: getattr(row, name) for name in _SAME_IN_EXECUTIONS}
    same["requirements"] = [Requirement.model_validate(one) for one in row.requirements or ()]
    same["budget"] = Budget.model_validate(row.budget) if row.budget else None
    counts = Counts.model_construct(**{name: getattr(row, name) for name in COUNTED})
    return Execution.model_construct(**same, **_times(row), counts=counts)


def run_fields(row: AnyRow) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(row, name) for name in _SAME_IN_RUNS}
    verdict = None
    if row.outcome is not None:
        verdict = Verdict(
            outcome=row.outcome,
            fault=row.fault,
            score=row.score,
            overall_score=row.overall_score,
            reason=row.reason or "",
        )
    return fields | _times(row) | {"result": verdict}


def summary_of(row: AnyRow) -> RunSummary:
    return RunSummary.model_construct(**run_fields(row))


_REMEMBERED = 256


def keep(unit: Transaction, new: Mapping[str, Snapshot]) -> None:
    """Keep snapshots that are not kept yet, and mark all as used now, so that pruning spares them."""
    if not new:
        return
    moment = now_ms()
    # Sorted, so that two processes queueing the same things never wait for each other in a circle.
    rows = [{"hash": key, "used": moment, "body": new[key].body} for key in sorted(new)]
    insert = (postgresql.insert if unit.is_postgres else sqlite.insert)(snapshots)
    unit.connection.execute(
        insert.on_conflict_do_update(index_elements=["hash"], set_={"used": insert.excluded.used}), rows
    )


class SnapshotCache:
    """Snapshots already read: content never changes under its hash."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    def of(self, unit: Transaction, hashes: Iterable[str | None]) -> dict[str, Mapping[str, Any]]:
        requested = {key for key in hashes if key is not None}
        bodies = {key: self._known[key] for key in requested if key in self._known}
        if missing := sorted(requested - bodies.keys()):
            query = select(snapshots.c.hash, snapshots.c.body).where(snapshots.c.hash.in_(missing))
            for row in unit.connection.execute(query):
                # What is damaged is left out: whoever needs it says so.
                with suppress(orjson.JSONDecodeError):
                    bodies[row.hash] = orjson.loads(row.body)
        for key, body in bodies.items():
            self._known[key] = body
            self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return bodies
