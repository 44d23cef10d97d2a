"""Running an eval to its end in this process: start, work, follow, and stop cleanly when asked."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Any

from ..project.entities import Execution, RunSummary
from ..reporting.statistics import RunFacts
from ..storage.contract import Filters, Records
from .processor import Processor
from .workspace import Workspace

Follow = Callable[[Execution], None]

_LOOK_SECONDS = 0.2


async def work_off(
    workspace: Workspace,
    execution: Execution,
    *,
    stop: asyncio.Event,
    concurrency: int | None = None,
    follow: Follow | None = None,
) -> Execution:
    """Work on an execution until it is over, whoever does the rest of it."""
    store = workspace.store

    async def over() -> bool:
        return (await store.execution(execution.id)).status in ("completed", "cancelled")

    watcher = asyncio.create_task(_watch(workspace, execution.id, follow)) if follow else None
    try:
        processor = Processor(workspace, concurrency=concurrency, execution_id=execution.id)
        await processor.run(stop=stop, until=over)
    finally:
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
    done = await store.execution(execution.id)
    if follow is not None:
        follow(done)
    return done


async def _watch(workspace: Workspace, execution_id: str, follow: Follow) -> None:
    while True:
        follow(await workspace.store.execution(execution_id))
        await asyncio.sleep(_LOOK_SECONDS)


async def all_runs(records: Records, filters: Filters) -> AsyncIterator[RunSummary]:
    """Every run that fits, page by page."""
    cursor: str | None = None
    while True:
        page = await records.runs(filters, cursor=cursor, limit=500)
        for run in page.items:
            yield run
        cursor = page.cursor
        if cursor is None:
            return


def facts_of(run: RunSummary) -> RunFacts:
    """A run as statistics see it."""
    return RunFacts(
        id=run.id,
        subject=subject_of(run),
        outcome=run.result.outcome if run.result else None,
        fault=run.result.fault if run.result else None,
        asserted=run.result.asserted if run.result else True,
        latency_ms=run.latency_ms,
        tokens=run.total_tokens,
        reason=run.result.reason if run.result else "",
    )


def subject_of(run: RunSummary) -> str:
    """What runs that are mere repetitions of each other have in common, for a reader."""
    parts = [run.scenario_name, run.case_name, run.persona_name, run.connector_name]
    return " · ".join(part for part in parts if part)


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Generator[None]:
    """The first Ctrl-C or SIGTERM asks to stop; a second one ends at once."""
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()

    def asked() -> None:
        if stop.is_set() and main is not None:
            main.cancel()
        stop.set()

    signals = (signal.SIGINT, signal.SIGTERM)
    handled: list[Any] = []
    for number in signals:
        try:
            loop.add_signal_handler(number, asked)
            handled.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            break
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
