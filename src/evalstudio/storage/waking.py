"""Waking those who wait for work or events, without asking the database over and over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

Signal = Literal["work", "events"]


class Bell:
    """Counts how often something has happened; whoever waits names the count already known."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        self.count += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wait(self, known: int, timeout: float) -> bool:
        """Whether it rang since ``known``, at once or within the time given."""
        if self.count != known:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            # Not wait_for: it drops a cancellation that comes just as the bell rings.
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            return self.count != known
        finally:
            self._waiting.discard(future)
        return True


class Bells:
    """The bell for new work and the bell for new events."""

    def __init__(self) -> None:
        self.work = Bell()
        self.events = Bell()

    def ring(self, *, work: bool, events: bool) -> None:
        if work:
            self.work.ring()
        if events:
            self.events.ring()


class Listening:
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
