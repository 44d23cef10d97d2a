"""Live events: one reader of the database per process, fanned out to any number of streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import field
from typing import TYPE_CHECKING

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..base.lazy_dataclass import dataclass
from ..base.times import iso
from ..storage.contract import Event
from ..storage.errors import StorageError

if TYPE_CHECKING:
    from ..storage.store import SqlStore

log = logging.getLogger("evalstudio")

HEARTBEAT_SECONDS = 15.0
_QUEUED = 1000
_PAGE = 500
# Listeners catch up in small pages and few at a time, so that many who reconnect at once fit into memory.
_CATCH_UP_PAGE = 100
_CATCHING_UP = 4
_WAIT_SECONDS = 5.0
_AFTER_FAILURE_SECONDS = 1.0

HEARTBEAT = b": still here\n\n"
_RETRY = b"retry: 1000\n\n"
SLOWEST_SECONDS = 20.0

# The id of an event and the event as it goes over the wire.
Frame = tuple[int, bytes]
FrameQueue = asyncio.Queue[Frame | None]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events a listener gets."""

    execution_id: str | None = None
    run_id: str | None = None

    def matches(self, event: Event) -> bool:
        return (self.execution_id is None or event.execution_id == self.execution_id) and (
            self.run_id is None or event.run_id == self.run_id
        )


@dataclass(slots=True, eq=False)
class Listener:
    """One client's place in the fan-out. ``lost`` is set once it could not keep up."""

    filters: EventFilter
    queue: FrameQueue = field(default_factory=lambda: FrameQueue(_QUEUED + 1))
    lost: bool = False

    def offer(self, event: Event, frame: bytes) -> None:
        if self.lost or not self.filters.matches(event):
            return
        if self.queue.qsize() >= _QUEUED:
            self.drop()
        else:
            self.queue.put_nowait((event.id, frame))

    def drop(self) -> None:
        if not self.lost:
            self.lost = True
            self.queue.put_nowait(None)


class EventHub:
    """Reads events once and hands them to all listeners."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._listeners: set[Listener] = set()
        self._reader: asyncio.Task[None] | None = None
        self._catching_up = asyncio.Semaphore(_CATCHING_UP)
        self._position = 0
        self._closed = False

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    async def listen(self, after: int | None, filters: EventFilter) -> AsyncGenerator[bytes]:
        """Frames of events after an id, or from now on; heartbeats while nothing happens."""
        newest = await self._store.last_event_id()
        if after is None or after > newest:
            # An id from the future belongs to another database.
            after = newest
        else:
            async with aclosing(self._stored(after, filters)) as stored:
                async for number, frame in stored:
                    after = number
                    yield frame
        if self._closed:
            raise StorageError("The server is stopping.")
        if self._reader is None or self._reader.done():
            self._position = max(self._position, after)
            self._reader = asyncio.create_task(self._read())
        listener = Listener(filters)
        self._listeners.add(listener)
        try:
            # Events between the last page and this moment; later ones are in the queue.
            async with aclosing(self._stored(after, filters, until=self._position)) as stored:
                async for number, frame in stored:
                    after = number
                    yield frame
            async with aclosing(_frames(listener, after)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            self._listeners.discard(listener)

    async def close(self) -> None:
        """Close all streams; clients connect again when the server is back."""
        self._closed = True
        for listener in self._listeners:
            listener.drop()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _stored(
        self, after: int, filters: EventFilter, until: int | None = None
    ) -> AsyncGenerator[Frame]:
        """Frames of what the database holds after an id, up to another one."""
        while until is None or after < until:
            async with self._catching_up:
                events = await self._store.events(
                    after, execution_id=filters.execution_id, run_id=filters.run_id, limit=_CATCH_UP_PAGE
                )
                frames = [(event.id, frame_of(event)) for event in events]
            for number, frame in frames:
                if until is not None and number > until:
                    return
                yield number, frame
            if len(frames) < _CATCH_UP_PAGE:
                return
            after = frames[-1][0]

    async def _read(self) -> None:
        while not self._closed:
            try:
                await self._store.wait_for_events(self._position, _WAIT_SECONDS)
                events = await self._store.events(self._position, limit=_PAGE)
            except StorageError as error:
                log.warning("Events could not be read: %s", error)
                await asyncio.sleep(_AFTER_FAILURE_SECONDS)
                continue
            for event in events:
                frame = frame_of(event)
                self._position = event.id
                for listener in self._listeners:
                    listener.offer(event, frame)


async def _frames(listener: Listener, after: int) -> AsyncGenerator[bytes]:
    while True:
        item: Frame | None = (0, HEARTBEAT)
        # Not wait_for: it drops a cancellation that comes together with an event.
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                item = await listener.queue.get()
        if item is None:
            return
        if item[0] == 0 or item[0] > after:
            yield item[1]


def frame_of(event: Event) -> bytes:
    """An event as it goes over the wire."""
    ids = {"id": event.id, "kind": event.kind, "executionId": event.execution_id, "runId": event.run_id}
    data = orjson.dumps({**ids, "at": iso(event.at), "body": event.body})
    return b"id: %d\ndata: %s\n\n" % (event.id, data)


class EventStream(Response):
    """Sends frames as they come."""

    media_type = "text/event-stream"
    charset = "utf-8"

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames
        self._left = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._left = True
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": _RETRY, "more_body": True})
        # A client that reads nothing for this long is dropped; it resumes from the last id it saw.
        with suppress(TimeoutError, OSError):
            async with aclosing(self._frames) as frames:
                async for frame in frames:
                    message = {"type": "http.response.body", "body": frame, "more_body": True}
                    async with asyncio.timeout(SLOWEST_SECONDS):
                        await send(message)
                    # Whatever took a cancellation for its own, nothing is sent to a client that has left.
                    if self._left:
                        return
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
