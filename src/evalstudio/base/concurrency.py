"""Threads for blocking functions, async functions called from plain code, and awaiting under a time limit.

The threads are never joined: a function that hangs costs its thread, not the program's exit, and a new
thread takes its place up to a limit. There is a pool for agents, one for evaluators and one for our own
work, so that none of them can keep the others waiting.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from time import perf_counter
from typing import Any, TypeVar

# As many as runs may be worked on at the same time (--concurrency), with room for threads that hang.
MOST_THREADS = 1_100
_MOST_OWN_THREADS = 64

T = TypeVar("T")


class Pulse:
    """Notices that the process was stopped, by a signal or with the whole machine.

    A thread beats several times a second while somebody counts on it; a beat that comes late by more than
    two seconds is a stop, for not even a thread beside all others ran. What passed meanwhile is nobody's
    time. The event loop being busy is something else: whoever blocks it answers for that.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew: a forked process has the state and not the thread."""
        self._lock = threading.Lock()
        self._users = 0
        self._beating = False
        self._last = 0.0
        self.stopped_seconds = 0.0

    def __enter__(self) -> Pulse:
        with self._lock:
            self._users += 1
            if not self._beating:
                self._beating, self._last = True, perf_counter()
                threading.Thread(target=self._beat, name="evalstudio-pulse", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1

    def look(self) -> float:
        """Seconds for which the process was stopped so far, one that is just over included."""
        with self._lock:
            self._note()
        return self.stopped_seconds

    def _note(self) -> None:
        if self._beating:
            now = perf_counter()
            late = now - self._last - _BEAT_SECONDS
            if late > _STOPPED_SECONDS:
                self.stopped_seconds += late
            self._last = now

    def _beat(self) -> None:
        # It goes on for a while after the last user, so that not every call makes a thread.
        idle = 0
        while idle < _IDLE_BEATS:
            time.sleep(_BEAT_SECONDS)
            with self._lock:
                self._note()
                idle = 0 if self._users else idle + 1
                self._beating = idle < _IDLE_BEATS


_BEAT_SECONDS = 0.25
_STOPPED_SECONDS = 2.0
_IDLE_BEATS = 20
pulse = Pulse()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pulse.reset)


class Clock:
    """The time some work takes, without what it waits for on our side.

    It stands still while a function waits for a thread, while its result waits for the event loop, and
    while a module is imported. A stopped process has no time either, while the pulse beats.
    """

    __slots__ = ("_left_out", "_paused_at", "_stopped_before", "start")

    def __init__(self) -> None:
        self.start = perf_counter()
        self._left_out = 0.0
        self._paused_at: float | None = None
        self._stopped_before = pulse.stopped_seconds

    @property
    def stopped_seconds(self) -> float:
        """For how long the process was stopped meanwhile."""
        return pulse.stopped_seconds - self._stopped_before

    def pause_seconds(self) -> float:
        """How long it has been standing still."""
        return 0.0 if self._paused_at is None else perf_counter() - self._paused_at

    @property
    def has_paused(self) -> bool:
        return self._left_out > 0 or self._paused_at is not None or self.stopped_seconds > 0

    def seconds(self) -> float:
        """What it has run so far."""
        until = self._paused_at
        passed = (perf_counter() if until is None else until) - self.start - self._left_out
        return max(0.0, passed - self.stopped_seconds)

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


_own_clock: ContextVar[Clock | None] = ContextVar("own_clock", default=None)


@contextmanager
def own_clock_paused() -> Generator[None]:
    """Stop the clock of the work that runs here, if it has one, while it waits for its turn elsewhere."""
    clock = _own_clock.get()
    if clock is None:
        yield
    else:
        with clock.paused():
            yield


_Job = tuple[Callable[[], Any], Context, Clock | None, asyncio.Future[Any], asyncio.AbstractEventLoop]


class DaemonPool:
    """Worker threads, made when they are needed and kept. They see the context variables of the caller."""

    def __init__(self, most: int = _MOST_OWN_THREADS) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._waiting_since: deque[float] = deque()
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
            # Under the lock, so that both queues are in the same order.
            self._waiting_since.append(perf_counter())
            self._jobs.put((function, copy_context(), clock, future, loop))
        try:
            return await future
        finally:
            if clock is not None:
                clock.resume()

    def waiting_seconds(self) -> float:
        """For how long a function has been waiting for a thread; 0 where none is."""
        try:
            return perf_counter() - self._waiting_since[0]
        except IndexError:
            return 0.0

    def _work(self) -> None:
        while True:
            function, context, clock, future, loop = self._jobs.get()
            self._waiting_since.popleft()
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
    """Wait for an event at most so long; whether it was set, also where another who waited has cleared it.

    Not by ``wait_for``, which drops a cancellation that comes together with the event before Python 3.12.
    """
    waiting = asyncio.ensure_future(event.wait())
    try:
        done, _ = await asyncio.wait((waiting,), timeout=seconds)
    finally:
        waiting.cancel()
    return bool(done) or event.is_set()


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
    with pulse:
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
    # The limit may be over because nothing ran meanwhile; this may be due before the next beat.
    pulse.look()
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
        _own_clock.set(clock)
        clock.resume()
    try:
        value = await work
    except asyncio.CancelledError:
        _fail(outcome, WorkAborted("cancelled itself"))
    except SystemExit as error:
        # Let through, it would end the event loop and with it all other work.
        _fail(outcome, WorkAborted(f"tried to exit the program ({error})"))
    except Exception as error:
        _fail(outcome, error)
    else:
        if clock is not None:
            # What the loop does before it hands on the result is not the work's time.
            clock.pause()
        settle(outcome, value)


def _fail(outcome: asyncio.Future[Any], error: Exception) -> None:
    settle(outcome, None, error)


def settle(future: asyncio.Future[Any], value: object, error: BaseException | None = None) -> None:
    """Give a future its value or its error, unless it has one or nobody waits for it any more."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        # A future takes no StopIteration: it would end the coroutine that awaits it.
        future.set_exception(RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)
