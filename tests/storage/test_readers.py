"""Threads that read: as many as there is work for, and what they bring back reaches whoever asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from evalstudio.storage.readers import ReaderThreads


@pytest.fixture
async def readers() -> AsyncIterator[ReaderThreads]:
    threads = ReaderThreads(2)
    yield threads
    await threads.close()


def _names() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("evalstudio-reader")}


async def test_results_and_errors_reach_whoever_asked(readers: ReaderThreads) -> None:
    calls = [readers.run(divmod, number, 3 if number % 10 else 0) for number in range(200)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert results[17] == (5, 2)
    assert [isinstance(one, ZeroDivisionError) for one in results] == [
        number % 10 == 0 for number in range(200)
    ]


async def test_no_more_threads_are_started_than_there_is_work_for(readers: ReaderThreads) -> None:
    before = _names()
    for number in range(5):
        assert await readers.run(abs, -number) == number
    assert len(_names() - before) == 1
    release = threading.Event()
    calls = [readers.run(release.wait) for _ in range(6)]
    assert len(_names() - before) == 2
    release.set()
    assert all(await asyncio.gather(*calls))


async def test_what_was_cancelled_while_it_waited_is_not_done(readers: ReaderThreads) -> None:
    release, done = threading.Event(), list[str]()
    busy = [readers.run(release.wait) for _ in range(2)]
    unwanted = readers.run(done.append, "unwanted")
    unwanted.cancel()
    release.set()
    await asyncio.gather(*busy)
    await readers.run(done.append, "wanted")
    assert done == ["wanted"]


async def test_a_slow_read_does_not_hold_back_what_is_ready(readers: ReaderThreads) -> None:
    release = threading.Event()
    slow = readers.run(release.wait)
    assert await readers.run(abs, -1) == 1
    assert not slow.done()
    release.set()
    assert await slow


async def test_closing_waits_for_what_was_asked(readers: ReaderThreads) -> None:
    own = ReaderThreads(1)
    calls = [own.run(abs, -number) for number in range(50)]
    await own.close()
    assert await asyncio.gather(*calls) == list(range(50))


async def test_an_end_of_iteration_is_an_error_and_holds_nobody_back() -> None:
    """A future takes none, and what was read beside it would have waited for ever."""
    threads = ReaderThreads(1)
    broken, whole = threads.run(next, iter(())), threads.run(int, "7")
    with pytest.raises(RuntimeError, match="StopIteration"):
        await broken
    assert await whole == 7
    await threads.close()
