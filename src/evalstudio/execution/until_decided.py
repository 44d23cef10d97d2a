"""Repeating an eval only as long as something is open: one repetition of all that is, then a look."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..project.entities import Execution, new_id
from ..reporting.evidence import each_run
from .conclusion import early_decisions
from .request import ExecutionRequest, checked_runs, start_execution
from .workspace import Workspace

Work = Callable[[Execution], Awaitable[Execution]]


async def run_until_decided(
    workspace: Workspace,
    request: ExecutionRequest,
    work: Work,
    stop: asyncio.Event,
    *,
    agent_errors_fail: bool = False,
) -> Execution:
    """Run up to all repetitions of a request. Each further one joins the same execution."""
    store = workspace.store
    once = replace(request, repetitions=1, until_decided=request.repetitions)
    execution = await work(await start_execution(workspace, once))
    early = await early_decisions(store, execution, agent_errors_fail=agent_errors_fail)
    last = ""
    for repetition in range(1, request.repetitions + 1):
        async for run, output in each_run(store, execution.id, after=last):
            early.add(run, output)
            last = run.id
        early.close_round()
        subjects = early.open_subjects()
        over = repetition == request.repetitions or stop.is_set() or execution.counts.cancelled
        if not subjects or over:
            break
        following = [
            replace(run, repetition=repetition + 1, id=new_id())
            async for run in checked_runs(workspace, replace(once, only_subjects=subjects))
        ]
        execution = await work(await store.add_runs(execution.id, following))
    return execution
