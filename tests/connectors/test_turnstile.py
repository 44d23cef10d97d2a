"""A few pass per round of the loop, everybody in order, nobody is forgotten."""

from __future__ import annotations

import asyncio

from evalstudio.connectors.turnstile import Turnstile


async def test_everybody_passes_in_order_a_few_per_round() -> None:
    turnstile, passed, rounds = Turnstile(2), list[tuple[int, int]](), 0

    def count() -> None:
        nonlocal rounds
        rounds += 1
        if rounds < 100:
            asyncio.get_running_loop().call_soon(count)

    async def walk(number: int) -> None:
        await turnstile.wait()
        passed.append((number, rounds))

    count()
    await asyncio.gather(*(walk(number) for number in range(20)))
    assert [number for number, _ in passed] == list(range(20))
    assert len({at for _, at in passed}) >= 10


async def test_whoever_gives_up_does_not_block_the_others() -> None:
    turnstile = Turnstile(1)
    await turnstile.wait()
    impatient = asyncio.create_task(turnstile.wait())
    patient = asyncio.create_task(turnstile.wait())
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.wait_for(patient, 1)
    await asyncio.wait_for(turnstile.wait(), 1)
