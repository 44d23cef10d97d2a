"""A response that streams events until the client goes, is too slow, or the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

SLOWEST_SECONDS = 20.0
_RETRY = b"retry: 1000\n\n"


class EventStream(Response):
    """Sends frames as they come."""

    media_type = "text/event-stream"
    charset = "utf-8"

    def __init__(self, frames: AsyncIterator[bytes]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": _RETRY, "more_body": True})
        # A client that reads nothing for this long is let go: it comes back with the last id it saw.
        with suppress(TimeoutError, OSError):
            async for frame in self._frames:
                message = {"type": "http.response.body", "body": frame, "more_body": True}
                await asyncio.wait_for(send(message), SLOWEST_SECONDS)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
