"""Workers for live runs: each is an ``evalstudio worker`` on the cluster, and one that dies is replaced.

The queue stays in the database: who works on it, and that nothing is done twice, is decided there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from time import monotonic
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..execution.processor import Follow, watching, work_off
from ..execution.workspace import ModelOptions, Workspace, open_workspace
from ..project.config import ExecutionSettings
from ..project.entities import Execution
from .connection import open_cluster
from .pool import ActorPool
from .sending import SentConfig, project_folder, sent_config

# Longer than a worker takes to finish or release what it has.
_LONGEST_STOP_SECONDS = 30.0
_ASK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Orders:
    """What workers are to do, and how."""

    execution_id: str
    concurrency: int | None


class QueueActor:
    """Works on the runs of one execution until it is over."""

    def __init__(self, project: SentConfig, options: ModelOptions | None) -> None:
        self._project, self._options = project, options
        self._stop = asyncio.Event()

    async def ready(self) -> None:
        self._project.enter()

    async def work(self, seat: int, orders: Orders) -> None:
        async with open_workspace(self._project.config_path, self._options) as workspace:
            await work_off(
                workspace,
                await workspace.store.execution(orders.execution_id),
                stop=self._stop,
                concurrency=orders.concurrency,
            )

    async def stop(self) -> None:
        self._stop.set()


async def work_off_on_ray(
    workspace: Workspace,
    config_path: Path,
    settings: ExecutionSettings,
    execution: Execution,
    *,
    stop: asyncio.Event,
    workers: int | None = None,
    concurrency: int | None = None,
    options: ModelOptions | None = None,
    follow: Follow | None = None,
) -> Execution:
    """``work_off`` by workers on a cluster: as many as it has CPUs, each with so many runs at once."""
    with open_cluster(settings, workers, project_folder(config_path)) as cluster:
        project = sent_config(config_path, cluster)
        # A worker is told to stop while it works.
        actor = cluster.ray.remote(QueueActor).options(
            num_cpus=1, max_concurrency=2, scheduling_strategy="SPREAD"
        )
        count, orders = workers or cluster.cpus, Orders(execution.id, concurrency)
        pool = ActorPool(cluster.ray, lambda: actor.remote(project, options), count, at_once=1)
        async with watching(workspace, execution, follow):
            try:
                await _until_stopped(pool, _work(pool, orders), stop)
            finally:
                pool.close()
    return await workspace.store.execution(execution.id)


async def _work(pool: ActorPool, orders: Orders) -> None:
    async for _ in pool.each("work", range(1, pool.size + 1), orders):
        pass


async def _until_stopped(pool: ActorPool, work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Work; when it is to stop, say so to those who do, and wait until they have, for a while."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        until = monotonic() + _LONGEST_STOP_SECONDS
        # Again and again: one that took over from another has not heard it.
        while not working.done() and pool.is_busy and monotonic() < until:
            pool.tell_all("stop")
            await asyncio.wait((working,), timeout=_ASK_SECONDS)
        if working.done():
            await working
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
