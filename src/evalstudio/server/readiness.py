"""Whether a server can do its work at the moment, and if not, why."""

from __future__ import annotations

import asyncio
from time import perf_counter

from ..base.concurrency import DaemonPool, agent_threads, blocking, evaluator_threads
from ..base.outages import riding_out
from ..storage.errors import StorageError
from .requests import Studio

# Everything is found out within five seconds.
_DATABASE_SECONDS = 3.0
_STARVED_SECONDS = 3.0
_STALLED_SECONDS = 3.0
_BEAT_SECONDS = 0.5
# For how long a stall is told of once it is over: while it lasts nobody can be answered.
_TOLD_SECONDS = 5.0
# A write that failed says more than one that succeeds: on a full disk what is small may still find room.
_TROUBLE_SECONDS = 10.0

_POOLS: tuple[tuple[str, DaemonPool], ...] = (
    ("an agent", agent_threads),
    ("an evaluator", evaluator_threads),
    ("the server itself", blocking),
)


class LoopWatch:
    """Notices that the event loop stood still, because something blocked it or the process was stopped."""

    def __init__(self) -> None:
        self._last = perf_counter()
        self._stall = (0.0, float("-inf"))

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(_BEAT_SECONDS)

    def look(self) -> str | None:
        """What to say of a stall that is just over."""
        now = perf_counter()
        late = now - self._last - _BEAT_SECONDS
        if late > _STALLED_SECONDS:
            self._stall = (late, now)
        self._last = now
        seconds, ended = self._stall
        return f"Nothing was done for {seconds:.0f} s" if now - ended < _TOLD_SECONDS else None


async def problem_of(studio: Studio, watch: LoopWatch) -> str | None:
    """Why the server cannot do its work; nothing where it can."""
    problem = (
        watch.look() or _starved() or _processor(studio) or _production(studio) or await _database(studio)
    )
    return problem.rstrip(".") if problem is not None else None


def _starved() -> str | None:
    for what, pool in _POOLS:
        waiting = pool.waiting_seconds()
        if waiting > _STARVED_SECONDS:
            return f"A call of {what} has been waiting for a thread for {waiting:.0f} s: all of them are busy"
    return None


def _processor(studio: Studio) -> str | None:
    processing = studio.processing
    if processing.problem is not None:
        return f"The run processor is not working: {processing.problem}"
    if processing.enabled and not processing.running:
        return "The run processor has stopped"
    return None


def _production(studio: Studio) -> str | None:
    intake = studio.intake
    if intake is not None and intake.problem is not None:
        return f"Conversations of production are not being closed: {intake.problem}"
    if intake is not None and not intake.running:
        return "Conversations of production are no longer being closed"
    if studio.alarm_delivery.problem is not None:
        return f"Alarms are not being delivered: {studio.alarm_delivery.problem}"
    return None


async def _database(studio: Studio) -> str | None:
    try:
        with riding_out(0.0):
            async with asyncio.timeout(_DATABASE_SECONDS):
                await studio.store.last_event_id()
    except TimeoutError:
        return f"The database did not answer within {_DATABASE_SECONDS:g} s"
    except StorageError as error:
        return f"The database does not answer: {error}"
    trouble = studio.store.database.outages.trouble(_TROUBLE_SECONDS)
    return f"The database failed a moment ago: {trouble}" if trouble is not None else None
