"""Spans of production: each in one conversation, however often and late it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from evalstudio.storage.production import AddedSpans, ConversationLimits, NewSpan
from evalstudio.storage.store import SqlStore

LIMITS = ConversationLimits(100, 10_000)
Opener = Callable[[], Awaitable[SqlStore]]


def span(trace: int, number: int, name: str | None = None, body: bytes = b"body") -> NewSpan:
    trace_id = trace.to_bytes(16)
    return NewSpan(trace_id + number.to_bytes(8), trace_id, name, body, len(body))


async def names(store: SqlStore) -> dict[str, int]:
    return {one["name"]: one["spans"] for one in (await store.conversations()).items}


async def test_a_span_that_comes_again_changes_nothing(store: SqlStore) -> None:
    batch = [span(1, 1, "a"), span(1, 2, "a"), span(1, 2, "a")]
    assert await store.add_spans(batch, LIMITS) == AddedSpans(2, 1, 0)
    (claimed,) = await store.claim_conversations("w", 0, 5, 60_000)
    await store.hand_over(claimed.id, 1)
    assert await store.add_spans(batch, LIMITS) == AddedSpans(0, 3, 0)
    conversation = await store.conversation(claimed.id)
    assert (conversation["status"], conversation["revision"], conversation["judged"]) == ("complete", 1, True)


async def test_spans_without_a_name_belong_to_the_conversation_of_their_trace(store: SqlStore) -> None:
    await store.add_spans([span(1, 1), span(2, 1)], LIMITS)
    await store.add_spans([span(1, 2, "named"), span(1, 3)], LIMITS)
    await store.add_spans([span(1, 4), span(3, 1, "named")], LIMITS)
    assert await names(store) == {"named": 5, f"{2:032x}": 1}
    page = await store.conversations()
    bodies = [len(await store.bodies_of(one["id"])) for one in page.items]
    assert sorted(bodies) == [1, 5]


async def test_two_names_in_one_trace_are_two_conversations(store: SqlStore) -> None:
    """An agent inside a tool has a conversation of its own."""
    await store.add_spans([span(1, 1, "outer"), span(1, 2, "inner"), span(1, 3)], LIMITS)
    assert await names(store) == {"outer": 2, "inner": 1}


def described(**more: object) -> dict[str, object]:
    names = ("started", "turn_count", "total_tokens", "agent", "title", "error", "tail")
    return {**dict.fromkeys(names), "turn_count": 0, "attributes": {}, **more}


async def test_a_late_span_opens_its_conversation_again(store: SqlStore) -> None:
    await store.add_spans([span(1, 1, "a")], LIMITS)
    (first,) = await store.claim_conversations("w", 0, 5, 60_000)
    assert await store.claim_conversations("other", 0, 5, 60_000) == []
    await store.add_spans([span(1, 2, "a")], LIMITS)
    # Whoever holds the old revision cannot describe the new one.
    assert not await store.describe_conversation(first.id, first.revision, described(turn_count=1))
    await store.hand_over(first.id, first.revision)
    conversation = await store.conversation(first.id)
    assert (conversation["status"], conversation["revision"], conversation["judged"]) == ("open", 2, False)
    assert conversation["lateSpans"] == 1
    (again,) = await store.claim_conversations("w", 0, 5, 60_000)
    assert again.revision == 2


async def test_what_a_dead_process_held_is_free_again(store: SqlStore) -> None:
    await store.add_spans([span(1, 1, "a")], LIMITS)
    await store.claim_conversations("dead", 0, 5, 60_000)
    assert await store.conversation_holders() == ["dead"]
    await store.release_conversations(["dead"])
    assert [one.name for one in await store.claim_conversations("w", 0, 5, 60_000)] == ["a"]


async def test_what_could_not_be_handed_over_is_tried_again_later(store: SqlStore) -> None:
    await store.add_spans([span(1, 1, "a")], LIMITS)
    (claimed,) = await store.claim_conversations("w", 0, 5, 60_000)
    await store.put_off(claimed.id, 1, "the judge is away", 60_000)
    assert await store.claim_conversations("w", 0, 5, 60_000) == []
    await store.put_off(claimed.id, 1, "the judge is away", -1)
    (again,) = await store.claim_conversations("w", 0, 5, 60_000)
    assert again.attempts == 2
    assert (await store.conversation(again.id))["problem"] == "the judge is away"


async def test_a_conversation_without_a_name_goes_on_where_exactly_one_other_ended(store: SqlStore) -> None:
    for trace in (1, 2, 3):
        await store.add_spans([span(trace, 1)], LIMITS)
    by_name = {one.name: one for one in await store.claim_conversations("w", 0, 5, 60_000)}
    first, second, third = (by_name[f"{trace:032x}"] for trace in (1, 2, 3))
    await store.describe_conversation(first.id, 1, described(tail="T1"))
    await store.describe_conversation(second.id, 1, described(tail="T2"))
    await store.describe_conversation(third.id, 1, described(tail="T3"))
    assert await store.continue_conversation(second.id, "T1") == first.id
    assert await store.continue_conversation(third.id, "T2") == first.id
    assert await names(store) == {f"{1:032x}": 3}
    await store.add_spans([span(4, 1), span(5, 1), span(6, 1)], LIMITS)
    others = [one for one in (await store.conversations()).items if one["id"] != first.id]
    for one in others[:2]:
        await store.describe_conversation(one["id"], 1, described(tail="same"))
    assert await store.continue_conversation(others[2]["id"], "same") is None


async def test_a_conversation_has_an_end_whoever_sends(store: SqlStore) -> None:
    batch = [span(1, number, "a") for number in range(150)]
    assert await store.add_spans(batch, LIMITS) == AddedSpans(100, 0, 50)
    assert (await store.add_spans([span(2, 1, "b", b"x" * 20_000)], LIMITS)).refused == 1
    assert {one["name"]: one["refusedSpans"] for one in (await store.conversations()).items} == {
        "a": 50,
        "b": 1,
    }


async def test_what_is_old_is_deleted(store: SqlStore) -> None:
    await store.add_spans([span(trace, 1) for trace in range(1, 30)], LIMITS)
    assert await store.prune_conversations(timedelta(days=1)) == 0
    assert await store.prune_conversations(timedelta(seconds=-5)) == 29
    assert await store.add_spans([span(1, 1)], LIMITS) == AddedSpans(1, 0, 0)


async def test_many_at_once_make_one_conversation_of_each_name(opener: Opener) -> None:
    stores = [await opener() for _ in range(2)]
    batches = [[span(trace, number, f"c{trace % 5}") for trace in range(1, 21)] for number in range(1, 7)]
    await asyncio.gather(*(store.add_spans(batch, LIMITS) for store in stores for batch in batches))
    assert await names(stores[0]) == {f"c{number}": 24 for number in range(5)}
