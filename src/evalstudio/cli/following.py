"""Seeing an execution through to its end, with a line of progress on a terminal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .projects import LocalProject, Project

if TYPE_CHECKING:
    from ..execution.session import Follow
    from ..project.entities import Execution
    from ..storage.contract import Records

_LOOK_SECONDS = 0.3


async def follow(
    project: Project, execution: Execution, stop: asyncio.Event, concurrency: int | None, *, quiet: bool
) -> Execution:
    """Work on it here, or watch the server do so, until it is over or somebody wants to stop."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from ..execution.session import work_off

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=execution.counts.total)

        def show(now: Execution) -> None:
            counts = now.counts
            done = counts.passed + counts.failed + counts.errored + counts.cancelled
            words = f"{counts.passed} passed, {counts.failed} failed, {counts.errored} errored"
            asked = " (stopping)" if stop.is_set() else ""
            bar.update(task, completed=done, description=words + asked)

        if isinstance(project, LocalProject):
            return await work_off(
                project.workspace, execution, stop=stop, concurrency=concurrency, follow=show
            )
        return await _watch(project.records, execution.id, stop, show)


async def _watch(records: Records, wanted: str, stop: asyncio.Event, show: Follow) -> Execution:
    while True:
        now = await records.execution(wanted)
        show(now)
        if stop.is_set() or now.status in ("completed", "cancelled"):
            return now
        try:
            await asyncio.wait_for(stop.wait(), _LOOK_SECONDS)
        except TimeoutError:
            continue
