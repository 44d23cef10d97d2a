"""What processes keep together about calls of models, on both databases."""

from __future__ import annotations

import asyncio

from evalstudio.storage.store import SqlStore


async def test_calls_are_planned_one_after_the_other(store: SqlStore) -> None:
    waits = await asyncio.gather(*(store.reserve_call("key", 10_000, 10**6) for _ in range(5)))
    planned = [round(wait / 10_000) for wait in sorted(wait for wait in waits if wait is not None)]
    assert planned == [0, 1, 2, 3, 4]
    assert await store.reserve_call("key", 10_000, 1_000) is None


async def test_a_pause_is_never_shortened_and_those_who_left_count_no_more(store: SqlStore) -> None:
    await store.pause_calls("key", 60_000)
    await store.pause_calls("key", 1_000)
    first = await store.join_callers("key", "evaluation", "a", 60_000)
    assert (first.position, first.members) == (0, 1)
    assert first.paused_ms > 30_000
    assert (await store.join_callers("key", "evaluation", "b", 1)).members == 2
    await store.join_callers("key", "persona", "c", 60_000)
    while (await store.join_callers("key", "evaluation", "a", 60_000)).members > 1:
        await asyncio.sleep(0.01)
    assert (await store.join_callers("other", "evaluation", "a", 60_000)).paused_ms == 0
