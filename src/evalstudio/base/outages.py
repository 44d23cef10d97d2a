"""Riding out an outage: an operation is tried again while a database or a server is out of reach.

How long is decided by whoever asks: a request of the API fails soon, a worker waits for minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

log = logging.getLogger("evalstudio")

T = TypeVar("T")

LONG_COMMAND_SECONDS = 600.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_TELL_AFTER_SECONDS = 1.0

_allowed: ContextVar[float | None] = ContextVar("outage_seconds", default=None)


@contextmanager
def riding_out(seconds: float = LONG_COMMAND_SECONDS) -> Generator[None]:
    """Operations of this block, and of tasks begun in it, wait so long for the database."""
    token = _allowed.set(seconds)
    try:
        yield
    finally:
        _allowed.reset(token)


class Unavailable(Exception):
    """A database or a server cannot be reached at the moment; the same operation may succeed later.

    ``may_have_happened`` says that the connection was lost after the operation may have been carried out.
    """

    may_have_happened = False


class OutagePolicy:
    """Tries operations again, and says in the log when that begins and ends."""

    def __init__(self, what: str, usual_seconds: float = 0.0) -> None:
        self._what = what
        self.usual_seconds = usual_seconds
        self._told = False
        self._trouble = ("", float("-inf"))

    def trouble(self, seconds: float) -> str | None:
        """What went wrong last, where that was within so many seconds and has not been made good since."""
        message, moment = self._trouble
        return message if monotonic() - moment <= seconds else None

    async def persist(self, attempt: Callable[[bool], Awaitable[T]]) -> T:
        """Try until it works. ``attempt`` is told whether an earlier try may have been committed."""
        clock = asyncio.get_running_loop().time
        allowed = _allowed.get()
        seconds = self.usual_seconds if allowed is None else allowed
        began, pause, again, failed = clock(), _FIRST_PAUSE, False, False
        while True:
            try:
                result = await attempt(again)
            except Unavailable as error:
                waited, failed = clock() - began, True
                if waited >= min(seconds, _TELL_AFTER_SECONDS):
                    self._trouble = (str(error), monotonic())
                if waited >= seconds:
                    raise
                again = again or error.may_have_happened
                self._tell(error, waited, seconds)
            else:
                # One that had nothing to write succeeds on a full disk too, and says nothing of the others.
                if failed:
                    self._tell_end()
                return result
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _tell(self, error: Unavailable, waited: float, seconds: float) -> None:
        if waited >= _TELL_AFTER_SECONDS and not self._told:
            self._told = True
            log.warning("%s Waiting up to %.0f s for it.", error, seconds)

    def _tell_end(self) -> None:
        self._trouble = ("", float("-inf"))
        if self._told:
            self._told = False
            log.warning("The %s answers again.", self._what)
