"""Repeating an execution only as long as something is open: one repetition of all that is, then a look."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field

from ..base.lazy_dataclass import dataclass
from ..project.entities import Execution
from ..reporting.early import EarlyDecisions
from ..reporting.evidence import each_run
from ..storage.errors import DatabaseReplaced, NotFound, StorageUnavailable
from ..storage.store import SqlStore
from .conclusion import early_decisions

log = logging.getLogger("evalstudio")

_UNREADABLE = "unreadable"


@dataclass(slots=True)
class _Progress:
    """What was seen of an execution: a later look reads only what came since."""

    early: EarlyDecisions
    last: str = ""


@dataclass(slots=True)
class RepetitionKeeper:
    """Looks at executions whose runs are over, and queues the next repetition or ends them.

    All it knows is in the database, so that any worker goes on where another was stopped.
    """

    store: SqlStore
    _repeated: set[str] = field(default_factory=set[str])
    _progress: dict[str, _Progress] = field(default_factory=dict[str, _Progress])
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def watch(self, execution: Execution) -> None:
        """Remember whether an execution is repeated until it is decided."""
        if execution.until_decided is not None and execution.is_unfinished:
            self._repeated.add(execution.id)

    async def after_run(self, execution_id: str) -> None:
        """Look at the execution of a run that has ended."""
        if execution_id in self._repeated:
            await self.look(execution_id)

    async def look(self, execution_id: str | None = None) -> None:
        """Decide about an execution, or about every one, that waits for a decision."""
        for one in await self.store.awaiting_decision(execution_id):
            async with self._looking:
                await self._decide(one)

    async def _decide(self, execution_id: str) -> None:
        try:
            if not await self.store.awaiting_decision(execution_id):
                return  # another worker has decided meanwhile
            if await self._repeat(await self.store.execution(execution_id)):
                return
            await self.store.finish_repeating(execution_id)
        except (StorageUnavailable, DatabaseReplaced):
            raise
        except NotFound:
            log.info("Execution %s was deleted while it was repeated", execution_id)
        except Exception:
            # It must not hold up the other executions, nor run for ever.
            log.exception("Execution %s cannot be judged and is not repeated further", execution_id)
            await self.store.mark_partial(execution_id, _UNREADABLE)
            await self.store.finish_repeating(execution_id)
        self._progress.pop(execution_id, None)
        self._repeated.discard(execution_id)

    async def _repeat(self, execution: Execution) -> bool:
        """Queue what is still open once more, if anything is and the repetitions are not used up."""
        early = await self._seen(execution)
        subjects = early.open_subjects()
        if not subjects or early.repetition >= (execution.until_decided or 1):
            return False
        return await self.store.add_repetition(execution.id, subjects, early.repetition + 1) > 0

    async def _seen(self, execution: Execution) -> EarlyDecisions:
        progress = self._progress.get(execution.id)
        if progress is None:
            progress = _Progress(await early_decisions(self.store, execution))
            self._progress[execution.id] = progress
        async for run, output in each_run(self.store, execution.id, after=progress.last, findings=False):
            progress.early.add(run, output)
            progress.last = run.id
        progress.early.close_round()
        return progress.early
