"""A turnstile for work that keeps the event loop busy: a few pass per round of the loop.

Where many conversations go on at once, their answers tend to come in together. Dealt with in one go they
would keep the loop from noticing what comes in meanwhile, and agents would seem slower than they are.
"""

from __future__ import annotations

import asyncio
from collections import deque

# A round of so many stays within a few milliseconds; fewer would cost more rounds than they are worth.
_PER_ROUND = 8


class Turnstile:
    """Lets everybody pass in order, a few per round of the loop they wait in."""

    def __init__(self, per_round: int = _PER_ROUND) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._per_round = per_round
        self._passed = 0

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        if self._passed < self._per_round and not self._waiting:
            self._passed += 1
            if self._passed == 1:
                loop.call_soon(self._next, loop)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._passed = 0
        while self._waiting and self._passed < self._per_round:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._passed += 1
        if self._passed:
            loop.call_soon(self._next, loop)
