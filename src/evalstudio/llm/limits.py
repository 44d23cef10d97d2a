"""How many calls of one role run at once: fewer when the provider says too many, more when all goes well.

Additive increase, multiplicative decrease. A gate belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic


class Gate:
    """Lets at most ``limit`` calls through, in order; none while the provider asked for a pause."""

    __slots__ = ("_queue", "_resumes_at", "_shrunk_at", "_successes", "in_flight", "limit", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self.in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._successes = 0
        self._shrunk_at = float("-inf")
        self._resumes_at = float("-inf")

    @property
    def queued(self) -> int:
        """Calls that wait for their turn."""
        return len(self._queue)

    @property
    def waiting_seconds(self) -> float:
        """How long the provider still wants us to wait; 0 when it does not."""
        return max(0.0, self._resumes_at - monotonic())

    async def enter(self, *, first: bool = False) -> None:
        """Wait for a slot. A call that is tried again goes ``first``: it has waited already."""
        if self._has_room() and (first or not self._queue):
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._queue.appendleft(turn)
        else:
            self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            else:
                self._queue.remove(turn)
            raise

    def leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """A whole window of successes earns one more slot."""
        self._successes += 1
        if self._successes >= self.limit:
            self._successes = 0
            if self.limit < self.most:
                self.limit += 1
                self._admit()

    def throttled(self, started: float, seconds: float) -> None:
        """The provider refused a call begun at ``started``: halve, and let nobody in for some seconds.

        A burst that was under way when the limit was halved says nothing new, and halves nothing more.
        """
        now = monotonic()
        if started >= self._shrunk_at:
            self.limit = max(1, self.limit // 2)
            self._shrunk_at = now
        self._successes = 0
        if now + seconds > self._resumes_at:
            self._resumes_at = now + seconds
            self._resume()

    def _resume(self) -> None:
        # Loops may wake a little early; then there is a little left to wait.
        if self.waiting_seconds > 0:
            asyncio.get_running_loop().call_later(self.waiting_seconds, self._resume)
        else:
            self._admit()

    def _has_room(self) -> bool:
        return self.in_flight < self.limit and monotonic() >= self._resumes_at

    def _admit(self) -> None:
        while self._queue and self._has_room():
            turn = self._queue.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
