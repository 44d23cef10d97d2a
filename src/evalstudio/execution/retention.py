"""Deleting what the project's retention does not keep, beside everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ..storage.contract import Pruned
from ..storage.errors import StorageError
from .workspace import Workspace

log = logging.getLogger("evalstudio")

_EVERY_SECONDS = 3600.0


async def retain(workspace: Workspace) -> Pruned:
    """Delete what is not kept, once."""
    rules = workspace.config.retention
    return await workspace.store.retain(rules.age, rules.max_executions, rules.keep_labels)


@asynccontextmanager
async def retaining(workspace: Workspace) -> AsyncGenerator[None]:
    """Hold the project to its retention as long as a server or a worker runs; any number of them may."""
    task = asyncio.create_task(_work(workspace)) if workspace.config.retention.enabled else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _work(workspace: Workspace) -> None:
    while True:
        try:
            done = await retain(workspace)
            if done.executions or done.evaluations:
                log.info(
                    "retention: deleted %d executions, %d evaluations", done.executions, done.evaluations
                )
        except StorageError as error:
            log.error("Retention waits for the database: %s", error)
        except Exception:
            log.exception("Retention failed and will be tried again")
        await asyncio.sleep(_EVERY_SECONDS)
