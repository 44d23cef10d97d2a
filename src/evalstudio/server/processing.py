"""The run processor beside the API: started with the server, started again should the database fail."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ..storage.errors import StorageError

if TYPE_CHECKING:
    from ..execution.workspace import Workspace

log = logging.getLogger("evalstudio")

_PAUSE_SECONDS = 2.0
_LONGEST_STOP_SECONDS = 20.0


class Processing:
    """Keeps a processor working until told to stop."""

    def __init__(self, workspace: Workspace, *, enabled: bool) -> None:
        self.enabled = enabled
        self.problem: str | None = None
        self._workspace = workspace
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done() and self.problem is None

    def start(self) -> None:
        if self._workspace.plugin_problems:
            # Runs that need the plugin would all end in an error; they had better wait.
            names = ", ".join(self._workspace.plugin_problems)
            self.problem = f"a plugin could not be loaded ({names}); mend it and start the server again"
        elif self.enabled and self._task is None:
            self._task = asyncio.create_task(self._work())

    def ask_to_stop(self) -> None:
        self._stop.set()

    async def stop(self) -> None:
        """Finish what is nearly done, release the rest."""
        self._stop.set()
        if self._task is not None:
            _, hanging = await asyncio.wait([self._task], timeout=_LONGEST_STOP_SECONDS)
            for task in hanging:
                # What it still holds is queued again once its leases have expired.
                log.warning("The run processor did not stop in time")
                task.cancel()

    async def _work(self) -> None:
        from ..execution.processor import Processor

        while not self._stop.is_set():
            try:
                self.problem = None
                await Processor(self._workspace).run(stop=self._stop)
            except StorageError as error:
                self.problem = str(error)
                log.error("The run processor stopped and will start again: %s", error)
            except Exception as error:
                self.problem = f"{type(error).__name__}: {error}"
                log.exception("The run processor failed and will start again")
            if not self._stop.is_set():
                try:
                    await asyncio.wait_for(self._stop.wait(), _PAUSE_SECONDS)
                except TimeoutError:
                    continue
