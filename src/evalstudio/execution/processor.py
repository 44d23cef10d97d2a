"""The run processor: claims runs, holds many conversations at once, keeps its leases alive.

A process that dies leaves leases that expire; a process that is asked to stop finishes or releases.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from ..storage.contract import ClaimedRun, Lease, RunEnding
from ..storage.errors import LeaseLost, StorageError
from .conducting import Conductor, system_error
from .workspace import Workspace

log = logging.getLogger("evalstudio")

LEASE_SECONDS = 30.0
GRACE_SECONDS = 5.0
_IDLE_SECONDS = 2.0


def new_worker_id() -> str:
    """Names the machine and the process, so that a neighbour can tell whether it still lives."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def has_died(worker_id: str) -> bool:
    """Whether a worker of this machine is gone for certain."""
    host, _, rest = worker_id.partition(":")
    number = rest.partition(":")[0]
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
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
        self._conductor = Conductor(workspace)
        self._most = concurrency or workspace.config.max_concurrency
        self._per_connector = workspace.config.max_per_connector
        self._execution_id = execution_id
        self._lease_seconds = lease_seconds
        self._grace_seconds = grace_seconds
        self._active: dict[str, tuple[ClaimedRun, asyncio.Task[None]]] = {}
        self._turnstiles: dict[str, asyncio.Semaphore] = {}
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
            self.worker_id,
            free,
            self._lease_seconds,
            execution_id=self._execution_id,
        )
        for one in claimed:
            task = asyncio.create_task(self._work(one))
            self._active[one.lease.run_id] = (one, task)
        return len(claimed)

    def _turnstile(self, connector_id: str | None) -> AbstractAsyncContextManager[Any]:
        """What bounds the runs at one connector; each waits its turn with its lease kept alive."""
        if self._per_connector is None:
            return nullcontext()
        key = connector_id or ""
        return self._turnstiles.setdefault(key, asyncio.Semaphore(self._per_connector))

    async def _work(self, claimed: ClaimedRun) -> None:
        try:
            async with self._turnstile(claimed.run.connector_id):
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
            return await self._conductor.conduct(claimed)
        except StorageError:
            raise
        except Exception as error:
            log.exception("Run %s could not be held", claimed.lease.run_id)
            return system_error(f"{type(error).__name__}: {error}")

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
        asked = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            asked.cancel()
            await asyncio.wait((work, asked))
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error

    async def _wind_down(self) -> None:
        """Let what is nearly done finish; release the rest."""
        tasks = [task for _, task in self._active.values()]
        if not tasks:
            return
        leases: list[Lease] = [claimed.lease for claimed, _ in self._active.values()]
        _, unfinished = await asyncio.wait(tasks, timeout=self._grace_seconds)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._store.release(leases)
