"""The queue of runs: putting executions in, claiming under a lease, keeping the lease, giving back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Text,
    bindparam,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    tuple_,
    type_coerce,
    update,
)

from ..conversation.definitions import Definition
from ..evaluators.results import Verdict
from ..project.entities import Execution, name_key
from .attempts import end
from .contract import ClaimedRun, Heartbeat, IdempotencyKey, Lease, NewRun, RunEnding, Snapshot
from .prepared import Prepared
from .rows import AnyRow, SnapshotCache, execution_of, keep, summary_of
from .schema import COUNTED, HELD, WAITING, executions, outputs, runs
from .transaction import DATABASE_CLOCK, Transaction, known_target, now_ms, remember


def enqueue(
    unit: Transaction,
    execution: Execution,
    new: Sequence[NewRun],
    once: IdempotencyKey | None = None,
    environment: Snapshot | None = None,
) -> Execution:
    """An execution with its runs, whole or not at all. ``environment`` is what it runs with."""
    if (target := known_target(unit, once)) is not None:
        return stored_execution(unit, target)
    if unit.again and unit.has(executions, execution.id):
        return stored_execution(unit, execution.id)
    moment = now_ms()
    row = execution_row(execution, len(new), moment)
    row["environment"] = environment.hash if environment else None
    unit.connection.execute(insert(executions), row)
    used = {s.hash: s for run in new for s in (run.scenario, run.persona, run.connector) if s}
    keep(unit, used if environment is None else used | {environment.hash: environment})
    for run in new:
        unit.add(runs, run_row(run, execution, moment))
    remember(unit, once, execution.id)
    unit.add_event(f"execution.{'queued' if new else 'completed'}", execution.id, body={"total": len(new)})
    unit.new_work = bool(new)
    return stored_execution(unit, execution.id)


def stored_execution(unit: Transaction, execution_id: str) -> Execution:
    query = select(executions).where(executions.c.id == execution_id)
    return execution_of(unit.connection.execute(query).one())


def execution_row(execution: Execution, total: int, moment: int) -> dict[str, Any]:
    return dict.fromkeys(COUNTED, 0) | {
        "id": execution.id,
        "eval_id": execution.eval_id,
        "eval_name": execution.eval_name,
        "name_key": name_key(execution.eval_name or ""),
        "status": "queued" if total else "completed",
        "cancelling": False,
        "deleting": False,
        "total": total,
        "queued": total,
        "created": moment,
        "updated": moment,
        "completed": None if total else moment,
        "trigger": execution.trigger,
        "labels": execution.labels,
        "partial": execution.partial,
        "replayed": execution.replayed,
        "source": execution.source,
        "rescored_from": execution.rescored_from,
        "requirements": [_document(one) for one in execution.requirements],
        "budget": _document(execution.budget) if execution.budget else None,
        "until_decided": execution.until_decided,
        "agent_errors": execution.agent_errors,
    }


def _document(definition: Definition) -> dict[str, Any]:
    return definition.model_dump(by_alias=True, exclude_none=True)


def run_row(run: NewRun, execution: Execution, moment: int) -> dict[str, Any]:
    case_name = str(run.case["name"]) if run.case and run.case.get("name") else None
    return {
        "id": run.id,
        "execution_id": execution.id,
        "status": "queued",
        "attempt": 1,
        "losses": 0,
        "queued": moment,
        "eval_id": execution.eval_id,
        "scenario_id": run.scenario_id,
        "persona_id": run.persona_id,
        "connector_id": run.connector_id,
        "scenario_name": run.scenario_name,
        "persona_name": run.persona_name,
        "connector_name": run.connector_name,
        "case_name": case_name,
        "name_key": name_key(f"{run.scenario_name} {case_name or ''}"),
        "repetition": run.repetition,
        "created": moment,
        "updated": moment,
        "turn_count": 0,
        "scenario_snapshot": run.scenario.hash,
        "persona_snapshot": run.persona.hash if run.persona else None,
        "connector_snapshot": run.connector.hash,
        "case": None if run.case is None else dict(run.case),
        "case_hash": run.case_hash,
    }


# A run whose worker was lost so often, or that could not be stored so often, ends in an error. Losses are
# rarely the run's own doing: a machine that is restarted again and again must not end healthy runs.
MOST_LOSSES = 10
MOST_FAILURES = 3
_LONGEST_LEASE_MS = 24 * 3_600_000
_BATCH = 500
_CLAIM_LOCK = 0x65766C63
_UNDER_WAY = "The agent may have been called once more than the turns kept here show."
# The case is read as text: one that is damaged ends its own run and no other.
_CLAIMED_COLUMNS = [
    type_coerce(column, Text).label("case") if column.name == "case" else column for column in runs.c
]


def has_work(unit: Transaction) -> bool:
    """Whether anything is waiting, or its lease has run out."""
    waiting = exists().where(WAITING).select_from(runs)
    expired = exists().where(HELD, _has_expired(unit)).select_from(runs)
    return bool(unit.connection.execute(select(or_(waiting, expired))).scalar())


def _has_expired(unit: Transaction) -> ColumnElement[bool]:
    """Leases that are over. One that is not from this clock (the machine was started anew) is over too."""
    clock = unit.clock()
    return runs.c.lease_until < clock if unit.is_postgres else _is_over(clock)


def _is_over(clock: Any) -> ColumnElement[bool]:
    return or_(runs.c.lease_until < clock, runs.c.lease_until > clock + _LONGEST_LEASE_MS)


def claim(
    unit: Transaction,
    worker_id: str,
    limit: int,
    lease_seconds: float,
    per_connector: int | None,
    execution_id: str | None,
    bodies: SnapshotCache,
) -> list[ClaimedRun]:
    """Take the runs that have waited longest, with at most ``per_connector`` under way at one connector.

    The limit holds over all processes of the database.
    """
    _take_back_expired(unit)
    capacity = None if per_connector is None else _capacity(unit, per_connector)
    chosen = _choose(unit, limit, capacity, execution_id)
    if not chosen:
        return []
    moment = now_ms()
    values = {"ids": chosen, "worker": worker_id, "moment": moment, "lease": int(lease_seconds * 1000)}
    values |= {} if unit.is_postgres else {"clock": unit.clock()}
    rows = unit.connection.execute(_claiming(unit.is_postgres), values).all()
    for row in rows:
        unit.count(row.execution_id, queued=-1, running=1)
        unit.add_event("run.started", row.execution_id, row.id, {"attempt": row.attempt})
    place = {run_id: number for number, run_id in enumerate(chosen)}
    return _claimed(unit, sorted(rows, key=lambda row: place[row.id]), worker_id, bodies)


@lru_cache(maxsize=2)
def _claiming(is_postgres: bool) -> Any:
    """The statement that claims, built once: putting it together costs more than running it."""
    clock = DATABASE_CLOCK if is_postgres else bindparam("clock", type_=BigInteger)
    until: ColumnElement[int] = clock + bindparam("lease", type_=BigInteger)
    return (
        update(runs)
        .where(runs.c.id.in_(bindparam("ids", expanding=True)))
        .values(
            status="running",
            worker_id=bindparam("worker"),
            lease_until=until,
            started=bindparam("moment"),
            updated=bindparam("moment"),
        )
        .returning(*_CLAIMED_COLUMNS)
    )


def _capacity(unit: Transaction, per_connector: int) -> dict[str | None, int]:
    """How many more runs each connector can take."""
    if unit.is_postgres:
        # Two workers that count at the same moment would both see the last free place.
        unit.connection.execute(select(func.pg_advisory_xact_lock(literal_column(str(_CLAIM_LOCK)))))
    query = select(runs.c.connector_id, func.count()).where(HELD).group_by(runs.c.connector_id)
    capacity: dict[str | None, int] = defaultdict(lambda: per_connector)
    for connector_id, held in unit.connection.execute(query):
        capacity[connector_id] = per_connector - held
    return capacity


def _choose(
    unit: Transaction, limit: int, capacity: dict[str | None, int] | None, execution_id: str | None
) -> list[str]:
    if capacity is None and execution_id is not None and not unit.is_postgres:
        return [run_id for (run_id,) in _NEXT.rows(unit, {"execution": execution_id, "free": limit})]
    chosen: list[str] = []
    while len(chosen) < limit:
        free = limit - len(chosen)
        conditions: list[Any] = [WAITING]
        if full := [connector for connector, left in (capacity or {}).items() if left <= 0]:
            # Runs of connectors that were deleted meanwhile share the name "none".
            conditions.append(func.coalesce(runs.c.connector_id, "").not_in([name or "" for name in full]))
        if execution_id is not None:
            conditions.append(runs.c.execution_id == execution_id)
        if chosen:
            conditions.append(runs.c.id.not_in(chosen))
        rows = unit.connection.execute(
            select(runs.c.id, runs.c.connector_id)
            .where(*conditions)
            .order_by(runs.c.queued, runs.c.id)
            .limit(free)
            .with_for_update(skip_locked=True)
        ).all()
        before = len(chosen)
        for row in rows:
            if capacity is None or capacity[row.connector_id] > 0:
                chosen.append(row.id)
                if capacity is not None:
                    capacity[row.connector_id] -= 1
        if len(rows) < free or len(chosen) == before + len(rows):
            break
    return chosen


def _claimed(
    unit: Transaction, rows: Sequence[AnyRow], worker_id: str, bodies: SnapshotCache
) -> list[ClaimedRun]:
    columns = ("scenario_snapshot", "persona_snapshot", "connector_snapshot")
    body = bodies.of(unit, (getattr(row, column) for row in rows for column in columns))
    claimed: list[ClaimedRun] = []
    for row in rows:
        try:
            claimed.append(_claimed_run(row, worker_id, body))
        except (ValueError, KeyError) as error:
            _end_unreadable(unit, row, error)
    return claimed


def _claimed_run(row: AnyRow, worker_id: str, body: Mapping[str, Mapping[str, Any]]) -> ClaimedRun:
    return ClaimedRun(
        lease=Lease(row.id, row.attempt, worker_id),
        run=summary_of(row),
        case=None if row.case is None else orjson.loads(row.case),
        scenario=body[row.scenario_snapshot],
        persona=body[row.persona_snapshot] if row.persona_snapshot else None,
        connector=body[row.connector_snapshot],
    )


def _end_unreadable(unit: Transaction, row: AnyRow, error: Exception) -> None:
    """A run whose stored definition cannot be read ends by itself, without its neighbours."""
    what = "a snapshot it refers to is gone or damaged" if isinstance(error, KeyError) else str(error)
    _end_in_error(unit, row, f"What was stored for this run cannot be read: {what}")


def heartbeat(unit: Transaction, leases: Collection[Lease], lease_seconds: float) -> Heartbeat:
    """Keep leases for another while, and say which are still held."""
    by_run = {lease.run_id: lease for lease in leases}
    if not by_run:
        return Heartbeat(frozenset(), frozenset(), frozenset())

    def same(rows: Iterable[AnyRow]) -> frozenset[str]:
        return frozenset(
            row.id for row in rows if by_run[row.id] == Lease(row.id, row.attempt, row.worker_id)
        )

    lease_columns = (runs.c.id, runs.c.attempt, runs.c.worker_id)
    mine = runs.c.worker_id.in_({lease.worker_id for lease in leases})
    extend = update(runs).where(runs.c.id.in_(by_run), mine, HELD)
    extend = extend.values(lease_until=unit.clock() + int(lease_seconds * 1000)).returning(*lease_columns)
    held = same(unit.connection.execute(extend).all())
    others = by_run.keys() - held
    cancelled: frozenset[str] = frozenset()
    if others:
        query = select(*lease_columns).where(runs.c.id.in_(others), runs.c.status == "cancelled")
        cancelled = same(unit.connection.execute(query))
    return Heartbeat(held, cancelled, frozenset(others - cancelled))


def release(unit: Transaction, leases: Collection[Lease]) -> int:
    """Give runs back unfinished; they start afresh under the next attempt."""
    keys = [(lease.run_id, lease.attempt, lease.worker_id) for lease in leases]
    mine = tuple_(runs.c.id, runs.c.attempt, runs.c.worker_id).in_(keys)
    return take_back(unit, mine, "its worker stopped", lost=False)


def fail_attempt(unit: Transaction, lease: Lease, why: str) -> int:
    """Give back a run whose end could not be stored; after a few times it ends in an error."""
    key = (lease.run_id, lease.attempt, lease.worker_id)
    mine = tuple_(runs.c.id, runs.c.attempt, runs.c.worker_id).in_([key])
    return take_back(unit, mine, why, most=MOST_FAILURES)


def abandon(unit: Transaction, worker_ids: Collection[str]) -> int:
    """Take back everything held by workers known to be gone, without waiting for their leases."""
    return take_back(unit, runs.c.worker_id.in_(worker_ids), "its worker was lost")


def workers(unit: Transaction) -> list[str]:
    return list(unit.connection.execute(select(runs.c.worker_id).where(HELD).distinct()).scalars())


# What every claim asks of SQLite, where nothing has to be locked.
_NEXT = Prepared(
    select(runs.c.id)
    .where(WAITING, runs.c.execution_id == bindparam("execution"))
    .order_by(runs.c.queued, runs.c.id)
    .limit(bindparam("free", type_=BigInteger))
)
_EXPIRED = Prepared(select(runs.c.id).where(HELD, _is_over(bindparam("clock", type_=BigInteger))).limit(1))


def _take_back_expired(unit: Transaction) -> None:
    if unit.is_postgres or _EXPIRED.first_row(unit, {"clock": unit.clock()}) is not None:
        take_back(unit, _has_expired(unit), "its worker was lost")


def take_back(
    unit: Transaction, which: ColumnElement[bool], why: str, *, lost: bool = True, most: int | None = None
) -> int:
    """Return running runs to the queue, a bounded number at a time."""
    most = MOST_LOSSES if most is None else most
    rows = unit.connection.execute(
        select(runs.c.id, runs.c.execution_id, runs.c.attempt, runs.c.losses)
        .where(HELD, which)
        .limit(_BATCH)
        .with_for_update(skip_locked=True)
    ).all()
    hopeless = [row for row in rows if lost and row.losses + 1 >= most]
    back = [row for row in rows if row not in hopeless]
    if back:
        _requeue(unit, back, why, lost)
    for row in hopeless:
        _give_up(unit, row, why)
    return len(rows)


def _requeue(unit: Transaction, rows: Sequence[AnyRow], why: str, lost: bool) -> None:
    moment = now_ms()
    unit.connection.execute(
        update(runs)
        .where(runs.c.id.in_([row.id for row in rows]))
        .values(
            status="queued",
            attempt=runs.c.attempt + 1,
            losses=runs.c.losses + int(lost),
            queued=moment,
            updated=moment,
            worker_id=None,
            lease_until=None,
            started=None,
        )
    )
    for row in rows:
        interrupted = Verdict(outcome="error", fault="system", reason=f"Interrupted: {why}. {_UNDER_WAY}")
        result = interrupted.model_dump(by_alias=True)
        unit.add(outputs, {"run_id": row.id, "attempt": row.attempt, "result": result, "output": {}})
        unit.count(row.execution_id, queued=1, running=-1)
        unit.add_event("run.queued", row.execution_id, row.id, {"attempt": row.attempt + 1, "reason": why})
    unit.new_work = True


def _give_up(unit: Transaction, row: AnyRow, why: str) -> None:
    """A run that brings down every worker must not do so for ever."""
    _end_in_error(unit, row, f"Given up after {row.losses + 1} attempts that did not finish; last: {why}")


def _end_in_error(unit: Transaction, row: AnyRow, reason: str) -> None:
    verdict = Verdict(outcome="error", fault="system", reason=reason)
    end(unit, Lease(row.id, row.attempt, ""), RunEnding(verdict, error=reason), anybody=True)
