"""When to try again, how long to wait, and when to give up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.llm.limits import (
    CallLimiter,
    Failure,
    RetryPolicy,
    call_with_retries,
    wait_before,
)
from evalstudio.llm.settings import ModelError
from evalstudio.llm.usage import RoleUsage


@given(st.integers(1, 1000), st.floats(0, 1))
def test_backoff_doubles_up_to_half_a_minute_and_is_never_nothing(retry: int, chance: float) -> None:
    assert 0.25 <= wait_before(retry, None, chance) <= 30
    assert wait_before(retry, None, 1) <= wait_before(retry + 1, None, 1)


@given(st.floats(0, 10_000), st.floats(0, 1))
def test_the_server_is_never_asked_again_before_it_said(asked: float, chance: float) -> None:
    assert asked <= wait_before(1, asked, chance) <= asked + 0.25


def failing(times: int, sink: list[float]) -> Callable[[], Awaitable[str]]:
    async def attempt() -> str:
        sink.append(monotonic())
        if len(sink) <= times:
            raise RuntimeError("busy")
        return "done"

    return attempt


POLICY = RetryPolicy(retries=3, attempt_seconds=1, total_seconds=5)


def again(_: Exception) -> Failure:
    return Failure("it is busy", 503, again=True, retry_after=0.01)


async def test_it_tries_until_it_works_and_counts() -> None:
    seen: list[float] = []
    tally = RoleUsage()
    assert await call_with_retries(failing(2, seen), again, CallLimiter(1), POLICY, tally) == "done"
    assert len(seen) == 3
    assert tally.retries == 2
    assert tally.waited_seconds >= 0.02


async def test_tries_are_finite() -> None:
    seen: list[float] = []
    gate = CallLimiter(1)
    with pytest.raises(
        ModelError, match=r"it is busy \(gave up after 4 tries; it asks to wait 0.01 s\)"
    ) as caught:
        await call_with_retries(failing(99, seen), again, gate, POLICY, RoleUsage())
    assert len(seen) == 4
    assert caught.value.status == 503
    assert gate.in_flight == 0


async def test_what_cannot_get_better_is_not_tried_again() -> None:
    seen: list[float] = []
    with pytest.raises(ModelError, match=r"^wrong$"):
        await call_with_retries(
            failing(99, seen), lambda _: Failure("wrong", 400), CallLimiter(1), POLICY, RoleUsage()
        )
    assert len(seen) == 1


async def test_a_wait_beyond_the_total_time_is_not_begun() -> None:
    start = monotonic()
    with pytest.raises(ModelError, match="asks to wait 3600 s"):
        await call_with_retries(
            failing(99, []),
            lambda _: Failure("full", 429, again=True, throttled=True, retry_after=3600),
            CallLimiter(4),
            POLICY,
            RoleUsage(),
        )
    assert monotonic() - start < 30


async def test_the_total_time_bounds_everything() -> None:
    attempts = 0

    async def hang() -> str:
        nonlocal attempts
        attempts += 1
        await asyncio.sleep(60)
        return ""

    with pytest.raises(ModelError, match="slow"):
        await call_with_retries(
            hang,
            lambda _: Failure("slow", again=True, retry_after=0.0),
            CallLimiter(1),
            RetryPolicy(retries=20, attempt_seconds=0.2, total_seconds=0.5),
            RoleUsage(),
        )
    assert 1 <= attempts <= 3


async def test_a_retry_that_gets_no_slot_in_time_gives_up() -> None:
    gate = CallLimiter(1)
    seen: list[float] = []

    async def take_the_slot(error: Exception) -> None:
        await gate.enter()

    def explain(error: Exception) -> Failure:
        asyncio.get_running_loop().create_task(take_the_slot(error))
        return Failure("busy", 500, again=True, retry_after=0.05)

    with pytest.raises(ModelError, match="busy"):
        await call_with_retries(failing(99, seen), explain, gate, RetryPolicy(5, 1, 0.3), RoleUsage())
    assert len(seen) == 1
    assert gate.queued == 0


async def test_cancelling_gives_the_slot_back() -> None:
    gate = CallLimiter(1)

    async def hang() -> str:
        await asyncio.sleep(60)
        return ""

    task = asyncio.create_task(call_with_retries(hang, again, gate, POLICY, RoleUsage()))
    await asyncio.sleep(0.01)
    assert gate.in_flight == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.in_flight == 0


async def test_a_pause_that_outlasts_the_deadline_fails_the_next_call_at_once() -> None:
    limiter, seen = CallLimiter(4), list[float]()
    limiter.throttled(monotonic(), 100_000)
    with pytest.raises(ModelError, match="asked for a pause"):
        await call_with_retries(failing(0, seen), again, limiter, POLICY, RoleUsage())
    assert seen == []


async def test_the_time_waited_for_a_slot_is_counted() -> None:
    limiter, tally = CallLimiter(1), RoleUsage()
    limiter.throttled(monotonic(), 0.1)
    assert await call_with_retries(failing(0, []), again, limiter, POLICY, tally) == "done"
    assert tally.waited_seconds >= 0.1


async def test_refused_credentials_are_not_tried_on_every_call() -> None:
    limiter, seen = CallLimiter(4), list[float]()
    for _ in range(10):
        with pytest.raises(ModelError, match="bad key"):
            await call_with_retries(
                failing(99, seen), lambda _: Failure("bad key", 401), limiter, POLICY, RoleUsage()
            )
    assert len(seen) == 3
    assert "refused 3 times in a row" in str(limiter.refusal)


async def test_one_success_forgets_the_refusals() -> None:
    limiter = CallLimiter(4)
    for _ in range(2):
        limiter.refused("bad key")
    limiter.succeeded()
    limiter.refused("bad key")
    assert limiter.refusal is None
