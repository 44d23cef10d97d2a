"""Events: written with the change they tell, read in order, nothing missed and nothing twice."""

from __future__ import annotations

import asyncio

from tests.storage.conftest import Opener
from tests.support.stored_runs import claimed, ending, queued, turn

from evalstudio.storage.contract import Event
from evalstudio.storage.store import SqlStore


async def test_a_run_tells_its_story(store: SqlStore) -> None:
    execution = await queued(store)
    (mine,) = await claimed(store)
    await store.append_turn(mine.lease, turn())
    await store.finish(mine.lease, ending("fail"))
    told = await store.events()
    assert [event.kind for event in told] == [
        "execution.queued",
        "run.started",
        "execution.running",
        "run.turn",
        "run.finished",
        "execution.completed",
    ]
    assert [event.id for event in told] == sorted({event.id for event in told})
    assert {event.execution_id for event in told} == {execution.id}
    assert told[4].body["outcome"] == "fail"
    assert told[5].body["counts"]["failed"] == 1
    assert await store.last_event_id() == told[-1].id


async def test_events_are_narrowed_and_continued(store: SqlStore) -> None:
    first, second = await queued(store), await queued(store, 2)
    one, *_ = await claimed(store, limit=3)
    assert [event.kind for event in await store.events(run_id=one.lease.run_id)] == ["run.started"]
    mine = await store.events(execution_id=second.id)
    assert {event.execution_id for event in mine} == {second.id}
    assert await store.events(mine[-1].id, execution_id=second.id) == []
    assert len(await store.events(limit=2)) == 2
    whole = await store.events()
    assert await store.events(whole[2].id) == whole[3:]
    assert first.id in {event.execution_id for event in whole}


async def test_what_is_undone_is_not_told(store: SqlStore) -> None:
    await queued(store)
    (mine,) = await claimed(store)
    await store.finish(mine.lease, ending())
    before = await store.last_event_id()
    await asyncio.gather(*(store.finish(mine.lease, ending()) for _ in range(3)), return_exceptions=True)
    assert await store.last_event_id() == before


async def _follow(store: SqlStore, until: int) -> list[Event]:
    seen: list[Event] = []
    last = 0
    while len(seen) < until:
        assert await store.wait_for_events(last, 20)
        for event in await store.events(last):
            seen.append(event)
            last = event.id
    return seen


async def test_a_follower_misses_nothing_and_sees_nothing_twice_while_many_write(opener: Opener) -> None:
    stores = [await opener() for _ in range(4)]
    reader = await opener()
    execution = await queued(stores[0], 80)
    wanted = 1 + 80 * 3 + 2

    async def work(store: SqlStore, name: str) -> None:
        while claims := await store.claim(name, 4, 60):
            for claim in claims:
                await store.append_turn(claim.lease, turn())
            await asyncio.gather(*(store.finish(claim.lease, ending()) for claim in claims))

    following = asyncio.create_task(_follow(reader, wanted))
    await asyncio.gather(*(work(store, f"w{n}") for n, store in enumerate(stores * 2)))
    seen = await asyncio.wait_for(following, 30)
    assert [event.id for event in seen] == [event.id for event in await reader.events(limit=1000)]
    assert len({event.id for event in seen}) == wanted
    assert seen[-1].kind == "execution.completed"
    finished = [event.run_id for event in seen if event.kind == "run.finished"]
    assert len(finished) == len(set(finished)) == 80
    assert (await reader.execution(execution.id)).counts.passed == 80


async def test_waiting_for_events_ends_with_the_time_given(store: SqlStore) -> None:
    assert not await store.wait_for_events(0, 0.6)
    await queued(store)
    assert await store.wait_for_events(0, 5)
