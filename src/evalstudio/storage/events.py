"""Events read back in the order in which they became visible, and waking those who wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sqlalchemy import func, select

from ..base.times import moment_of
from .contract import Event
from .schema import events
from .transaction import Transaction


def read_events(
    unit: Transaction,
    after_id: int = 0,
    *,
    execution_id: str | None = None,
    run_id: str | None = None,
    limit: int = 500,
) -> list[Event]:
    query = select(events).where(events.c.id > after_id).order_by(events.c.id).limit(limit)
    if execution_id is not None:
        query = query.where(events.c.execution_id == execution_id)
    if run_id is not None:
        query = query.where(events.c.run_id == run_id)
    return [
        Event(row.id, row.kind, row.execution_id, row.run_id, row.body, moment_of(row.at))
        for row in unit.connection.execute(query)
    ]


def last_event_id(unit: Transaction) -> int:
    return unit.connection.execute(select(func.max(events.c.id))).scalar() or 0


class WakeSignal:
    """Counts how often something has happened; whoever waits names the count already known."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        self.count += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wait(self, known: int, timeout: float) -> bool:
        """Whether it happened since ``known``, at once or within the timeout."""
        if self.count != known:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            # Not wait_for: it drops a cancellation that comes together with the signal.
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            return self.count != known
        finally:
            self._waiting.discard(future)
        return True


class WakeSignals:
    """The signal for new work and the one for new events."""

    def __init__(self) -> None:
        self.work = WakeSignal()
        self.events = WakeSignal()

    def notify(self, *, work: bool, events: bool) -> None:
        if work:
            self.work.notify()
        if events:
            self.events.notify()


class ListenTask:
    """Keeps a task that listens to other processes running while somebody waits."""

    def __init__(self, listen: Callable[[], asyncio.Task[None]]) -> None:
        self._listen = listen
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._listen()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
