"""Runs and executions as telemetry sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from time import time_ns
from typing import TYPE_CHECKING

from ..conversation.results import RunResult
from ..project.entities import Execution, Run, RunSummary, derived_id
from ..storage.contract import ClaimedRun, Records, RunEnding
from ..storage.errors import StorageError
from ..telemetry import RunFacts, traced

if TYPE_CHECKING:
    from ..telemetry.recording import Telemetry


async def traced_run(
    telemetry: Telemetry | None, claimed: ClaimedRun, execute: Callable[[ClaimedRun], Awaitable[RunEnding]]
) -> RunEnding:
    """What executing a run comes to, told as a span where telemetry is asked for."""
    if telemetry is None:
        return await execute(claimed)
    return await traced(telemetry, _facts(claimed.run, attempt=claimed.lease.attempt), execute(claimed))


async def traced_rescoring(
    telemetry: Telemetry | None, run: Run, judging: Awaitable[RunResult], execution_id: str | None = None
) -> RunResult:
    """What judging a stored run again comes to; its results are about the spans of then.

    Where the result is kept, it is told as a run of the execution it is kept in.
    """
    is_recorded = bool((run.output or {}).get("recording"))
    facts = _facts(run, attempt=run.attempt, rescored=True)
    facts = replace(facts, recorded=is_recorded, held_in=run.execution_id or None)
    if execution_id is not None:
        facts = replace(facts, execution_id=execution_id, run_id=derived_id(execution_id, run.id))
    return await traced(telemetry, facts, judging)


async def trace_execution(telemetry: Telemetry | None, records: Records, execution_id: str) -> None:
    """Tell of an execution once it is over."""
    if telemetry is None:
        return
    try:
        execution = await records.execution(execution_id)
    except StorageError:
        return
    if execution.is_over:
        from ..telemetry.recording import ExecutionFacts

        telemetry.execution_ended(
            ExecutionFacts(
                id=execution.id,
                status=execution.status,
                started_ns=_nanoseconds(execution.started_at or execution.created_at),
                ended_ns=_nanoseconds(execution.completed_at),
                eval_id=execution.eval_id,
                eval_name=execution.eval_name,
                trigger=execution.trigger,
                runs=_counts(execution),
            )
        )


def _facts(run: RunSummary, *, attempt: int, rescored: bool = False) -> RunFacts:
    return RunFacts(
        run_id=run.id,
        execution_id=run.execution_id or None,
        eval_id=run.eval_id,
        scenario=run.scenario_name,
        case=run.case_name,
        persona=run.persona_name,
        connector=run.connector_name,
        repetition=run.repetition,
        attempt=attempt,
        rescored=rescored,
    )


def _counts(execution: Execution) -> dict[str, int]:
    counts = execution.counts
    return {
        "total": counts.total,
        "passed": counts.passed,
        "failed": counts.failed,
        "errored": counts.errored,
        "unasserted": counts.unasserted,
        "cancelled": counts.cancelled,
    }


def _nanoseconds(moment: datetime | None) -> int:
    return time_ns() if moment is None else int(moment.timestamp() * 1e6) * 1_000
