"""Worker threads grow with the work, carry the caller's context, and their clock shows the work alone."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar

import pytest

from evalstudio.base.concurrency import Clock, DaemonPool, TimeLimitExceeded, bounded

NAME: ContextVar[str] = ContextVar("name", default="nobody")


async def test_there_are_as_many_threads_as_functions_at_work() -> None:
    pool, together = DaemonPool(most=100), threading.Barrier(80)
    # Each waits for all others, so fewer threads than functions would wait for ever.
    await asyncio.wait_for(asyncio.gather(*(pool.run(lambda: together.wait(20)) for _ in range(80))), 30)


async def test_a_pool_never_has_more_threads_than_its_limit() -> None:
    pool = DaemonPool(most=3)

    def name() -> int:
        time.sleep(0.01)
        return threading.get_ident()

    assert len(set(await asyncio.gather(*(pool.run(name) for _ in range(30))))) <= 3


async def test_threads_see_the_context_of_their_caller() -> None:
    pool = DaemonPool(most=2)

    async def named(name: str) -> str:
        NAME.set(name)
        return await pool.run(NAME.get)

    names = [f"n{number}" for number in range(20)]
    assert await asyncio.gather(*(asyncio.create_task(named(name)) for name in names)) == names


async def timed(pool: DaemonPool, seconds: float, limit: float) -> float:
    clock = Clock()
    await bounded(pool.run(lambda: time.sleep(seconds), clock), limit, clock)
    return clock.seconds()


async def test_waiting_for_a_thread_is_neither_in_the_time_nor_in_the_limit() -> None:
    pool = DaemonPool(most=1)
    # The last one waits about six times as long as its limit allows.
    taken = await asyncio.gather(*(timed(pool, 0.1, 0.5) for _ in range(30)))
    assert min(taken) >= 0.1
    assert max(taken) < 0.5


async def test_the_limit_holds_for_a_function_that_had_to_wait() -> None:
    pool = DaemonPool(most=1)
    first = asyncio.create_task(timed(pool, 0.6, 5))
    await asyncio.sleep(0)
    with pytest.raises(TimeLimitExceeded):
        await timed(pool, 2, 0.2)
    assert first.done()
    await first


async def test_a_busy_event_loop_is_not_in_the_time() -> None:
    pool, clock = DaemonPool(most=1), Clock()
    work = asyncio.create_task(bounded(pool.run(lambda: time.sleep(0.05), clock), 5, clock))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    time.sleep(2)  # noqa: ASYNC251 - nothing else runs meanwhile
    await work
    assert 0.05 <= clock.seconds() < 1.9


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    pool, begun = DaemonPool(most=1), list[int]()
    first = asyncio.create_task(pool.run(lambda: time.sleep(0.2)))
    waiting = asyncio.create_task(pool.run(lambda: begun.append(1)))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await first
    await pool.run(lambda: None)
    assert begun == []
