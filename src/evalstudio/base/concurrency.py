"""Threads for blocking functions, async functions called from plain code, and awaiting under a time limit.

The threads are never joined: a function that hangs costs its thread, not the program's exit, and a new
thread takes its place up to a limit.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

_MOST_THREADS = 64
_Job = tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop]


class DaemonPool:
    def __init__(self, most: int = _MOST_THREADS) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._most = most

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Call the function in a thread; the future belongs to the running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name="evalstudio-worker", daemon=True).start()
        self._jobs.put((function, future, loop))
        return future

    def _work(self) -> None:
        while True:
            function, future, loop = self._jobs.get()
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = (function(), None)
            except BaseException as error:
                outcome = (None, error)
            with self._lock:
                self._idle += 1
            # The loop may be gone by the time a slow function returns.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, future, *outcome)


def _resolve(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        future.set_exception(error)
    else:
        ended = AbnormalEnd(f"{type(error).__name__}: {error}")
        ended.__cause__ = error
        future.set_exception(ended)


class AbnormalEnd(RuntimeError):
    """A function in a thread ended by something that is no ordinary error, such as an exit of the program."""


blocking = DaemonPool()

T = TypeVar("T")


def run_sync(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end; in a thread of its own where a loop is running (notebooks)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(make()))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, name="evalstudio-sync", daemon=True).start()
    return outcome.result()


_GRACE_SECONDS = 1.0


class TimeLimitExceeded(Exception):
    """The work did not end in time. Unlike ``TimeoutError``, this never comes from the work itself."""


class WorkAborted(Exception):
    """The work cancelled itself or tried to exit the program; the message says which, without a subject."""


async def bounded(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await under a time limit that holds even if the work swallows its cancellation.

    What is awaited is a future beside the task, so that nobody has to wait for a task that will not end.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    task = loop.create_task(_settle(work, outcome))
    late = TimeLimitExceeded(f"timed out after {seconds:g} s")
    timer = loop.call_later(seconds, _fail, outcome, late)
    try:
        return await outcome
    finally:
        timer.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=_GRACE_SECONDS)


async def _settle(work: Coroutine[Any, Any, T], outcome: asyncio.Future[T]) -> None:
    try:
        value = await work
    except asyncio.CancelledError:
        _fail(outcome, WorkAborted("cancelled itself"))
    except SystemExit as error:
        # Let through, it would end the event loop and with it all other work.
        _fail(outcome, WorkAborted(f"tried to exit the program ({error})"))
    except Exception as error:
        # A future takes no StopIteration: it would end the coroutine that awaits it.
        _fail(outcome, RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)
    else:
        if not outcome.done():
            outcome.set_result(value)


def _fail(outcome: asyncio.Future[Any], error: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(error)
