"""A turnstile for work that keeps the event loop busy: one passes per round of the loop.

Where many conversations go on at once, their answers tend to come in together. Dealt with in one go they
would keep the loop from noticing what comes in meanwhile, and agents would seem slower than they are.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    """Lets everybody pass in order, one per round of the loop they wait in."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._passed = False

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._passed:
            self._passed = True
            loop.call_soon(self._next)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                turn.get_loop().call_soon(self._next)
                return
        self._passed = False
