"""The queue: claiming, leases, turns, endings, cancelling, trying again."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.storage.conftest import Opener
from tests.support.stored_runs import claimed, ending, new_run, queued, turn

from evalstudio.evaluators.results import Turn
from evalstudio.messages import Message, tool_calls_of
from evalstudio.project.entities import Execution
from evalstudio.storage import queue
from evalstudio.storage.contract import Filters, IdempotencyKey, Lease, Snapshot
from evalstudio.storage.errors import LeaseLost, NotFound, StorageError
from evalstudio.storage.store import SqlStore


async def test_a_run_goes_from_queued_to_completed_with_all_it_had(store: SqlStore) -> None:
    execution = await queued(store)
    assert (execution.status, execution.counts.total, execution.counts.queued) == ("queued", 1, 1)
    (mine,) = await claimed(store)
    assert mine.scenario == {"name": "Booking", "script": ["Book a table"]}
    assert mine.persona == {"name": "Ada"}
    assert mine.connector["type"] == "http"
    assert mine.case == {"name": "case 1", "vars": {"city": "Zürich"}}
    assert (mine.run.status, mine.lease.attempt) == ("running", 1)
    assert (await store.execution(execution.id)).status == "running"
    await store.append_turn(mine.lease, turn(1, "Which day?"))
    await store.finish(mine.lease, ending(last_turn=turn(2)))
    run = await store.run(mine.lease.run_id)
    assert (run.status, run.result and run.result.outcome, run.turn_count) == ("completed", "pass", 2)
    assert [message.text for message in run.messages] == [
        "Book a table",
        "Which day?",
        "Book a table",
        "Done.",
    ]
    assert [one.number for one in run.turns] == [1, 2]
    assert run.turns[0].results[0].type == "regex"
    assert run.output == {"messageCount": 2}
    assert run.case is not None
    assert run.case.vars == {"city": "Zürich"}
    done = await store.execution(execution.id)
    assert (done.status, done.counts.passed, done.counts.running) == ("completed", 1, 0)
    assert done.completed_at is not None
    assert done.started_at is not None


async def test_runs_are_claimed_oldest_first_and_never_twice(store: SqlStore) -> None:
    await queued(store, 5)
    await queued(store, 5)
    first = await claimed(store, "w1", 4)
    second = await claimed(store, "w2", 100)
    assert [one.run.repetition for one in first] == [1, 2, 3, 4]
    assert [one.run.repetition for one in second] == [5, 1, 2, 3, 4, 5]
    assert not {one.lease.run_id for one in first} & {one.lease.run_id for one in second}
    assert await claimed(store, "w3", 10) == []
    assert await store.claim("w3", 0, 10) == []


async def test_many_workers_claiming_at_once_share_the_work(opener: Opener) -> None:
    stores = [await opener() for _ in range(3)]
    await queued(stores[0], 60)
    found = await asyncio.gather(*(stores[n % 3].claim(f"w{n}", 5, 60) for n in range(24)))
    rest = await stores[0].claim("last", 100, 60)
    ids = [one.lease.run_id for claims in [*found, rest] for one in claims]
    assert len(ids) == len(set(ids)) == 60


async def test_a_connector_without_room_is_passed_over(store: SqlStore) -> None:
    execution = Execution()
    slow = [new_run(n, connector_id="slow") for n in range(30)]
    fast = [new_run(n, connector_id="fast") for n in range(30)]
    nameless = [new_run(1, connector_id=None)]
    await store.enqueue(execution, [*slow, *fast, *nameless])
    first = await store.claim("w", 20, 60, per_connector=2)
    assert Counter(one.run.connector_id for one in first) == {"slow": 2, "fast": 2, None: 1}
    second = await store.claim("other", 20, 60, per_connector=7)
    assert Counter(one.run.connector_id for one in second) == {"slow": 5, "fast": 5}
    assert await store.claim("w", 20, 60, per_connector=7) == []


async def test_room_that_is_left_is_filled_with_runs_of_other_connectors_once_each(store: SqlStore) -> None:
    for connector in ("c1", "c1", "c1", "c2", "c2"):
        await queued(store, connector_id=connector)
    claims = await store.claim("w", 4, 60, per_connector=2)
    assert Counter(claim.run.connector_id for claim in claims) == {"c1": 2, "c2": 2}
    assert len({claim.lease.run_id for claim in claims}) == 4


async def test_runs_without_a_connector_have_a_limit_of_their_own(store: SqlStore) -> None:
    for connector in (None, None, "c1"):
        await queued(store, connector_id=connector)
    assert [claim.run.connector_id for claim in await store.claim("w", 1, 60, per_connector=1)] == [None]
    assert [claim.run.connector_id for claim in await store.claim("w", 5, 60, per_connector=1)] == ["c1"]
    assert await store.claim("w", 5, 60, per_connector=1) == []


async def test_an_attempt_that_fails_inside_its_worker_is_tried_three_times(store: SqlStore) -> None:
    await queued(store, 2)
    (neighbour,) = await claimed(store)
    for attempt in (1, 2, 3):
        (mine,) = await claimed(store, "w2")
        assert mine.lease.attempt == attempt
        assert await store.fail_attempt(Lease(mine.lease.run_id, attempt, "stranger"), "no") == 0
        assert await store.fail_attempt(mine.lease, "the disk is full") == 1
    run = await store.run(mine.lease.run_id)
    assert run.result is not None
    assert (run.status, run.result.outcome, run.result.fault) == ("error", "error", "system")
    assert "Given up after 3 attempts" in run.result.reason
    assert "the disk is full" in run.result.reason
    assert (await store.run(neighbour.lease.run_id)).status == "running"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("UPDATE runs SET scenario_snapshot = 'gone'", "a snapshot it refers to is gone or damaged"),
        ("UPDATE runs SET \"case\" = '{'", "unexpected end of data"),
    ],
)
async def test_a_run_that_cannot_be_read_ends_when_it_is_claimed(
    store: SqlStore, damage: str, says: str
) -> None:
    first, second = await queued(store), await queued(store)
    where = f"{damage} WHERE execution_id = '{first.id}'"
    await store.database.write(lambda unit: unit.connection.exec_driver_sql(where) and None)
    assert [claim.run.execution_id for claim in await claimed(store, limit=9)] == [second.id]
    (run,) = (await store.runs(Filters(execution_id=first.id))).items
    assert run.result is not None
    assert (run.status, run.result.fault) == ("error", "system")
    assert run.result.reason.startswith("What was stored for this run cannot be read: ")
    assert says in run.result.reason


async def test_a_worker_may_keep_to_one_execution(store: SqlStore) -> None:
    await queued(store, 3)
    mine = await queued(store, 2)
    found = await store.claim("w", 10, 60, execution_id=mine.id)
    assert {one.run.execution_id for one in found} == {mine.id}
    assert len(found) == 2


async def test_an_expired_lease_returns_the_run_with_its_partial_transcript_kept(store: SqlStore) -> None:
    execution = await queued(store)
    (lost,) = await claimed(store, "w1", lease=0.05)
    await store.append_turn(lost.lease, turn(1, "half a conversation"))
    await asyncio.sleep(0.1)
    (again,) = await claimed(store, "w2")
    assert again.lease == Lease(lost.lease.run_id, 2, "w2")
    assert again.run.turn_count == 0
    for write in (store.append_turn(lost.lease, turn(2)), store.finish(lost.lease, ending())):
        with pytest.raises(LeaseLost, match="attempt 2"):
            await write
    await store.finish(again.lease, ending("fail"))
    assert (await store.run(lost.lease.run_id)).messages == []
    old = await store.run(lost.lease.run_id, attempt=1)
    assert [message.text for message in old.messages] == ["Book a table", "half a conversation"]
    assert (await store.execution(execution.id)).counts.failed == 1


async def test_a_heartbeat_keeps_a_lease_and_tells_what_was_lost(store: SqlStore) -> None:
    await queued(store, 3)
    one, two, three = [claim.lease for claim in await store.claim("w1", 3, 0.3)]
    await store.cancel(run_ids=[two.run_id])
    await store.finish(three, ending())
    for _ in range(4):
        await asyncio.sleep(0.15)
        beat = await store.heartbeat([one, two, three], 0.3)
    assert beat.held == {one.run_id}
    assert beat.cancelled == {two.run_id}
    assert beat.lost == {three.run_id}
    assert await claimed(store, "w2") == []
    await asyncio.sleep(0.4)
    assert (await claimed(store, "w1"))[0].lease.attempt == 2
    assert (await store.heartbeat([one], 1)).lost == {one.run_id}
    assert (await store.heartbeat([], 1)).held == frozenset()


async def test_a_run_is_finished_exactly_once(opener: Opener) -> None:
    stores = [await opener(), await opener()]
    execution = await queued(stores[0])
    (mine,) = await claimed(stores[0])
    tries = await asyncio.gather(
        *(stores[n % 2].finish(mine.lease, ending("fail" if n % 2 else "pass")) for n in range(8)),
        return_exceptions=True,
    )
    assert sum(one is None for one in tries) == 1
    assert all(isinstance(one, LeaseLost) for one in tries if one is not None)
    counts = (await stores[0].execution(execution.id)).counts
    assert counts.passed + counts.failed == 1
    with pytest.raises(LeaseLost, match="already finished"):
        await stores[0].append_turn(mine.lease, turn(9))


async def test_a_stranger_cannot_write_to_a_run(store: SqlStore) -> None:
    await queued(store)
    (mine,) = await claimed(store)
    for lease in (
        Lease(mine.lease.run_id, 1, "other"),
        Lease(mine.lease.run_id, 2, "w1"),
        Lease("nope", 1, "w1"),
    ):
        with pytest.raises(LeaseLost):
            await store.append_turn(lease, turn())
        with pytest.raises(LeaseLost):
            await store.finish(lease, ending())
    await store.finish(mine.lease, ending())


async def test_the_same_turn_twice_is_refused_and_harms_no_neighbour(store: SqlStore) -> None:
    await queued(store, 2)
    one, two = [claim.lease for claim in await claimed(store, limit=2)]
    await store.append_turn(one, turn(1, "first"))
    again, other = await asyncio.gather(
        store.append_turn(one, turn(1, "second")), store.append_turn(two, turn(1)), return_exceptions=True
    )
    assert isinstance(again, StorageError)
    assert other is None
    assert (await store.run(one.run_id)).messages[1].text == "first"
    assert len((await store.run(two.run_id)).messages) == 2


async def test_released_runs_wait_again_and_start_afresh(store: SqlStore) -> None:
    execution = await queued(store, 2)
    leases = [claim.lease for claim in await claimed(store, limit=2)]
    await store.append_turn(leases[0], turn())
    await store.release([*leases, Lease("nope", 1, "w1"), Lease(leases[0].run_id, 7, "w1")])
    await store.release([])
    found = await store.execution(execution.id)
    assert (found.counts.queued, found.counts.running, found.status) == (2, 0, "queued")
    assert [claim.lease.attempt for claim in await claimed(store, "w2", 2)] == [2, 2]


async def test_a_dead_workers_runs_can_be_taken_back_at_once(store: SqlStore) -> None:
    await queued(store, 3)
    await claimed(store, "dead", 2)
    await claimed(store, "alive", 1)
    assert sorted(await store.workers()) == ["alive", "dead"]
    assert await store.abandon(["dead"]) == 2
    assert await store.abandon([]) == 0
    assert await store.workers() == ["alive"]


async def test_a_run_that_loses_every_worker_ends_as_a_system_error(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MOST_LOSSES", 3)
    execution = await queued(store)
    for number in range(3):
        (mine,) = await claimed(store, f"w{number}")
        await store.abandon([f"w{number}"])
    run = await store.run(mine.lease.run_id)
    assert run.result is not None
    assert (run.status, run.result.fault) == ("error", "system")
    assert "after 3 attempts" in run.result.reason
    assert (await store.execution(execution.id)).status == "completed"


async def test_cancelling_ends_what_waits_and_what_runs_without_an_outcome(store: SqlStore) -> None:
    execution = await queued(store, 4)
    done, running = await claimed(store, limit=2)
    await store.finish(done.lease, ending())
    assert await store.cancel(execution_id=execution.id) == 3
    found = await store.execution(execution.id)
    assert (found.status, found.counts.cancelled, found.counts.passed) == ("cancelled", 3, 1)
    with pytest.raises(LeaseLost, match="cancelled"):
        await store.finish(running.lease, ending())
    run = await store.run(running.lease.run_id)
    assert (run.status, run.result) == ("cancelled", None)
    assert await store.cancel(execution_id=execution.id) == 0
    assert await claimed(store, limit=9) == []
    assert await store.retry(execution_id=execution.id) == 0


async def test_one_cancelled_run_does_not_cancel_the_execution(store: SqlStore) -> None:
    execution = await queued(store, 2)
    one, two = await claimed(store, limit=2)
    await store.cancel(run_ids=[one.lease.run_id, "nope"])
    await store.finish(two.lease, ending())
    assert (await store.execution(execution.id)).status == "completed"


async def test_retrying_takes_errored_runs_only_under_a_new_attempt(store: SqlStore) -> None:
    execution = await queued(store, 3)
    passed, failed, errored = await claimed(store, limit=3)
    await store.finish(passed.lease, ending())
    await store.finish(failed.lease, ending("fail"))
    await store.append_turn(errored.lease, turn())
    await store.finish(errored.lease, ending("error", error="the agent gave up"))
    before = await store.execution(execution.id)
    assert (before.status, before.counts.errored) == ("completed", 1)
    assert await store.retry(run_ids=[passed.lease.run_id, failed.lease.run_id]) == 0
    assert await store.retry(execution_id=execution.id) == 1
    during = await store.execution(execution.id)
    assert (during.status, during.counts.errored, during.counts.queued) == ("running", 0, 1)
    assert during.completed_at is None
    waiting = await store.run(errored.lease.run_id)
    assert (waiting.status, waiting.result, waiting.error, waiting.attempt) == ("queued", None, None, 2)
    (again,) = await claimed(store, limit=9)
    await store.finish(again.lease, ending())
    after = await store.execution(execution.id)
    assert (after.status, after.counts.passed, after.counts.errored) == ("completed", 2, 0)
    old = await store.run(errored.lease.run_id, attempt=1)
    assert old.result is not None
    assert old.result.outcome == "error"
    assert len(old.messages) == 2


async def test_an_execution_without_runs_is_complete_at_once(store: SqlStore) -> None:
    execution = await queued(store, 0)
    assert (execution.status, execution.counts.total) == ("completed", 0)


async def test_a_run_with_nothing_to_hold_is_counted_apart(store: SqlStore) -> None:
    execution = await queued(store)
    (mine,) = await claimed(store)
    await store.finish(mine.lease, ending("unasserted"))
    counts = (await store.execution(execution.id)).counts
    assert (counts.passed, counts.unasserted, counts.standing) == (0, 1, "unasserted")
    await store.delete_runs([mine.lease.run_id])
    assert (await store.execution(execution.id)).counts.unasserted == 0


async def test_steering_must_name_something_that_exists(store: SqlStore) -> None:
    for call in (store.cancel, store.retry):
        with pytest.raises(NotFound):
            await call(execution_id="nope")
        with pytest.raises(ValueError, match="one of the two"):
            await call()
        assert await call(run_ids=["nope", "\x00"]) == 0


async def test_what_agents_say_is_kept_whatever_it_is(store: SqlStore) -> None:
    deep: object = "end"
    for _ in range(300):
        deep = [deep]
    said = [
        Message.model_validate(
            {"role": "assistant", "content": "a\x00b \ud83d half", "odd": {"n": float("nan")}}
        ),
        Message.model_validate({"role": "tool", "content": None, "tool_call_id": "x", "big": 10**30}),
        Message(role="assistant", content="é" * 300_000),
        Message.model_validate(
            {"role": "assistant", "content": [{"type": "text", "text": ""}], "deep": deep}
        ),
    ]
    await queued(store)
    (mine,) = await claimed(store)
    await store.append_turn(mine.lease, Turn(number=1, messages=said))
    await store.append_turn(mine.lease, Turn(number=2, messages=[]))
    await store.finish(
        mine.lease, ending(output={"f": lambda: 1, "s": {1: "x"}, "t": (1, {2})}, error="\x00!")
    )
    run = await store.run(mine.lease.run_id)
    assert run.messages[0].text == "a\x00b \ufffd half"
    assert run.messages[1].model_extra == {"big": str(10**30)}
    assert len(run.messages[2].text) == 300_000
    assert run.output == {"s": {"1": "x"}, "t": [1, [2]]}
    assert run.error == "\ufffd!"


async def test_why_a_usage_is_missing_is_kept_with_its_turn(store: SqlStore) -> None:
    await queued(store)
    (mine,) = await claimed(store)
    silent = turn().model_copy(update={"tokens_usage": None, "usage_missing": "it is negative"})
    await store.append_turn(mine.lease, turn(1))
    await store.append_turn(mine.lease, silent.model_copy(update={"number": 2}))
    run = await store.run(mine.lease.run_id)
    assert [one.usage_missing for one in run.turns if one.number] == [None, "it is negative"]
    assert "usageMissing" not in turn(1).to_json()
    assert silent.to_json()["usageMissing"] == "it is negative"


async def test_messages_that_an_earlier_version_kept_unread_are_read_now_or_shown_as_they_are(
    store: SqlStore,
) -> None:
    calling = [{"type": "tool_use", "id": "t", "name": "refund", "input": {}}]
    broken = [{"type": "tool_use", "input": {}}]
    nameless = [{"id": "", "type": "function", "function": {"name": "", "arguments": "{}"}}]
    kept = [Message.unread({"role": "assistant", "content": content}) for content in (calling, broken)]
    kept.append(Message.unread({"role": "assistant", "tool_calls": nameless}))
    await queued(store)
    (mine,) = await claimed(store)
    await store.append_turn(
        mine.lease, Turn.model_construct(number=1, messages=kept, results=[], user_message=None)
    )
    run = await store.run(mine.lease.run_id)
    assert [call.name for call in tool_calls_of(run.messages)] == ["refund", ""]
    assert run.messages[1].to_json() == {"role": "assistant", "content": broken}


async def test_snapshots_are_kept_once_and_never_change(store: SqlStore) -> None:
    first, second = Snapshot.of({"b": 1, "a": {"x": [1, 2]}}), Snapshot.of({"a": {"x": [1, 2]}, "b": 1})
    assert first == second
    assert Snapshot.of({"a": {"x": [2, 1]}, "b": 1}).hash != first.hash
    await queued(store, scenario=first)
    await queued(store, scenario=second)
    for claim in await claimed(store, limit=2):
        assert (await store.snapshots(claim.lease.run_id))["scenario"] == {"a": {"x": [1, 2]}, "b": 1}
    with pytest.raises(NotFound):
        await store.snapshots("nope")


async def test_an_execution_started_twice_with_one_key_is_started_once(store: SqlStore) -> None:
    once = IdempotencyKey("start", "same")
    tries = await asyncio.gather(*(store.enqueue(Execution(), [new_run()], once=once) for _ in range(4)))
    assert len({one.id for one in tries}) == 1
    assert len((await store.runs()).items) == 1


async def test_new_work_wakes_a_waiting_worker_of_this_process(store: SqlStore) -> None:
    assert await store.claim("w1", 5, 60) == []
    waiting = asyncio.create_task(store.wait_for_work("w1", 20))
    await asyncio.sleep(0.05)
    start = asyncio.get_running_loop().time()
    await queued(store)
    assert await waiting
    assert asyncio.get_running_loop().time() - start < 1
    assert len(await store.claim("w1", 5, 60)) == 1
    # A server may tell a process of its own work as well; then it is quiet.
    while await store.wait_for_work("w1", 0.05):
        assert await store.claim("w1", 5, 60) == []


async def test_work_that_came_between_claiming_and_waiting_is_not_missed(store: SqlStore) -> None:
    await store.claim("w1", 5, 60)
    await queued(store)
    assert await store.wait_for_work("w1", 0)


async def test_new_work_wakes_workers_of_other_processes(opener: Opener) -> None:
    mine, other = await opener(), await opener()
    await mine.claim("w1", 5, 60)
    await mine.wait_for_work("w1", 0.5)
    await mine.claim("w1", 5, 60)
    waiting = asyncio.create_task(mine.wait_for_work("w1", 20))
    await asyncio.sleep(0.05)
    start = asyncio.get_running_loop().time()
    await queued(other)
    assert await waiting
    assert asyncio.get_running_loop().time() - start < 2
    assert len(await mine.claim("w1", 5, 60)) == 1


async def test_what_was_claimed_for_somebody_who_left_waits_again(store: SqlStore) -> None:
    execution = await queued(store, 5)
    for pause in (0, 0.001, 0.003, 0.01):
        claiming = asyncio.create_task(store.claim("w1", 5, 60))
        await asyncio.sleep(pause)
        claiming.cancel()
        found = await asyncio.gather(claiming, return_exceptions=True)
        if isinstance(found[0], list):
            await store.release([claim.lease for claim in found[0]])
    assert (await store.execution(execution.id)).counts.queued == 5
    assert len(await claimed(store, "w2", 9)) == 5


async def test_an_interrupted_attempt_says_why_and_one_that_never_was_is_refused(store: SqlStore) -> None:
    await queued(store)
    (mine,) = await claimed(store, "w1")
    await store.append_turn(mine.lease, turn())
    await store.abandon(["w1"])
    first = await store.run(mine.lease.run_id, attempt=1)
    assert first.result is not None
    assert (first.status, first.attempt, first.result.outcome, first.result.fault) == (
        "error",
        1,
        "error",
        "system",
    )
    assert "Interrupted: its worker was lost" in first.result.reason
    assert len(first.messages) == 2
    now = await store.run(mine.lease.run_id)
    assert (now.status, now.attempt, now.result) == ("queued", 2, None)
    for number in (0, 3, -1):
        with pytest.raises(NotFound, match=f'no attempt "{number} of run'):
            await store.run(mine.lease.run_id, attempt=number)
