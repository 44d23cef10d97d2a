"""What code of others prints while it works: kept with that work, and away from what a command prints.

``routed_output`` puts itself before ``sys.stdout`` and ``sys.stderr``. Inside ``PrintLog.capturing`` what is
printed goes into that log, in worker threads and tasks too, for they carry the context of who started them.
Child processes and libraries in C write past it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import Any, BinaryIO

_LONGEST_LOG = 64_000
_STDERR = 2

_current: ContextVar[PrintLog | None] = ContextVar("evalstudio_print_log", default=None)


class PrintLog:
    """What was printed, its beginning only where that is much. Once closed it takes nothing more."""

    def __init__(self, most: int = _LONGEST_LOG) -> None:
        self._lock = Lock()
        self._parts: list[str] = []
        self._left = most
        self._dropped = 0
        self._closed = False

    def write(self, text: str) -> None:
        with self._lock:
            if self._closed:
                return
            kept = text[: self._left]
            self._left -= len(kept)
            self._dropped += len(text) - len(kept)
            if kept:
                self._parts.append(kept)

    @contextmanager
    def capturing(self) -> Generator[None]:
        """What is printed from here belongs to this log, and nothing that comes after the end."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)
            with self._lock:
                self._closed = True

    def text(self) -> str:
        """What was printed, with a line that says how much is missing."""
        text = "".join(self._parts)
        if self._dropped:
            text += f"\n[cut off here: {self._dropped:,} more characters were printed]\n"
        return text


class _RoutedBytes:
    """The ``buffer`` of a stream whose text goes into a log."""

    def __init__(self, log: PrintLog) -> None:
        self._log = log

    def write(self, data: bytes) -> int:
        self._log.write(bytes(data).decode(errors="replace"))
        return len(data)

    def flush(self) -> None:
        pass


class _RoutedStream:
    """A standard stream that asks where what is printed belongs."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def write(self, text: str) -> int:
        log = _current.get()
        if log is None:
            return self.original.write(text)
        log.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        # Closed under us, as at the end of a program, it has nothing left to flush.
        with suppress(ValueError):
            self.original.flush()

    @property
    def buffer(self) -> Any:
        log = _current.get()
        return self.original.buffer if log is None else _RoutedBytes(log)

    def fileno(self) -> int:
        """A descriptor to hand on; from inside a run it is never that of stdout."""
        return self.original.fileno() if _current.get() is None else _STDERR

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


_installed = 0
_lock = Lock()


@contextmanager
def routed_output() -> Generator[None]:
    """Let logs take what is printed in their context. May be entered several times."""
    _install(+1)
    try:
        yield
    finally:
        _install(-1)


def _install(change: int) -> None:
    global _installed
    with _lock:
        before, _installed = _installed, _installed + change
        for name in ("stdout", "stderr"):
            stream: Any = getattr(sys, name)
            if before == 0:
                setattr(sys, name, _RoutedStream(stream))
            elif _installed == 0 and isinstance(stream, _RoutedStream):
                setattr(sys, name, stream.original)


def reserved_stdout() -> BinaryIO | None:
    """The real stdout for one's own use alone; all others who write to stdout reach stderr from now on.

    That includes child processes and libraries that write to the descriptor. None where there is no stdout.
    """
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        own = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.stdout = sys.stderr
        return own
    return None
