"""Repeating an eval only as long as something is open: one repetition of all that is, then a look."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..project.entities import Execution, new_id
from ..reporting.early import EarlyDecisions
from ..reporting.evidence import tagged_scenarios
from ..storage.contract import Filters
from .processor import all_runs
from .request import ExecutionRequest, checked_runs, start_execution
from .workspace import Workspace

Work = Callable[[Execution], Awaitable[Execution]]


async def run_until_decided(
    workspace: Workspace, request: ExecutionRequest, work: Work, stop: asyncio.Event
) -> tuple[Execution, EarlyDecisions]:
    """Run up to all repetitions of a request. Each further one joins the same execution."""
    store = workspace.store
    early = EarlyDecisions(request.requirements, await tagged_scenarios(store, request.requirements))
    once = replace(request, repetitions=1)
    execution = await work(await start_execution(workspace, once))
    for repetition in range(1, request.repetitions + 1):
        runs = [run async for run in all_runs(store, Filters(execution_id=execution.id))]
        early.add_round([run for run in runs if run.repetition == repetition])
        subjects = early.open_subjects()
        over = repetition == request.repetitions or stop.is_set() or execution.counts.cancelled
        if not subjects or over:
            break
        following = [
            replace(run, repetition=repetition + 1, id=new_id())
            async for run in checked_runs(workspace, replace(once, only_subjects=subjects))
        ]
        execution = await work(await store.add_runs(execution.id, following))
    return execution, early
