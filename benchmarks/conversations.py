"""Whole conversations with an agent over HTTP, beside a bare aiohttp loop that makes the same calls.

The agent takes 50 ms and lives in a process of its own, so that only our side of the calls is counted. Both
sides run on the event loop that the commands use.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any
from uuid import uuid4

import aiohttp
import orjson

from evalstudio import Scenario, create_registry
from evalstudio.cli.project import run_async
from evalstudio.connectors.contract import ConnectorSettings, RunInfo
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.session import AgentSession
from evalstudio.conversation.loop import converse, finished
from evalstudio.conversation.preparation import Services, prepare

from .measuring import ROUNDS, BenchmarkLine

CONVERSATIONS = 500
AT_ONCE = 50
SECONDS = 0.05
SCRIPT = ["A table for two, please.", "At eight.", "Yes, book it."]
CALL = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"people":2}'}}
REPLY = {"messages": [{"role": "assistant", "content": "Booked, BK-12345.", "tool_calls": [CALL]}]}
SCENARIO = {
    "name": "Booking",
    "script": SCRIPT,
    "evaluators": [{"type": "regex", "config": {"pattern": r"BK-\d{5}"}}, {"type": "tool-call-count"}],
}


def measure() -> list[BenchmarkLine]:
    with agent() as url:
        run_async(_ours(url, 50))
        run_async(bare(url, 50))
        rounds = [(_timed(_ours, url), _timed(bare, url)) for _ in range(ROUNDS)]
    # Each round has its own ratio: what else the machine does meanwhile disturbs both of its sides.
    wall, floor_wall, times_wall = medians([(ours[0], floor[0]) for ours, floor in rounds])
    cpu, floor_cpu, times_cpu = medians([(ours[1], floor[1]) for ours, floor in rounds])
    turns = CONVERSATIONS * len(SCRIPT)
    return [
        BenchmarkLine(
            f"{CONVERSATIONS} conversations, {AT_ONCE} at a time, wall",
            f"{wall:.2f} s",
            f"{floor_wall:.2f} s bare aiohttp",
            f"{times_wall:.2f} × of at most 1.3 ×",
            times_wall <= 1.3,
        ),
        BenchmarkLine(
            "conversations, CPU per turn",
            f"{cpu / turns * 1e3:.2f} ms",
            f"{floor_cpu / turns * 1e3:.2f} ms bare aiohttp",
            f"{times_cpu:.2f} × of at most 1.5 ×",
            times_cpu <= 1.5,
        ),
    ]


def medians(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Of ours, of the floor's, and of the ratio."""
    return (
        statistics.median(ours for ours, _ in pairs),
        statistics.median(floor for _, floor in pairs),
        statistics.median(ours / floor for ours, floor in pairs),
    )


def _timed(work: Callable[[str, int], Coroutine[Any, Any, None]], url: str) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    run_async(work(url, CONVERSATIONS))
    return time.perf_counter() - wall, time.process_time() - cpu


async def _at_once(times: int, work: Callable[[], Awaitable[None]]) -> None:
    left = iter(range(times))

    async def worker() -> None:
        for _ in left:
            await work()

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


async def _ours(url: str, times: int) -> None:
    registry = create_registry()
    plan = prepare(Scenario.model_validate(SCENARIO), registry)
    definition = registry.get_connector("http")
    assert definition is not None
    settings = ConnectorSettings(definition.config.parse("http", {}), url)
    async with HttpPool() as pool:

        async def talk() -> None:
            session = AgentSession(definition, settings, pool=pool, run=RunInfo(id=uuid4().hex))
            result = await finished(converse(plan, session, Services()))
            assert result.passed, result.reason
            assert result.metrics["tool-call-count"] == len(SCRIPT)

        await _at_once(times, talk)


async def bare(url: str, times: int) -> None:
    async with aiohttp.ClientSession() as client:

        async def talk() -> None:
            messages: list[dict[str, Any]] = []
            for text in SCRIPT:
                messages.append({"role": "user", "content": text})
                async with client.post(url, json={"messages": messages, "threadId": None}) as response:
                    response.raise_for_status()
                    messages += (await response.json())["messages"]

        await _at_once(times, talk)


class _Agent(asyncio.Protocol):
    """The least of an HTTP server: reads a request, waits, answers; cheap enough to keep out of the way."""

    ANSWER = orjson.dumps(REPLY)
    HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._heard = b""

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found:
            return
        length = next(
            int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        if len(body) >= length:
            self._heard = b""
            asyncio.get_running_loop().call_later(self._seconds, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(self.HEAD + self.ANSWER)


async def _listen(pipe: Connection, seconds: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Agent(seconds), "127.0.0.1", 0)
    pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat")
    await asyncio.get_running_loop().run_in_executor(None, pipe.recv)


def _serve(pipe: Connection, seconds: float) -> None:
    asyncio.run(_listen(pipe, seconds))


@contextmanager
def agent(seconds: float = SECONDS) -> Generator[str]:
    """The address of an agent in a process of its own, which takes its time to answer."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, seconds), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("stop")
        process.join(10)
