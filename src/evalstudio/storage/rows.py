"""From rows to entities, and the snapshots they refer to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from sqlalchemy import select

from ..base.constructed import constructed
from ..base.times import iso, moment_of
from ..evaluators.results import Verdict
from ..project.entities import Counts, Execution, RunSummary
from ..project.requirements import Budget, stored_requirement
from .contract import Snapshot
from .schema import COUNTED, executions, runs, snapshots
from .transaction import Transaction, now_ms

AnyRow = Any  # a row of whichever columns were selected

RUN_COLUMNS = [
    column
    for column in runs.c
    if column.name not in {"case", "name_key", "queued", "losses", "lease_until", "worker_id"}
    and not column.name.endswith(("_snapshot", "_hash"))
]
_SAME_IN_RUNS = [column.name for column in RUN_COLUMNS if column.name in RunSummary.model_fields]
_same_in_runs = attrgetter(*_SAME_IN_RUNS)


_SAME_IN_EXECUTIONS = (
    *("id", "eval_id", "eval_name", "status", "trigger", "labels", "partial", "replayed"),
    *("source", "rescored_from", "until_decided", "agent_errors"),
)


def _times(row: AnyRow) -> dict[str, Any]:
    return {
        "created_at": moment_of(row.created),
        "updated_at": moment_of(row.updated),
        "started_at": None if row.started is None else moment_of(row.started),
        "completed_at": None if row.completed is None else moment_of(row.completed),
    }


def execution_of(row: AnyRow) -> Execution:
    same = {name: getattr(row, name) for name in _SAME_IN_EXECUTIONS}
    same["requirements"] = [stored_requirement(one) for one in row.requirements or ()]
    same["budget"] = Budget.model_validate(row.budget) if row.budget else None
    counts = constructed(Counts, {name: getattr(row, name) for name in COUNTED})
    fields = {**same, **_times(row), "counts": counts}
    return constructed(Execution, {name: fields[name] for name in Execution.model_fields})


def run_fields(row: AnyRow) -> dict[str, Any]:
    fields: dict[str, Any] = dict(zip(_SAME_IN_RUNS, _same_in_runs(row), strict=True))
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
    return constructed(RunSummary, run_fields(row))


class _JsonShape:
    """The fields of an entity in JSON, each with the column that it comes from or depends on."""

    def __init__(self, entity: type[BaseModel], columns: Sequence[str], **others: str) -> None:
        self._names = [to_camel(name) for name in entity.model_fields]
        sources = ((others | _MOMENTS).get(name, name) for name in entity.model_fields)
        self._values = itemgetter(*(columns.index(source) for source in sources))

    def of(self, row: AnyRow) -> dict[str, Any]:
        document: dict[str, Any] = dict(zip(self._names, self._values(row), strict=True))
        document["createdAt"], document["updatedAt"] = _iso(row.created), _iso(row.updated)
        document["startedAt"] = None if row.started is None else _iso(row.started)
        document["completedAt"] = None if row.completed is None else _iso(row.completed)
        return document


_MOMENTS = {f"{name}_at": name for name in ("created", "updated", "started", "completed")}
_SUMMARY = _JsonShape(RunSummary, [column.name for column in RUN_COLUMNS], result="outcome")
_EXECUTION = _JsonShape(Execution, list(executions.c.keys()), counts="total")


def summary_json(row: AnyRow) -> dict[str, Any]:
    """What a run's summary is in JSON, straight from its row; a test holds it against the entity."""
    document = _SUMMARY.of(row)
    if row.outcome is not None:
        document["result"] = {
            "outcome": row.outcome,
            "reason": row.reason or "",
            "score": row.score,
            "fault": row.fault,
            "overallScore": row.overall_score,
            "success": row.outcome == "pass",
        }
    return document


def execution_json(row: AnyRow) -> dict[str, Any]:
    """What an execution is in JSON, straight from its row."""
    if row.requirements or row.budget:
        return execution_of(row).model_dump(mode="json", by_alias=True)
    document = _EXECUTION.of(row)
    counts = {name: getattr(row, name) for name in COUNTED}
    as_entity = constructed(Counts, counts)
    document["counts"] = {**counts, "finished": as_entity.finished, "standing": as_entity.standing}
    document["requirements"], document["budget"] = [], None
    return document


@lru_cache(8192)
def _iso(milliseconds: int) -> str:
    return iso(moment_of(milliseconds))


_REMEMBERED = 256


def keep(unit: Transaction, new: Mapping[str, Snapshot]) -> None:
    """Keep snapshots that are not kept yet, and mark all as used now, so that pruning spares them."""
    if not new:
        return
    moment = now_ms()
    # Sorted, so that two processes queueing the same things never wait for each other in a circle.
    rows = [{"hash": key, "used": moment, "body": new[key].body} for key in sorted(new)]
    insert = unit.insert_into(snapshots)
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
