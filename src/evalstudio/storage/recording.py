"""Executions that were held elsewhere, such as in a test: kept whole, without having been in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import insert

from ..evaluators.results import with_later
from ..project.entities import Execution
from .attempts import add_turn, end
from .contract import FinishedRun, Lease
from .queue import execution_row, run_row, stored_execution
from .rows import keep
from .schema import executions, runs
from .transaction import Transaction, now_ms


def record(unit: Transaction, execution: Execution, finished: Sequence[FinishedRun]) -> Execution:
    """An execution with runs that are over, whole or not at all; no worker sees them waiting."""
    if unit.again and unit.has(executions, execution.id):
        return stored_execution(unit, execution.id)
    moment, total = now_ms(), len(finished)
    unit.connection.execute(insert(executions), execution_row(execution, total, moment))
    unit.count(execution.id, queued=-total, total=-total)
    add_finished(unit, execution, finished)
    return stored_execution(unit, execution.id)


def add_finished(unit: Transaction, execution: Execution, finished: Sequence[FinishedRun]) -> None:
    """Further runs of an execution, which are over already."""
    moment, new = now_ms(), [one.run for one in finished]
    keep(unit, {s.hash: s for run in new for s in (run.scenario, run.persona, run.connector) if s})
    held = {"status": "running", "started": moment}
    if new:
        unit.connection.execute(insert(runs), [run_row(run, execution, moment) | held for run in new])
    unit.count(execution.id, total=len(new), running=len(new))
    for one in finished:
        _end(unit, execution.id, one)


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
