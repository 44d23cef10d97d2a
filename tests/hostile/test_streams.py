"""Listeners that leave: no stream of events outlives its client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.support.api_server import Api
from tests.support.stored_runs import queued

from evalstudio.server import events as streaming
from evalstudio.server.events import EventStream

CLIENTS = 300


def streams_now() -> list[asyncio.Task[Any]]:
    """The tasks that send events to somebody."""
    return [task for task in asyncio.all_tasks() if "EventStream" in repr(task.get_coro())]


async def leaves_at_once(api: Api, number: int) -> None:
    """A client that reads a little of the backlog and goes."""
    host, port = "127.0.0.1", int(api.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /api/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.read(200 + number % 7 * 3000)
    await asyncio.sleep(number % 5 / 500)
    writer.transport.abort()


async def test_clients_that_leave_in_the_middle_of_the_backlog_leave_nothing_behind(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "HEARTBEAT_SECONDS", 1.0)
    store: Any = api.studio.store
    execution = await queued(store, 2000)
    await store.cancel(execution_id=execution.id)
    for start in range(0, CLIENTS, 50):
        await asyncio.gather(*(leaves_at_once(api, number) for number in range(start, start + 50)))
    async with asyncio.timeout(30):
        while len(streams_now()) > 0:
            await asyncio.sleep(0.1)
    assert api.studio.hub.listeners == 0
    assert streams_now() == []
    assert (await api("GET", "/api/health")).status == 200


async def test_a_client_that_leaves_between_two_events_is_let_go_at_once(api: Api) -> None:
    async with api.http.get(f"{api.url}/api/events") as answer:
        assert answer.status == 200
        async with asyncio.timeout(5):
            while api.studio.hub.listeners == 0:
                await asyncio.sleep(0.01)
    async with asyncio.timeout(2):
        while api.studio.hub.listeners:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("steps", range(1, 9))
async def test_a_client_may_leave_in_the_very_moment_in_which_a_frame_has_been_sent(steps: int) -> None:
    frames = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal frames
        while True:
            frames += 1
            yield b": one\n\n"

    gone = asyncio.Event()

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        if frames == 100:
            gone.set()
        for _ in range(steps):
            await asyncio.sleep(0)

    stream = EventStream(endless())
    await asyncio.wait_for(stream({"type": "http"}, receive, send), 5)
    assert frames < 200
