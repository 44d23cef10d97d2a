"""Limits of one key and one model, kept by all processes that share a database."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.support.model_server import ModelServer, Recorded, refusal

from evalstudio.base.concurrency import Clock, bounded, own_clock_paused
from evalstudio.llm import Llm, quota
from evalstudio.llm.limits import CallLimiter
from evalstudio.llm.settings import ModelError
from evalstudio.project.config import StorageSettings
from evalstudio.storage.opening import open_store
from evalstudio.storage.store import SqlStore

from .opened import ASKED, settings_for


@asynccontextmanager
async def stores(folder: Path, count: int = 2) -> AsyncGenerator[list[SqlStore]]:
    """The same database, opened as often as there would be processes."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(await open_store(StorageSettings(), folder)) for _ in range(count)
        ]


PROCESS = """
import asyncio, json, sys
from pathlib import Path
from evalstudio.llm import Llm, LlmSettings
from evalstudio.messages import Message
from evalstudio.project.config import StorageSettings
from evalstudio.storage.opening import open_store

async def main():
    settings = LlmSettings.model_validate(json.loads(sys.argv[1]))
    store = await open_store(StorageSettings(), Path(sys.argv[2]))
    async with store, Llm(settings, shared=store) as llm:
        asked = [Message(role="user", content="Hello?")]
        print("ready", flush=True)
        sys.stdin.readline()
        await asyncio.gather(*(llm.chat(asked) for _ in range(int(sys.argv[3]))))

asyncio.run(main())
"""


async def test_two_processes_keep_the_calls_per_minute_together(tmp_path: Path) -> None:
    each, per_minute = 8, 600
    arrived: list[float] = []

    def reply(request: Recorded) -> str:
        arrived.append(monotonic())
        return "Hello."

    async with stores(tmp_path, 1), ModelServer(reply) as server:
        settings = settings_for(server, requestsPerMinute=per_minute, models={"persona": "m"})
        plain = settings.model_dump(mode="json", by_alias=True, exclude_unset=True) | {"apiKey": "k-1"}
        command = (sys.executable, "-c", PROCESS, json.dumps(plain), str(tmp_path), str(each))
        pipes: dict[str, Any] = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        processes = [await asyncio.create_subprocess_exec(*command, **pipes) for _ in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    assert [process.returncode for process in processes] == [0, 0]
    assert len(arrived) == 2 * each
    # One after the other they would take half as long if each process counted alone.
    assert arrived[-1] - arrived[0] > 0.75 * (2 * each - 1) * 60 / per_minute


async def test_no_moment_is_given_to_two_calls(tmp_path: Path) -> None:
    async with stores(tmp_path) as opened:
        start = monotonic()
        waits = await asyncio.gather(
            *(store.reserve_call("key", 1_000, 60_000) for store in opened for _ in range(10))
        )
        spent = (monotonic() - start) * 1000
        planned = sorted(wait for wait in waits if wait is not None)
        assert len(planned) == 20
        assert planned[-1] >= 19_000 - spent
        assert await opened[1].reserve_call("key", 1_000, 5_000) is None
        assert await opened[1].reserve_call("another", 1_000, 5_000) == 0


async def test_a_call_that_would_come_too_late_fails_at_once() -> None:
    async with ModelServer() as server:
        settings = settings_for(server, requestsPerMinute=1, totalTimeoutSeconds=5)
        async with Llm(settings) as llm:
            await llm.chat(ASKED)
            with pytest.raises(ModelError, match="requestsPerMinute"):
                await llm.chat(ASKED)
        assert len(server.requests) == 1


async def test_a_pause_holds_for_every_process_and_for_this_key_and_model_alone(tmp_path: Path) -> None:
    async with stores(tmp_path) as (one, other), ModelServer() as server:
        settings = settings_for(server, maxRetries=0)
        async with Llm(settings, shared=one) as first, Llm(settings, shared=other) as second:
            server.replies = refusal(429, retry_after="100000")
            with pytest.raises(ModelError):
                await first.chat(ASKED)
            server.replies = "Hello."
            with pytest.raises(ModelError, match="pause that lasts another"):
                await second.chat(ASKED)
            assert (await second.chat(ASKED, model="another-model")).value == "Hello."
        changed = settings.model_copy(update={"api_key": "another-key"})
        async with Llm(changed, shared=other) as third:
            assert (await third.chat(ASKED)).value == "Hello."
        assert len(server.requests) == 3


async def test_calls_at_once_are_divided_among_those_who_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "_SYNC_SECONDS", 0.0)
    async with stores(tmp_path, 3) as opened:
        limiters = [CallLimiter(8) for _ in opened]
        quotas = [
            quota.ModelQuota("key", shared=store).of_role("evaluation", limiter)
            for store, limiter in zip(opened, limiters, strict=True)
        ]
        await quotas[0].sync()
        assert limiters[0].limit == 8
        for _ in range(2):
            for one in quotas:
                await one.sync()
        assert sorted(limiter.limit for limiter in limiters) == [2, 3, 3]


async def test_without_an_answer_of_the_database_each_process_counts_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Gone:
        async def reserve_call(self, *_: Any) -> int:
            raise OSError("gone")

        pause_calls = join_callers = reserve_call

    async with ModelServer() as server:
        settings = settings_for(server, requestsPerMinute=6_000)
        async with Llm(settings, shared=Gone()) as llm:  # pyright: ignore[reportArgumentType]
            assert (await llm.chat(ASKED)).value == "Hello."
    assert "this process alone" in caplog.text


async def test_waiting_for_a_turn_is_not_the_time_of_whoever_waits() -> None:
    async def judge() -> str:
        with own_clock_paused():
            await asyncio.sleep(2)
        return "done"

    clock = Clock()
    assert await bounded(judge(), 1.5, clock) == "done"
    assert clock.seconds() < 1.5
