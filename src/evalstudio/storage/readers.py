"""Threads that read from the database, and bring what they have read back to the loop.

An executor makes a future with locks for every call and wakes the loop for each of them. Under load that
takes longer than most reads; here all that is ready wakes the loop once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from ..base.concurrency import settle
from ..base.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(slots=True)
class _Call:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.function(*self.arguments)
        except BaseException as error:
            self.error = error


class ReaderThreads:
    """Runs functions in threads, of which it starts as many as there is work for, up to a number."""

    def __init__(self, most: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._most = most
        self._threads: list[Thread] = []
        self._waiting: SimpleQueue[_Call | None] = SimpleQueue()
        self._over: deque[_Call] = deque()
        self._unsettled = 0
        self._is_waking = False

    def run(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Call the function in a thread; the future of what it returns."""
        call = _Call(function, arguments, self._loop.create_future())
        self._unsettled += 1
        if len(self._threads) < min(self._unsettled, self._most):
            name = f"evalstudio-reader_{len(self._threads)}"
            self._threads.append(Thread(target=self._work, name=name, daemon=True))
            self._threads[-1].start()
        self._waiting.put(call)
        return call.future

    async def close(self) -> None:
        """Let the threads end what was asked of them."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            # Whoever was cancelled while waiting no longer wants it done.
            if not call.future.cancelled():
                call.run()
            self._over.append(call)
            # The next call may be long in coming, and what this one has read may be large.
            del call
            if not self._is_waking:
                self._is_waking = True
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        # Before looking: what is over after the look must wake the loop again.
        self._is_waking = False
        while self._over:
            self._unsettled -= 1
            call = self._over.popleft()
            settle(call.future, call.result, call.error)
