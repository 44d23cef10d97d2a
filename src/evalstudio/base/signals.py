"""Ctrl-C, SIGTERM and SIGHUP of a long command: the first asks it to stop, a second ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
# Longer than this nothing is closed after the second signal: whatever hangs must not keep the process.
_CLOSING_SECONDS = 3.0
_SHOW_CURSOR = b"\x1b[?25h"

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def stop_on_signals(ask_to_stop: Callable[[], object]) -> Generator[None]:
    """The first signal asks the work to stop, the second cancels it, the third ends the process.

    Once one has come the handlers stay: another one while the process closes must not be a traceback.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    signals = 0

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal signals
        # A terminal that is closed sends SIGHUP more than once, and some supervisors after SIGTERM.
        if signals and number == getattr(signal, "SIGHUP", None):
            return
        signals += 1
        if signals == 1:
            loop.call_soon_threadsafe(ask_to_stop)
        elif signals == 2 and task is not None and not task.done():
            _end_process_soon()
            loop.call_soon_threadsafe(task.cancel)
        else:
            end_process()

    before = _handle_signals(handle)
    try:
        yield
    finally:
        if not signals:
            _restore(before)


@contextmanager
def interrupt_on_signals() -> Generator[None]:
    """For work outside an event loop: SIGTERM and SIGHUP stop it as Ctrl-C does, by KeyboardInterrupt."""

    def interrupt(_: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)

    before = _handle_signals(interrupt, but=signal.SIGINT)
    if before and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell lets its background jobs ignore Ctrl-C; they could not be stopped by the others either.
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        _restore(before)


@contextmanager
def keep_handlers() -> Generator[None]:
    """For a library that starts processes, and installs handlers of its own when it does.

    Signals wait until it has started: an exception in the middle of a fork would be lost. Ours are back then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = _handle_signals(lambda number, _frame: waiting.append(number))
    try:
        yield
    finally:
        _restore(before)
    if waiting:
        signal.raise_signal(waiting[0])


def end_process_on_signals() -> None:
    """From here on a signal ends the process at once; for what is left to do when it was stopped."""
    _handle_signals(lambda _number, _frame: end_process())


def end_process() -> None:
    """End at once. Only the terminal is put in order: a progress bar hides the cursor."""
    if os.isatty(2):
        os.write(2, _SHOW_CURSOR)
    os._exit(INTERRUPTED)


def _end_process_soon() -> None:
    timer = threading.Timer(_CLOSING_SECONDS, end_process)
    timer.daemon = True
    timer.start()


def _handle_signals(handler: Handler, *, but: signal.Signals | None = None) -> dict[signal.Signals, object]:
    """Have the signals handled; what handled them before. Only the main thread can do this."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number in _handled() if number is not but}


def _handled() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [signal.Signals[name] for name in names if hasattr(signal, name)]


def _restore(before: dict[signal.Signals, object]) -> None:
    for number, handler in before.items():
        # None: it was not set from Python, so there is nothing that could be set again.
        if callable(handler) or isinstance(handler, signal.Handlers):
            signal.signal(number, handler)
