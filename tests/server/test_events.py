"""Live events: nothing missed, nothing twice, slow listeners let go, all of it after a restart too."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout, TCPConnector
from tests.support.api_server import Api, ServerProcess, serving
from tests.support.projects import make_project, scripted
from tests.support.stored_runs import queued

from evalstudio.server import events as hubs
from evalstudio.server import events as streaming
from evalstudio.server.events import EventFilter, EventHub


async def events_of(
    http: ClientSession, url: str, *, last_id: int | None = None, **query: Any
) -> AsyncIterator[Any]:
    """Events of one connection, until it ends."""
    headers = {} if last_id is None else {"Last-Event-ID": str(last_id)}
    timeout = ClientTimeout(total=None, sock_read=30)
    async with http.get(f"{url}/api/events", params=query, headers=headers, timeout=timeout) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        number = None
        async for line in answer.content:
            if line.startswith(b"id: "):
                number = int(line[4:])
            elif line.startswith(b"data: "):
                event = json.loads(line[6:])
                assert event["id"] == number
                yield event


async def until_over(http: ClientSession, url: str, execution_id: str, **more: Any) -> list[Any]:
    """Everything told until an execution is over."""
    seen: list[Any] = []
    async with asyncio.timeout(60):
        async for event in events_of(http, url, **more):
            seen.append(event)
            if event["kind"] == "execution.completed" and event["executionId"] == execution_id:
                return seen
    raise AssertionError("the stream ended before the execution did")


async def started(api: Api, *, repetitions: int = 1, script: tuple[str, ...] = ("hi",)) -> str:
    connector = await api.made("/api/connectors", {"name": "agent", "type": "test-agent"})
    scenario = await api.made("/api/scenarios", scripted("talks", *script))
    body = {"name": "all", "scenarioIds": [scenario["id"]], "connectorIds": [connector["id"]]}
    made = await api.made("/api/evals", {**body, "repetitions": repetitions})
    return (await api.made("/api/executions", {"evalId": made["id"]}))["id"]


class TestFollowing:
    async def test_an_execution_from_its_first_event_to_its_last(self, tmp_path: Path) -> None:
        async with serving(make_project(tmp_path, []), processor=True) as api:
            execution = await started(api, repetitions=3, script=("one", "two"))
            seen = await until_over(api.http, api.url, execution, after=0)
        kinds = [event["kind"] for event in seen]
        assert kinds[0] == "execution.queued"
        assert kinds.count("run.started") == 3
        assert kinds.count("run.turn") == 6
        assert kinds.count("run.finished") == 3
        assert [event["id"] for event in seen] == sorted({event["id"] for event in seen})

    async def test_one_execution_or_one_run_alone(self, api: Api) -> None:
        store: Any = api.studio.store
        first, second = await queued(store, 2), await queued(store, 2)
        page = await store.runs(limit=10)
        mine = [run.id for run in page.items if run.execution_id == second.id]
        await store.cancel(execution_id=first.id)
        await store.cancel(execution_id=second.id)
        seen: list[Any] = []
        async with asyncio.timeout(10):
            async for event in events_of(api.http, api.url, after=0, executionId=second.id):
                seen.append(event)
                if event["kind"] == "execution.cancelled":
                    break
        assert {event["executionId"] for event in seen} == {second.id}
        async with asyncio.timeout(10):
            async for event in events_of(api.http, api.url, after=0, runId=mine[0]):
                assert event["runId"] == mine[0]
                break

    async def test_without_a_beginning_only_what_comes_is_told(self, api: Api) -> None:
        store: Any = api.studio.store
        await queued(store, 1)
        seen: list[Any] = []

        async def listen() -> None:
            async for event in events_of(api.http, api.url):
                seen.append(event)
                return

        task = asyncio.create_task(listen())
        while not api.studio.hub.listeners:
            await asyncio.sleep(0.01)
        later = await queued(store, 1)
        async with asyncio.timeout(10):
            await task
        assert seen[0]["executionId"] == later.id

    async def test_nonsense_is_refused(self, api: Api) -> None:
        assert (await api("GET", "/api/events", headers={"Last-Event-ID": "x"})).status == 422
        assert (await api("GET", "/api/events?after=-1")).status == 422

    async def test_an_id_of_another_database_begins_with_now(self, api: Api) -> None:
        store: Any = api.studio.store

        async def first() -> Any:
            async for event in events_of(api.http, api.url, last_id=10_000_000):
                return event
            return None

        task = asyncio.create_task(first())
        while not api.studio.hub.listeners:
            await asyncio.sleep(0.01)
        execution = await queued(store, 1)
        async with asyncio.timeout(10):
            assert (await task)["executionId"] == execution.id


class TestComingBack:
    async def test_misses_nothing_and_sees_nothing_twice(self, api: Api) -> None:
        """A listener that loses its connection after every few events, while more keep coming."""
        store: Any = api.studio.store
        total = 60
        seen: list[int] = []

        async def produce() -> None:
            for _ in range(total):
                await queued(store, 1)
                await asyncio.sleep(0.005)

        async def listen() -> None:
            last = 0
            while len(seen) < total:
                count = 0
                async for event in events_of(api.http, api.url, last_id=last):
                    seen.append(event["id"])
                    last = event["id"]
                    count += 1
                    if count == 7 or len(seen) == total:
                        break

        async with asyncio.timeout(60):
            await asyncio.gather(produce(), listen())
        assert len(seen) == len(set(seen)) == total
        assert seen == sorted(seen)

    async def test_one_that_cannot_keep_up_is_let_go_and_resumes(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hubs, "_QUEUED", 5)
        store: Any = api.studio.store
        hub = EventHub(store)
        slow = hub.listen(0, EventFilter())
        first = await _first_after(slow, store)
        for _ in range(40):
            await queued(store, 1)
        async with asyncio.timeout(10):
            while hub.listeners and not next(iter(hub._listeners)).lost:  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0.01)
        rest = [_id(frame) async for frame in slow]
        last = rest[-1] if rest else first
        resumed: list[int] = []
        async for frame in hub.listen(last, EventFilter()):
            resumed.append(_id(frame))
            if len(rest) + len(resumed) == 40:
                break
        assert [first, *rest, *resumed] == list(range(first, first + 41))
        await hub.close()

    async def test_a_client_that_reads_nothing_is_disconnected(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(streaming, "SLOWEST_SECONDS", 0.2)
        store: Any = api.studio.store
        reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]), limit=1)
        writer.write(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await writer.drain()
        async with asyncio.timeout(30):
            while not api.studio.hub.listeners:
                await asyncio.sleep(0.01)
            labels = {"filler": "x" * 1000}
            while api.studio.hub.listeners:
                await _tell_much(store, labels)
        writer.close()
        assert reader

    async def test_heartbeats_keep_the_connection_open(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hubs, "HEARTBEAT_SECONDS", 0.05)
        async with api.http.get(f"{api.url}/api/events") as answer:
            lines = [await answer.content.readline() for _ in range(6)]
        assert b": still here\n" in lines


async def _first_after(frames: AsyncIterator[bytes], store: Any) -> int:
    waiting = asyncio.ensure_future(anext(frames))  # pyright: ignore[reportArgumentType]
    await asyncio.sleep(0.1)
    await queued(store, 1)
    return _id(await waiting)


async def _tell_much(store: Any, labels: dict[str, str]) -> None:
    """Events with large bodies, straight into the store."""

    def tell(unit: Any) -> None:
        for _ in range(200):
            unit.add_event("test.noise", "x", body=labels)

    await store.database.write(tell)


def _id(frame: bytes) -> int:
    return int(frame.split(b"\n", 1)[0][4:])


class TestAcrossARestart:
    @pytest.mark.parametrize("how", ["kill", "stop"])
    async def test_the_execution_goes_on_and_listeners_resume(self, tmp_path: Path, how: str) -> None:
        project = make_project(tmp_path / "project", [])
        server = ServerProcess(project)
        try:
            server.wait_ready()
            async with ClientSession() as http:
                api = Api(server.url, None, http)  # pyright: ignore[reportArgumentType]
                execution = await started(api, repetitions=40, script=("wait=0.05 one", "wait=0.05 two"))
                seen: list[Any] = []
                async for event in events_of(http, server.url, after=0):
                    seen.append(event)
                    if sum(one["kind"] == "run.finished" for one in seen) >= 3:
                        break
                if how == "kill":
                    server.kill()
                else:
                    assert server.stop() == 0, server.log
                server = ServerProcess(project, port=server.port)
                server.wait_ready()
                seen += await until_over(http, server.url, execution, last_id=seen[-1]["id"])
                done = await api.found(f"/api/executions/{execution}")
        finally:
            server.stop()
        assert done["counts"]["passed"] == 40
        ids = [event["id"] for event in seen]
        assert ids == sorted(set(ids))
        finished = [event["runId"] for event in seen if event["kind"] == "run.finished"]
        assert len(finished) == len(set(finished)) == 40


def resident_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def _crowd(tmp_path: Path, listeners: int, repetitions: int) -> tuple[list[list[int]], float]:
    """Listeners who all follow one execution; what each saw, and the memory the server gained."""
    project = make_project(tmp_path / "project", [])
    server = ServerProcess(project)
    try:
        server.wait_ready()
        timeout = ClientTimeout(total=None, sock_read=120)
        async with ClientSession(connector=TCPConnector(limit=0), timeout=timeout) as http:
            api = Api(server.url, None, http)  # pyright: ignore[reportArgumentType]
            connector = await api.made("/api/connectors", {"name": "agent", "type": "test-agent"})
            scenario = await api.made("/api/scenarios", scripted("talks", "hi"))
            body = {"name": "all", "scenarioIds": [scenario["id"]], "connectorIds": [connector["id"]]}
            made = await api.made("/api/evals", {**body, "repetitions": repetitions})
            before = resident_mb(server.process.pid)
            execution = (await api.made("/api/executions", {"evalId": made["id"]}))["id"]

            async def follow() -> list[int]:
                last = 0
                seen: list[int] = []
                while True:
                    async for event in events_of(http, server.url, last_id=last):
                        last = event["id"]
                        seen.append(last)
                        if event["kind"] == "execution.completed" and event["executionId"] == execution:
                            return seen

            async with asyncio.timeout(240):
                seen = await asyncio.gather(*(follow() for _ in range(listeners)))
            return seen, resident_mb(server.process.pid) - before
    finally:
        server.stop()


class TestACrowd:
    async def test_fifty_listeners_all_see_every_event(self, tmp_path: Path) -> None:
        seen, _ = await _crowd(tmp_path, 50, 40)
        assert all(one == seen[0] for one in seen)
        assert len(seen[0]) == len(set(seen[0])) >= 40 * 3

    @pytest.mark.soak
    async def test_five_hundred_listeners_see_every_event_in_bounded_memory(self, tmp_path: Path) -> None:
        seen, grown = await _crowd(tmp_path, 500, 300)
        assert all(one == seen[0] for one in seen)
        assert len(seen[0]) == len(set(seen[0])) >= 300 * 3
        print(f"500 listeners, {len(seen[0])} events each; the server grew by {grown:.0f} MB")
        assert grown < 120
