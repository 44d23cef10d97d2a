"""Putting an execution with all its runs into the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select

from ..project.entities import Execution, name_key
from .contract import NewRun, Once
from .idempotency import known_target, remember
from .rows import execution_of
from .schema import executions, runs
from .snapshots import keep
from .transaction import COUNTED, Unit, now_ms


def enqueue(unit: Unit, execution: Execution, new: Sequence[NewRun], once: Once | None) -> Execution:
    """An execution with its runs, whole or not at all."""
    if (target := known_target(unit, once)) is not None:
        return _execution(unit, target)
    if unit.again and _exists(unit, execution.id):
        return _execution(unit, execution.id)
    moment = now_ms()
    unit.connection.execute(insert(executions), _execution_row(execution, len(new), moment))
    keep(unit, {s.hash: s for run in new for s in (run.scenario, run.persona, run.connector) if s})
    for run in new:
        unit.add(runs, _run_row(run, execution, moment))
    remember(unit, once, execution.id)
    unit.tell(f"execution.{'queued' if new else 'completed'}", execution.id, body={"total": len(new)})
    unit.new_work = bool(new)
    return _execution(unit, execution.id)


def _exists(unit: Unit, wanted: str) -> bool:
    found = unit.connection.execute(select(executions.c.id).where(executions.c.id == wanted))
    return found.first() is not None


def _execution(unit: Unit, wanted: str) -> Execution:
    return execution_of(unit.connection.execute(select(executions).where(executions.c.id == wanted)).one())


def _execution_row(execution: Execution, total: int, moment: int) -> dict[str, Any]:
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
    }


def _run_row(run: NewRun, execution: Execution, moment: int) -> dict[str, Any]:
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
    }
