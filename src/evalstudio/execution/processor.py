"""The run processor: claims runs, conducts many conversations at once and keeps its leases alive."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from ..base.traces import described, trace_of
from ..project.entities import Execution, RunSummary
from ..storage.contract import ClaimedRun, Filters, Page, Records, RunEnding
from ..storage.errors import LeaseLost, StorageError
from .run_worker import RunWorker, system_error
from .workspace import Workspace

log = logging.getLogger("evalstudio")

LEASE_SECONDS = 30.0
GRACE_SECONDS = 5.0
_IDLE_SECONDS = 2.0
_LOOK_SECONDS = 0.2
_PAUSE_SECONDS = 2.0
_LONGEST_STOP_SECONDS = 20.0

Follow = Callable[[Execution], None]
T = TypeVar("T")


def new_worker_id() -> str:
    """Names the machine and the process, so that others on the machine can tell whether it still runs."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def has_died(worker_id: str) -> bool:
    """Whether a worker of this machine is gone for certain."""
    host, _, rest = worker_id.partition(":")
    number = rest.partition(":")[0]
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


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
        self._run_worker = RunWorker(workspace)
        self._most = concurrency or workspace.config.max_concurrency
        self._per_connector = workspace.config.max_per_connector
        self._execution_id = execution_id
        self._lease_seconds = lease_seconds
        self._grace_seconds = grace_seconds
        self._active: dict[str, tuple[ClaimedRun, asyncio.Task[None]]] = {}
        self._semaphores: dict[str, asyncio.Semaphore] = {}
        self._ended = asyncio.Event()
        self._failure: StorageError | None = None

    async def run(self, *, stop: asyncio.Event, until: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Claim and work. ``until`` says whether all that matters is done; without it, work goes on."""
        await self._take_over()
        beat = asyncio.create_task(self._keep_leases())
        try:
            while not stop.is_set() and self._failure is None:
                claimed = await self._claim()
                if not claimed and not self._active:
                    if until is not None and await until():
                        break
                    await self._wait(stop, self._store.wait_for_work(self.worker_id, _IDLE_SECONDS))
                elif not claimed or len(self._active) >= self._most:
                    self._ended.clear()
                    await self._wait(stop, self._ended.wait())
        finally:
            await self._wind_down()
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    async def _take_over(self) -> None:
        """Runs of processes that died on this machine need not wait for their leases to expire."""
        dead = [worker for worker in await self._store.workers() if has_died(worker)]
        if dead and (count := await self._store.abandon(dead)):
            log.warning("%d runs of a process that died are queued again", count)

    async def _claim(self) -> int:
        free = self._most - len(self._active)
        if free <= 0:
            return 0
        claimed = await self._store.claim(
            self.worker_id, free, self._lease_seconds, execution_id=self._execution_id
        )
        for one in claimed:
            self._active[one.lease.run_id] = (one, asyncio.create_task(self._work(one)))
        return len(claimed)

    def _limit(self, connector_id: str | None) -> AbstractAsyncContextManager[Any]:
        """What bounds the runs at one connector; each waits its turn with its lease kept alive."""
        if self._per_connector is None:
            return nullcontext()
        return self._semaphores.setdefault(connector_id or "", asyncio.Semaphore(self._per_connector))

    async def _work(self, claimed: ClaimedRun) -> None:
        try:
            async with self._limit(claimed.run.connector_id):
                ending = await self._conduct(claimed)
            await self._store.finish(claimed.lease, ending)
        except LeaseLost as error:
            log.info("%s", error)
        except StorageError as error:
            self._failure = error
        finally:
            self._active.pop(claimed.lease.run_id, None)
            self._ended.set()

    async def _conduct(self, claimed: ClaimedRun) -> RunEnding:
        try:
            return await self._run_worker.execute(claimed)
        except StorageError:
            raise
        except Exception as error:
            log.exception("Run %s could not be held", claimed.lease.run_id)
            return system_error(described(error), trace_of(error))

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
    async def _wait(stop: asyncio.Event, something: Awaitable[object]) -> None:
        """Wait for something or for the request to stop, whichever comes first."""
        work: asyncio.Future[object] = asyncio.ensure_future(something)
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            stopping.cancel()
            await asyncio.wait((work, stopping))
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error

    async def _wind_down(self) -> None:
        """Let what is nearly done finish; release the rest."""
        tasks = [task for _, task in self._active.values()]
        if not tasks:
            return
        leases = [claimed.lease for claimed, _ in self._active.values()]
        _, unfinished = await asyncio.wait(tasks, timeout=self._grace_seconds)
        for task in unfinished:
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


async def every_item(read: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    """The items of a list, page by page; ``read`` takes the cursor of a page."""
    cursor: str | None = None
    while True:
        page = await read(cursor)
        for item in page.items:
            yield item
        cursor = page.cursor
        if cursor is None:
            return


def all_runs(records: Records, filters: Filters) -> AsyncIterator[RunSummary]:
    """Every run that fits."""
    return every_item(lambda cursor: records.runs(filters, cursor=cursor, limit=500))


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Generator[None]:
    """The first Ctrl-C or SIGTERM asks to stop; a second one ends at once."""
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()

    def request_stop() -> None:
        if stop.is_set() and main is not None:
            main.cancel()
        stop.set()

    with ExitStack() as stack:
        # Not every platform or thread can handle signals.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, request_stop)
                stack.callback(loop.remove_signal_handler, number)
        yield


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
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), _PAUSE_SECONDS)
