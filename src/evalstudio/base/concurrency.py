"""Threads for blocking functions, async functions called from plain code, and awaiting under a time limit.

The threads are never joined: a function that hangs costs its thread, not the program's exit, and a new
thread takes its place up to a limit. There is a pool for agents, one for evaluators and one for our own
work, so that none of them can keep the others waiting.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from time import perf_counter
from typing import Any, TypeVar

# As many as runs may be worked on at the same time (--concurrency), with room for threads that hang.
MOST_THREADS = 1_100
_MOST_OWN_THREADS = 64

T = TypeVar("T")


class Clock:
    """The time some work takes, without what it waits for on our side.

    It stands still while a function waits for a thread, while its result waits for the event loop, and
    while a module is imported.
    """

    __slots__ = ("_left_out", "_paused_at", "start")

    def __init__(self) -> None:
        self.start = perf_counter()
        self._left_out = 0.0
        self._paused_at: float | None = None

    def pause_seconds(self) -> float:
        """How long it has been standing still."""
        return 0.0 if self._paused_at is None else perf_counter() - self._paused_at

    @property
    def has_paused(self) -> bool:
        return self._left_out > 0 or self._paused_at is not None

    def seconds(self) -> float:
        """What it has run so far."""
        until = self._paused_at
        return (perf_counter() if until is None else until) - self.start - self._left_out

    def pause(self) -> None:
        if self._paused_at is None:
            self._paused_at = perf_counter()

    def resume(self) -> None:
        if self._paused_at is not None:
            self._left_out += perf_counter() - self._paused_at
            self._paused_at = None

    @contextmanager
    def paused(self) -> Generator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()


_Job = tuple[Callable[[], Any], Context, Clock | None, asyncio.Future[Any], asyncio.AbstractEventLoop]


class DaemonPool:
    """Worker threads, made when they are needed and kept. They see the context variables of the caller."""

    def __init__(self, most: int = _MOST_OWN_THREADS) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._most = most

    async def run(self, function: Callable[[], T], clock: Clock | None = None) -> T:
        """Call the function in a thread. The clock runs only while the function does."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if clock is not None:
            clock.pause()
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name="evalstudio-worker", daemon=True).start()
        self._jobs.put((function, copy_context(), clock, future, loop))
        try:
            return await future
        finally:
            if clock is not None:
                clock.resume()

    def _work(self) -> None:
        while True:
            function, context, clock, future, loop = self._jobs.get()
            if future.cancelled():
                # Nobody waits for it any more, so it is not begun.
                with self._lock:
                    self._idle += 1
                continue
            outcome: tuple[Any, BaseException | None]
            if clock is not None:
                clock.resume()
            try:
                outcome = (context.run(function), None)
            except BaseException as error:
                outcome = (None, error)
            if clock is not None:
                clock.pause()
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
agent_threads = DaemonPool(MOST_THREADS)
evaluator_threads = DaemonPool(MOST_THREADS)


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


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event at most so long; whether it is set.

    Not by ``wait_for``, which drops a cancellation that comes together with the event before Python 3.12.
    """
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((waiting,), timeout=seconds)
    finally:
        waiting.cancel()
    return event.is_set()


_GRACE_SECONDS = 1.0
# Longer than this nothing waits for a thread or an import: whatever holds them hangs.
_LONGEST_PAUSE_SECONDS = 600.0


class TimeLimitExceeded(Exception):
    """The work did not end in time. Unlike ``TimeoutError``, this never comes from the work itself."""


class WorkAborted(Exception):
    """The work cancelled itself or tried to exit the program; the message says which, without a subject."""


async def bounded(work: Coroutine[Any, Any, T], seconds: float, clock: Clock | None = None) -> T:
    """Await under a time limit that holds even if the work swallows its cancellation.

    What is awaited is a future beside the task, so that nobody has to wait for a task that will not end.
    With a clock, the limit is one of the time the clock shows.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    if clock is not None:
        clock.pause()
    task = loop.create_task(_settle(work, outcome, clock))
    timer = loop.call_later(seconds, _expire, loop, outcome, seconds, clock)
    try:
        return await outcome
    finally:
        timer.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=_GRACE_SECONDS)


def _expire(
    loop: asyncio.AbstractEventLoop, outcome: asyncio.Future[Any], seconds: float, clock: Clock | None
) -> None:
    """End the work, or look again when a clock that stood still may have reached the limit."""
    left = seconds - clock.seconds() if clock is not None and clock.has_paused else 0.0
    if clock is not None and clock.pause_seconds() > _LONGEST_PAUSE_SECONDS:
        waited = f"waited more than {_LONGEST_PAUSE_SECONDS:g} s for a worker thread or an import"
        _fail(outcome, WorkAborted(waited))
    elif left > 0 and not outcome.done():
        loop.call_later(min(max(left, 0.001), _LONGEST_PAUSE_SECONDS), _expire, loop, outcome, seconds, clock)
    else:
        _fail(outcome, TimeLimitExceeded(f"timed out after {seconds:g} s"))


async def _settle(work: Coroutine[Any, Any, T], outcome: asyncio.Future[T], clock: Clock | None) -> None:
    if clock is not None:
        clock.resume()
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
        if clock is not None:
            # What the loop does before it hands on the result is not the work's time.
            clock.pause()
        if not outcome.done():
            outcome.set_result(value)


def _fail(outcome: asyncio.Future[Any], error: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(error)
