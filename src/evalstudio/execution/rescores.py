"""Whole executions scored again, beside what they came to: another execution of the same conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..project.entities import UNFINISHED, Execution, Run
from ..project.requirements import Requirement
from ..storage.contract import Filters, FinishedRun, IdempotencyKey, Snapshot, all_runs
from ..storage.errors import NotFound
from .environment import environment_snapshot
from .labels import with_automatic_labels
from .rescoring import TODAY, Measure, rescored_run
from .tracing import trace_execution
from .workspace import Workspace

_GROUP = 32


@dataclass(frozen=True, slots=True)
class RescoreRequest:
    """Which conversations to score again, by what, and what is required of it."""

    original: Execution
    measure: Measure = TODAY
    only_run: str | None = None
    trigger: str = "cli"
    labels: dict[str, Any] = field(default_factory=dict[str, Any])
    requirements: Sequence[Requirement] = ()


async def rescore_request(workspace: Workspace, target: str, measure: Measure = TODAY) -> RescoreRequest:
    """What scoring an execution or a single run again takes; the requirements are those of the eval today."""
    store = workspace.store
    try:
        original, only = await store.execution(target), None
    except NotFound:
        run = await store.run(target)
        original, only = await store.execution(run.execution_id), run.id
    if not original.is_over:
        raise InvalidInput(f"execution {original.id} is not over yet; it is {original.status}")
    requirements = original.requirements
    if original.eval_id is not None:
        with suppress(NotFound):
            requirements = (await store.get("eval", original.eval_id)).requirements
    return RescoreRequest(original, measure, only, requirements=requirements)


async def begin_rescore(
    workspace: Workspace, request: RescoreRequest, *, once: IdempotencyKey | None = None
) -> Execution:
    """The execution that the conversations scored again will be of."""
    original = request.original
    execution = Execution(
        eval_id=original.eval_id,
        eval_name=original.eval_name,
        trigger=request.trigger,
        labels=await with_automatic_labels(request.labels, workspace.folder),
        partial=UNFINISHED,
        requirements=[*request.requirements],
        agent_errors=original.agent_errors,
        source="rescored",
        rescored_from=original.rescored_from or original.id,
    )
    environment = await _environment(workspace, request)
    return await workspace.store.record(execution, [], environment=environment, once=once)


async def _environment(workspace: Workspace, request: RescoreRequest) -> Snapshot:
    store, scenarios = workspace.store, list[Any]()
    filters = Filters(execution_id=request.original.id)
    ids = {run.scenario_id async for run in all_runs(store, filters) if run.scenario_id is not None}
    for one in sorted(ids):
        with suppress(NotFound):
            scenarios.append(await store.get("scenario", one))
    overriding = [one for one in (request.measure.scenario, request.measure.evaluators) if one is not None]
    return await asyncio.to_thread(environment_snapshot, workspace, [*scenarios, *overriding], ())


async def rescore_execution(
    workspace: Workspace,
    request: RescoreRequest,
    execution: Execution,
    *,
    concurrency: int | None = None,
    stop: asyncio.Event | None = None,
    follow: Callable[[Execution], None] | None = None,
) -> Execution:
    """Score the finished runs again and store them; those that were never over are left out, and told."""
    store = workspace.store
    environment = await store.environment_of(request.original.id)
    limit = asyncio.Semaphore(concurrency or workspace.config.max_concurrency)

    async def score(run: Run) -> FinishedRun:
        async with limit:
            return await rescored_run(workspace, run, request.measure, execution.id, environment)

    async for runs in _groups(workspace, request):
        if stop is not None and stop.is_set():
            return await store.execution(execution.id)
        finished = await asyncio.gather(*(score(run) for run in runs if run.result is not None))
        if len(finished) < len(runs):
            await store.mark_partial(execution.id, "cancelled")
        now = await store.record(execution, finished)
        if follow is not None:
            follow(now)
    if request.only_run is not None:
        await store.mark_partial(execution.id, "only")
    done = await store.finish_recording(execution.id)
    await trace_execution(workspace.telemetry, store, execution.id)
    return done


async def _groups(workspace: Workspace, request: RescoreRequest) -> AsyncIterator[list[Run]]:
    """The runs to score again, with all that was said, so many at a time."""
    store, group = workspace.store, list[Run]()
    if request.only_run is not None:
        yield [await store.run(request.only_run)]
        return
    async for summary in all_runs(store, Filters(execution_id=request.original.id)):
        group.append(await store.run(summary.id))
        if len(group) == _GROUP:
            yield group
            group = []
    if group:
        yield group
