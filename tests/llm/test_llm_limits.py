"""The gate: how many calls run at once."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from evalstudio.llm.limits import CallLimiter


async def test_no_more_than_the_limit_get_in_and_all_get_their_turn() -> None:
    gate = CallLimiter(3)
    inside = peak = done = 0

    async def call() -> None:
        nonlocal inside, peak, done
        await gate.enter()
        inside += 1
        peak = max(peak, inside)
        await asyncio.sleep(0.001)
        inside -= 1
        done += 1
        gate.leave()

    await asyncio.gather(*(call() for _ in range(50)))
    assert (peak, done, gate.in_flight, gate.queued) == (3, 50, 0, 0)


async def test_the_order_is_kept_and_a_retry_goes_first() -> None:
    gate = CallLimiter(1)
    await gate.enter()
    order: list[str] = []

    async def call(name: str, first: bool = False) -> None:
        await gate.enter(first=first)
        order.append(name)
        gate.leave()

    tasks = [asyncio.create_task(call("a")), asyncio.create_task(call("b"))]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(call("retry", first=True)))
    await asyncio.sleep(0)
    gate.leave()
    await asyncio.gather(*tasks)
    assert order == ["retry", "a", "b"]


async def test_a_refusal_halves_and_a_window_of_successes_adds_one() -> None:
    gate = CallLimiter(8)
    gate.throttled(monotonic(), 0)
    assert gate.limit == 4
    for _ in range(3):
        gate.succeeded()
    assert gate.limit == 4
    gate.succeeded()
    assert gate.limit == 5
    for _ in range(5):
        gate.succeeded()
    assert gate.limit == 6


async def test_it_never_goes_below_one_nor_above_its_most() -> None:
    gate = CallLimiter(8)
    for _ in range(10):
        gate.throttled(monotonic(), 0)
    assert gate.limit == 1
    for _ in range(1000):
        gate.succeeded()
    assert gate.limit == 8


async def test_a_burst_of_refusals_halves_only_once() -> None:
    gate = CallLimiter(8)
    started = monotonic()
    await asyncio.sleep(0.001)
    for _ in range(8):
        gate.throttled(started, 0)
    assert gate.limit == 4


async def test_a_refusal_in_between_starts_the_window_anew() -> None:
    gate = CallLimiter(4)
    gate.throttled(monotonic(), 0)
    gate.succeeded()
    gate.throttled(monotonic(), 0)
    assert gate.limit == 1
    gate.succeeded()
    assert gate.limit == 2


async def test_nobody_gets_in_during_a_pause_and_the_wait_is_visible() -> None:
    gate = CallLimiter(2)
    gate.throttled(monotonic(), 0.1)
    assert 0.05 < gate.waiting_seconds <= 0.1
    start = monotonic()
    entering = asyncio.create_task(gate.enter())
    await asyncio.sleep(0.01)
    assert gate.queued == 1
    await entering
    assert monotonic() - start >= 0.09
    assert gate.waiting_seconds == 0


async def test_the_longer_of_two_pauses_counts() -> None:
    gate = CallLimiter(2)
    start = monotonic()
    gate.throttled(start, 0.15)
    gate.throttled(start, 0.01)
    await gate.enter()
    assert monotonic() - start >= 0.14


async def test_a_call_cancelled_in_the_queue_leaves_no_trace() -> None:
    gate = CallLimiter(1)
    await gate.enter()
    waiting = asyncio.create_task(gate.enter())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert gate.queued == 0
    gate.leave()
    assert gate.in_flight == 0


async def test_a_call_cancelled_just_as_its_turn_comes_gives_it_on() -> None:
    gate = CallLimiter(1)
    await gate.enter()
    cancelled, patient = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
    await asyncio.sleep(0)
    gate.leave()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await asyncio.wait_for(patient, 1)
    assert gate.in_flight == 1
