"""Executions that were held elsewhere, in a test or by whoever recorded them: kept without a queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import insert, select, update

from ..evaluators.results import with_later
from ..project.entities import UNFINISHED, Execution
from .attempts import add_turn, end
from .contract import FinishedRun, IdempotencyKey, Lease, Snapshot
from .lists import get_execution
from .queue import execution_row, run_row, stored_execution
from .rows import keep
from .schema import executions, runs
from .transaction import Transaction, known_target, now_ms, remember, unmark_partial


def record(
    unit: Transaction,
    execution: Execution,
    finished: Sequence[FinishedRun],
    *,
    environment: Snapshot | None = None,
    once: IdempotencyKey | None = None,
) -> Execution:
    """Runs that are over, with their execution if it is new; no worker sees them waiting.

    All of them or none; a run that is there already stays as it is.
    """
    if (target := known_target(unit, once)) is not None:
        return stored_execution(unit, target)
    moment, total = now_ms(), len(finished)
    is_new = not unit.has(executions, execution.id)
    if not is_new:
        known = known_runs(unit, [one.run.id for one in finished])
        finished = [one for one in finished if one.run.id not in known]
        _add_to_total(unit, execution.id, len(finished), moment)
    else:
        row = execution_row(execution, total, moment)
        row["environment"] = environment.hash if environment else None
        unit.connection.execute(insert(executions), row)
        keep(unit, {environment.hash: environment} if environment else {})
        unit.count(execution.id, queued=-total, running=total)
        remember(unit, once, execution.id)
    _insert_runs(unit, execution, finished, moment)
    return stored_execution(unit, execution.id)


def _add_to_total(unit: Transaction, execution_id: str, number: int, moment: int) -> None:
    unit.count(execution_id, total=number, running=number)
    over = update(executions).where(executions.c.id == execution_id)
    unit.connection.execute(over.values(completed=moment))


def _insert_runs(
    unit: Transaction, execution: Execution, finished: Sequence[FinishedRun], moment: int
) -> None:
    new = [one.run for one in finished]
    keep(unit, {s.hash: s for run in new for s in (run.scenario, run.persona, run.connector) if s})
    started = {"status": "running", "started": moment}
    if new:
        unit.connection.execute(insert(runs), [run_row(run, execution, moment) | started for run in new])
    for one in finished:
        _end(unit, execution.id, one)


def known_runs(unit: Transaction, run_ids: Collection[str]) -> frozenset[str]:
    """Which of these runs are kept already."""
    query = select(runs.c.id).where(runs.c.id.in_(run_ids))
    return frozenset(unit.connection.execute(query).scalars())


def finish_recording(unit: Transaction, execution_id: str) -> Execution:
    """Note that no more runs are to come."""
    execution = get_execution(unit, execution_id)
    unmark_partial(unit, execution_id, UNFINISHED)
    unit.add_event("execution.completed", execution_id, body={"total": execution.counts.total})
    return stored_execution(unit, execution_id)


def _end(unit: Transaction, execution_id: str, finished: FinishedRun) -> None:
    turns, ending = [*finished.turns], finished.ending
    if ending.last_turn is not None:
        turns.append(ending.last_turn)
    if turns and ending.final_results:
        last = turns[-1]
        turns[-1] = last.model_copy(update={"results": with_later(last.results, ending.final_results)})
    lease = Lease(finished.run.id, 1, "")
    for turn in turns[:-1]:
        add_turn(unit, execution_id, lease, turn)
    whole = replace(ending, last_turn=turns[-1] if turns else None, final_results=())
    end(unit, lease, whole, anybody=True)
