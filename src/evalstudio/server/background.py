"""Work that a request starts and does not wait for, such as a review; it ends with the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("evalstudio")
_LAST_SECONDS = 5.0


class BackgroundWork:
    """Tasks under way. Who is asked to stop finishes what it is at, for a short while."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        task = asyncio.create_task(self._logged(work, name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _logged(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        try:
            await work
        except Exception:
            log.exception("%s broke off; what was stored until then is kept and marked as unfinished", name)

    async def stop(self) -> None:
        self.stopping.set()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=_LAST_SECONDS)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
