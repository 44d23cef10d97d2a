"""Connections: how long a caller may take, how much it may send unasked, and how many there may be.

A caller who is slow on purpose costs a connection for a few seconds only, and the oldest connection that
waits for a request gives way when there are too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .errors import error_body
from .policy import LARGEST_HEADERS

HEADER_SECONDS = 10.0
BODY_SECONDS = 300.0
SILENT_BODY_SECONDS = 20.0
UNREAD_SECONDS = 60.0
MOST_CONNECTIONS = 2_000
_LEAST_CONNECTIONS = 64
_OTHER_FILES = 128
_SLACK = 65_536
# A busy loop may run a timer before it reads what came in long ago.
_GRACE_SECONDS = 1.0
_REASONS: Mapping[int, bytes] = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}


class BoundedConnection(HttpToolsProtocol):
    """One connection, closed if its headers or body take too long, or if nobody reads what is answered."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unfinished = 0
        self._receiving_body = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.opened_at = self.loop.time()

    @property
    def is_waiting(self) -> bool:
        """Whether it carries no request that is being answered."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)
        return cycle is None or cycle.response_complete

    @property
    def can_be_spared(self) -> bool:
        """Whether the next thing to happen on it is the caller's: to send a request, or to read an answer."""
        return (self.is_waiting or bool(self._timers)) and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._start("headers", HEADER_SECONDS)
        if not _make_room(self):
            self._refuse(503, "Too many connections; try again later.")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop(*self._timers)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unfinished += len(data)
        super().data_received(data)
        if self._unfinished > LARGEST_HEADERS + _SLACK:
            self._refuse(431, f"The headers are larger than {LARGEST_HEADERS:,} bytes.")
        elif self._receiving_body:
            self._start("silent body", SILENT_BODY_SECONDS)
            self._start("body", BODY_SECONDS, again=False)
        elif self._unfinished > 0:
            self._start("headers", HEADER_SECONDS, again=False)

    def on_headers_complete(self) -> None:
        self._unfinished = -(2**62)
        self._stop("headers")
        if not self.url.startswith(b"/") and self.url != b"*":
            # As sent to a proxy. Whatever host it names, it is not what the Host header is checked for.
            self._refuse(400, "This server is no proxy: ask for a path, not for a whole address.")
            return
        self._receiving_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self._receiving_body = False
        self._stop("body", "silent body")
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start("unread", UNREAD_SECONDS)

    def resume_writing(self) -> None:
        self._stop("unread")
        super().resume_writing()

    def _start(self, timer: str, seconds: float, *, again: bool = True) -> None:
        if self.transport.is_closing() or (not again and timer in self._timers):
            return
        self._stop(timer)
        self._timers[timer] = self.loop.call_later(seconds, self._give_grace, timer)

    def _stop(self, *timers: str) -> None:
        for timer in list(timers):
            if (handle := self._timers.pop(timer, None)) is not None:
                handle.cancel()

    def _give_grace(self, timer: str) -> None:
        self._timers[timer] = self.loop.call_later(_GRACE_SECONDS, self._too_slow, timer)

    def _too_slow(self, timer: str) -> None:
        self._timers.pop(timer, None)
        if timer == "unread":
            self.transport.abort()
        elif self._unfinished or timer != "headers":
            self._refuse(408, f"The {timer.removeprefix('silent ')} did not arrive in time.")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Say why and close, unless an answer has begun already."""
        if self.transport.is_closing():
            return
        if self.is_waiting or not self.cycle.response_started:
            body = orjson.dumps(error_body(status, message))
            head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n" % (status, _REASONS[status])
            size = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
            self.transport.write(head + size + body)
        self.transport.close()


def _make_room(newest: BoundedConnection) -> bool:
    """Whether there is room for a connection, after the oldest that can be spared was closed for it."""
    if len(newest.connections) <= most_connections():
        return True
    others = (one for one in newest.connections if isinstance(one, BoundedConnection) and one is not newest)
    oldest = min((one for one in others if one.can_be_spared), key=lambda one: one.opened_at, default=None)
    if oldest is None:
        return False
    oldest.transport.abort()
    return True


@cache
def most_connections() -> int:
    """As many as we want, and fewer where the process may not open that many files."""
    try:
        import resource
    except ImportError:
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = MOST_CONNECTIONS if files == resource.RLIM_INFINITY else files - _OTHER_FILES
    return max(_LEAST_CONNECTIONS, min(MOST_CONNECTIONS, room))
