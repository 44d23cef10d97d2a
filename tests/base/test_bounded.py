"""Awaiting under a time limit, whatever the work does."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

import pytest

from evalstudio.base.concurrency import TimeLimitExceeded, WorkAborted, bounded, set_within


async def test_the_value_and_the_error_of_the_work_pass_through() -> None:
    async def works() -> int:
        await asyncio.sleep(0)
        return 7

    async def fails() -> None:
        raise TimeoutError("its own")

    assert await bounded(works(), 1) == 7
    with pytest.raises(TimeoutError, match="its own"):
        await bounded(fails(), 1)


async def test_work_that_takes_too_long_is_cancelled_and_named() -> None:
    ended = asyncio.Event()

    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(TimeLimitExceeded, match=r"^timed out after 0\.05 s$"):
        await bounded(hangs(), 0.05)
    assert ended.is_set()


async def test_the_limit_holds_for_work_that_swallows_its_cancellation() -> None:
    before = asyncio.all_tasks()
    go_on = True

    async def stubborn() -> None:
        while go_on:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    start = monotonic()
    with pytest.raises(TimeLimitExceeded):
        await bounded(stubborn(), 0.05)
    assert monotonic() - start < 30
    go_on = False
    for task in asyncio.all_tasks() - before:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (asyncio.CancelledError(), "cancelled itself"),
        (SystemExit(3), r"tried to exit the program \(3\)"),
    ],
)
async def test_work_that_ends_itself_ends_nothing_else(error: BaseException, message: str) -> None:
    async def aborts() -> None:
        raise error

    with pytest.raises(WorkAborted, match=message):
        await bounded(aborts(), 1)


async def test_cancelling_the_caller_is_a_cancellation_and_reaches_the_work() -> None:
    before, seen = asyncio.all_tasks(), asyncio.Event()

    async def waits() -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.set()
            raise

    task = asyncio.create_task(bounded(waits(), 60))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen.is_set()
    assert asyncio.all_tasks() == before


async def test_an_event_is_awaited_no_longer_than_that() -> None:
    event = asyncio.Event()
    assert not await set_within(event, 0.01)
    asyncio.get_running_loop().call_soon(event.set)
    assert await set_within(event, 60)


async def test_all_who_wait_for_an_event_hear_of_it_though_the_first_clears_it() -> None:
    event = asyncio.Event()

    async def heard() -> bool:
        was_set = await set_within(event, 60)
        event.clear()
        return was_set

    waiting = asyncio.gather(heard(), heard(), heard())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.01, event.set)
    assert await waiting == [True, True, True]


@pytest.mark.parametrize("steps", range(4))
async def test_a_cancellation_that_comes_together_with_the_event_is_not_lost(steps: int) -> None:
    event = asyncio.Event()
    task = asyncio.create_task(set_within(event, 60))
    await asyncio.sleep(0.01)
    event.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    if task.cancel():
        with pytest.raises(asyncio.CancelledError):
            await task
