"""The run processor: claims runs, conducts many conversations at once and keeps its leases alive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from ..base.concurrency import set_within
from ..base.outages import riding_out
from ..base.traces import described, trace_of
from ..project.entities import Execution
from ..storage.contract import ClaimedRun, Lease, RunEnding
from ..storage.errors import DatabaseReplaced, LeaseLost, NotFound, StorageError, StorageUnavailable
from .budgets import BudgetKeeper
from .run_worker import AttemptInterrupted, RunWorker, system_error
from .tracing import trace_execution
from .until_decided import RepetitionKeeper
from .workers import has_died, new_worker_id
from .workspace import Workspace

log = logging.getLogger("evalstudio")

LEASE_SECONDS = 30.0
GRACE_SECONDS = 5.0
_IDLE_SECONDS = 2.0
# A place at a connector may become free in another process, which nobody is told of.
_LIMITED_SECONDS = 0.5
_TAKE_OVER_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_PAUSE_SECONDS = 2.0
_LONGEST_STOP_SECONDS = 20.0

Follow = Callable[[Execution], None]
T = TypeVar("T")


class Processor:
    """Works on the queue of one project until told to stop, or until there is nothing left to do."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        concurrency: int | None = None,
        execution_id: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self.worker_id = new_worker_id()
        self._store = workspace.store
        self._telemetry = workspace.telemetry
        self._budgets = BudgetKeeper(workspace.store)
        self._repetitions = RepetitionKeeper(workspace.store)
        self._known: set[str] = set()
        self._run_worker = RunWorker(workspace)
        self._most = concurrency or workspace.config.max_concurrency
        self._per_connector = workspace.config.max_per_connector
        self._execution_id = execution_id
        self._lease_seconds = lease_seconds
        self._grace_seconds = grace_seconds
        self._active: dict[str, tuple[ClaimedRun, asyncio.Task[None]]] = {}
        self._ended = asyncio.Event()
        self._failure: StorageError | None = None

    async def run(self, *, stop: asyncio.Event, until: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Claim and work. ``until`` says whether all that matters is done; without it, work goes on.

        A database that is out of reach for a while holds the work up; it does not end it.
        """
        with riding_out():
            await self._take_over()
            beside = (self._keep_leases(), self._watch_workers(), self._wake_at(stop))
            tasks = [asyncio.create_task(work) for work in beside]
            grace = self._grace_seconds
            try:
                await self._work_until(stop, until)
            except asyncio.CancelledError:
                grace = 0.0
                raise
            finally:
                await self._wind_down(grace)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    async def _work_until(self, stop: asyncio.Event, until: Callable[[], Awaitable[bool]] | None) -> None:
        while not stop.is_set() and self._failure is None:
            self._ended.clear()
            await self._budgets.look()
            claimed = await self._claim()
            if not claimed and not self._active and until is not None and await until():
                break
            if len(self._active) >= self._most:
                # Every step between the end of a run and the claim of the next waits for all other work.
                await self._ended.wait()
            else:
                await self._wait(self._ended.wait(), self._new_work())

    async def _wake_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._ended.set()

    def _new_work(self) -> Awaitable[object]:
        seconds = _IDLE_SECONDS if self._per_connector is None else _LIMITED_SECONDS
        return self._store.wait_for_work(self.worker_id, seconds)

    async def _take_over(self) -> None:
        """Go on with what processes left that died: their runs, without waiting for leases to expire."""
        one_machine = self._store.database.on_one_machine
        workers = await self._store.workers()
        dead = [worker for worker in workers if has_died(worker, one_machine=one_machine)]
        if dead and (count := await self._store.abandon(dead)):
            log.warning("%d runs of a process that died are queued again", count)
        await self._repetitions.look(self._execution_id)

    async def _watch_workers(self) -> None:
        """A lease may be long, or written by a clock that was ahead: the dead are looked for all the time."""
        while True:
            await asyncio.sleep(_TAKE_OVER_SECONDS)
            try:
                await self._take_over()
            except StorageError as error:
                log.warning("Runs of lost workers could not be taken over: %s", error)

    async def _claim(self) -> int:
        free = self._most - len(self._active)
        if free <= 0:
            return 0
        claimed = await self._store.claim(
            self.worker_id,
            free,
            self._lease_seconds,
            per_connector=self._per_connector,
            execution_id=self._execution_id,
        )
        for one in claimed:
            await self._watch_execution(one.run.execution_id)
            self._active[one.lease.run_id] = (one, asyncio.create_task(self._work(one)))
        return len(claimed)

    async def _watch_execution(self, execution_id: str) -> None:
        if execution_id not in self._known:
            self._known.add(execution_id)
            with suppress(NotFound):  # deleted since it was claimed
                execution = await self._store.execution(execution_id)
                self._budgets.watch(execution)
                self._repetitions.watch(execution)

    async def _work(self, claimed: ClaimedRun) -> None:
        lease = claimed.lease
        try:
            await self._finish(lease, await self._conduct(claimed))
            await self._repetitions.after_run(claimed.run.execution_id)
            await trace_execution(self._telemetry, self._store, claimed.run.execution_id)
        except LeaseLost as error:
            log.info("%s", error)
        except (StorageUnavailable, DatabaseReplaced) as error:
            self._failure = error
        except AttemptInterrupted as error:
            log.warning("Run %s was interrupted: %s", lease.run_id, error)
            await self._give_back(lease, str(error))
        except Exception as error:
            log.exception("The end of run %s could not be stored", lease.run_id)
            await self._give_back(lease, f"{type(error).__name__}: {error}")
        finally:
            self._active.pop(lease.run_id, None)
            self._budgets.run_ended(claimed.run.execution_id)
            self._ended.set()

    async def _conduct(self, claimed: ClaimedRun) -> RunEnding:
        """Hold the conversation. Whatever it contains ends this run at most, never the processor."""
        try:
            return await self._run_worker.execute(claimed)
        except (LeaseLost, StorageUnavailable, DatabaseReplaced, AttemptInterrupted):
            raise
        except Exception as error:
            log.exception("Run %s could not be held", claimed.lease.run_id)
            return system_error(described(error), trace_of(error))

    async def _finish(self, lease: Lease, ending: RunEnding) -> None:
        try:
            await self._store.finish(lease, ending)
        except (LeaseLost, StorageUnavailable, DatabaseReplaced):
            raise
        except Exception as error:
            log.exception("The result of run %s could not be stored", lease.run_id)
            reason = f"The result could not be stored: {type(error).__name__}: {error}"
            await self._store.finish(lease, system_error(reason))

    async def _give_back(self, lease: Lease, why: str) -> None:
        """What cannot even be stored as an error is tried again, a bounded number of times."""
        try:
            await self._store.fail_attempt(lease, why)
        except StorageError as failure:
            # Its lease runs out, which counts as an attempt that did not finish.
            log.error("Run %s could not be given back: %s", lease.run_id, failure)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            leases = [claimed.lease for claimed, _ in self._active.values()]
            if not leases:
                continue
            try:
                beat = await self._store.heartbeat(leases, self._lease_seconds)
            except StorageError as error:
                log.warning("Leases could not be renewed: %s", error)
                continue
            for run_id in beat.cancelled | beat.lost:
                if run_id in self._active:
                    self._active[run_id][1].cancel()

    @staticmethod
    async def _wait(*events: Awaitable[object]) -> None:
        """Wait for one of these, whichever comes first."""
        waits = [asyncio.ensure_future(event) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in waits:
                future.cancel()
            await asyncio.wait(waits)
        for future in waits:
            if not future.cancelled() and (error := future.exception()) is not None:
                raise error

    async def _wind_down(self, grace: float) -> None:
        """Let what is nearly done finish; release the rest."""
        tasks = [task for _, task in self._active.values()]
        if not tasks:
            return
        leases = [claimed.lease for claimed, _ in self._active.values()]
        try:
            await asyncio.wait(tasks, timeout=grace)
        finally:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._store.release(leases)


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

    async with watching(workspace, execution, follow):
        processor = Processor(workspace, concurrency=concurrency, execution_id=execution.id)
        await processor.run(stop=stop, until=over)
    await trace_execution(workspace.telemetry, store, execution.id)
    return await store.execution(execution.id)


@asynccontextmanager
async def watching(workspace: Workspace, execution: Execution, follow: Follow | None) -> AsyncGenerator[None]:
    """While others work on an execution, and once more when they have, tell how it stands."""
    if follow is None:
        yield
        return
    watcher = asyncio.create_task(_watch(workspace, execution.id, follow))
    try:
        yield
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
    follow(await workspace.store.execution(execution.id))


async def _watch(workspace: Workspace, execution_id: str, follow: Follow) -> None:
    while True:
        follow(await workspace.store.execution(execution_id))
        await asyncio.sleep(_LOOK_SECONDS)


class ProcessorTask:
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
            # Runs that need the plugin would all end in an error; they stay queued.
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
                await set_within(self._stop, _PAUSE_SECONDS)
