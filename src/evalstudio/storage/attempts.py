"""Writing to an attempt: its turns, and its end. Only the worker that holds the lease may.

Rows are appended and never rewritten. A run ends exactly once: the update that ends it finds it running
under this attempt and this worker, or nothing happens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Boolean, Integer, bindparam, func, or_, select, update

from ..evaluators.results import Turn
from .contract import COUNT_OF, Lease, RunEnding
from .errors import LeaseLost
from .prepared import Prepared
from .schema import USED, VERDICT, messages, outputs, runs, turns
from .transaction import Transaction, now_ms

# Built once: putting a statement together costs more than running it.
_LOCKED_ROW = Prepared(
    select(runs.c.execution_id, runs.c.status, runs.c.attempt, runs.c.worker_id)
    .where(runs.c.id == bindparam("run_id"))
    .with_for_update()
)
_LAST_TURN = select(func.max(turns.c.turn)).where(
    turns.c.run_id == bindparam("run_id"), turns.c.attempt == bindparam("run_attempt")
)
_MEASURED = (*USED, "error", "latency_ms", "total_tokens", "thread_id", "answer_hash")
_ENDED = ("status", *VERDICT, *_MEASURED, "completed", "updated")
_last: Any = func.coalesce(bindparam("last_turn", type_=Integer), _LAST_TURN.scalar_subquery(), 0)
_ended: dict[str, Any] = {name: bindparam(name) for name in _ENDED}
_END = Prepared(
    update(runs)
    .where(
        runs.c.id == bindparam("run_id"),
        runs.c.attempt == bindparam("run_attempt"),
        runs.c.status == "running",
        or_(bindparam("anybody", type_=Boolean), runs.c.worker_id == bindparam("worker")),
    )
    .values(_ended | {"lease_until": None, "turn_count": _last})
    .returning(runs.c.execution_id)
)

_MOST_REASON = 500
# Turns are never rewritten: results that came after the last one was kept stand in the output until read.
FINAL_RESULTS = "finalResults"


def append_turn(unit: Transaction, lease: Lease, turn: Turn) -> None:
    """Keep a finished turn."""
    row = _row(unit, lease)
    if row.status != "running" or (row.attempt, row.worker_id) != (lease.attempt, lease.worker_id):
        raise LeaseLost(lease.run_id, _why(row, lease))
    if unit.again and _has_turn(unit, lease, turn.number):
        return
    add_turn(unit, row.execution_id, lease, turn)


def finish(unit: Transaction, lease: Lease, ending: RunEnding) -> None:
    """End a run, with its last turn if that comes along."""
    if not end(unit, lease, ending):
        row = _row(unit, lease)
        mine = (row.attempt, row.worker_id) == (lease.attempt, lease.worker_id)
        if unit.again and mine and row.status in ("completed", "error"):
            return
        raise LeaseLost(lease.run_id, _why(row, lease))


def end(unit: Transaction, lease: Lease, ending: RunEnding, *, anybody: bool = False) -> bool:
    """End a run if it runs under this attempt, in the hands of this worker (or of anybody)."""
    verdict, moment = ending.verdict, now_ms()
    values: dict[str, Any] = {name: getattr(verdict, name) for name in VERDICT} | {
        **{name: getattr(ending, name) for name in USED},
        "run_id": lease.run_id,
        "run_attempt": lease.attempt,
        "worker": lease.worker_id,
        "anybody": anybody,
        "status": "error" if verdict.outcome == "error" else "completed",
        "error": ending.error,
        "latency_ms": ending.latency_ms,
        "total_tokens": ending.total_tokens,
        "last_turn": ending.last_turn.number if ending.last_turn else None,
        "thread_id": ending.thread_id,
        "answer_hash": ending.answer_hash,
        "completed": moment,
        "updated": moment,
    }
    ended = _END.first_row(unit, values)
    if ended is None:
        return False
    (execution_id,) = ended
    if ending.last_turn is not None:
        add_turn(unit, execution_id, lease, ending.last_turn)
    _add_output(unit, execution_id, lease, ending)
    return True


def _add_output(unit: Transaction, execution_id: str, lease: Lease, ending: RunEnding) -> None:
    """Keep the output under its attempt, count the outcome and tell."""
    verdict = ending.verdict
    output = dict(ending.output)
    if ending.final_results:
        output[FINAL_RESULTS] = [result.to_json() for result in ending.final_results]
    key = {"run_id": lease.run_id, "attempt": lease.attempt}
    unit.add(outputs, {**key, "result": verdict.model_dump(by_alias=True), "output": output})
    unit.count(execution_id, running=-1, **{COUNT_OF[verdict.outcome]: 1})
    unit.add_event(
        "run.finished",
        execution_id,
        lease.run_id,
        {
            "outcome": verdict.outcome,
            "fault": verdict.fault,
            "score": verdict.score,
            "reason": verdict.reason[:_MOST_REASON],
            "latencyMs": ending.latency_ms,
            "totalTokens": ending.total_tokens,
        },
    )


def add_turn(unit: Transaction, execution_id: str, lease: Lease, turn: Turn) -> None:
    key: dict[str, Any] = {"run_id": lease.run_id, "attempt": lease.attempt, "turn": turn.number}
    unit.add(turns, key | {"body": turn.to_json()})
    for position, message in enumerate(turn.all_messages):
        unit.add(messages, key | {"position": position, "body": message.to_json()})
    unit.add_event("run.turn", execution_id, lease.run_id, {"attempt": lease.attempt, "turn": turn.number})


class _Held(NamedTuple):
    """Who has a run, and how it stands."""

    execution_id: str
    status: str
    attempt: int
    worker_id: str | None


def _row(unit: Transaction, lease: Lease) -> _Held:
    row = _LOCKED_ROW.first_row(unit, {"run_id": lease.run_id})
    if row is None:
        raise LeaseLost(lease.run_id, "it was deleted")
    return _Held(*row)


def _has_turn(unit: Transaction, lease: Lease, number: int) -> bool:
    query = select(turns.c.turn).where(turns.c.run_id == lease.run_id, turns.c.attempt == lease.attempt)
    return unit.connection.execute(query.where(turns.c.turn == number)).first() is not None


def _why(row: _Held, lease: Lease) -> str:
    if row.status == "cancelled":
        return "it was cancelled"
    if row.attempt != lease.attempt:
        return f"the lease ran out and attempt {row.attempt} has taken its place"
    if row.status in ("completed", "error"):
        return "it is already finished"
    return "another worker has it" if row.status == "running" else "it is back in the queue"
