"""Leases to the millisecond, who may touch what, and every field that claiming, losing and ending write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.support.stored_runs import claimed, ending, new_run, queued, turn

from evalstudio.evaluators.results import Turn
from evalstudio.messages import TokensUsage
from evalstudio.project.entities import Execution
from evalstudio.project.requirements import Budget, Requirement
from evalstudio.storage import attempts, queue
from evalstudio.storage.contract import Filters, Heartbeat, Lease, NewRun, RunEnding, Snapshot
from evalstudio.storage.errors import LeaseLost, StorageError
from evalstudio.storage.schema import executions, outputs, runs, turns
from evalstudio.storage.store import SqlStore
from evalstudio.storage.transaction import Transaction

SLACK = 3000


async def row_of(store: SqlStore, run_id: str) -> Any:
    """The row of a run, with the columns no list shows."""
    return await store.database.read(
        lambda unit: unit.connection.execute(select(runs).where(runs.c.id == run_id)).one()
    )


async def once_more(store: SqlStore, operation: Callable[[Transaction], Any]) -> Any:
    """Run an operation as it is run again after a lost connection: it may have happened already."""

    def again(unit: Transaction) -> Any:
        unit.again = True
        return operation(unit)

    return await store.database.write(again)


async def let_expire(store: SqlStore, *run_ids: str) -> None:
    """As if the time of these leases were over."""
    await store.database.write(
        lambda unit: (
            unit.connection.execute(update(runs).where(runs.c.id.in_(run_ids)).values(lease_until=1)).rowcount
        )
    )


def now() -> int:
    return time.time_ns() // 1_000_000


def lease_clock(store: SqlStore) -> int:
    """Leases on one machine are measured by a clock that cannot be set."""
    return time.monotonic_ns() // 1_000_000 if store.database.on_one_machine else now()


class TestClaiming:
    async def test_the_lease_ends_when_it_was_asked_to(self, store: SqlStore) -> None:
        await queued(store)
        before, clock = now(), lease_clock(store)
        (mine,) = await claimed(store, "w1", lease=20_000.5)
        row = await row_of(store, mine.lease.run_id)
        assert clock + 20_000_500 - SLACK <= row.lease_until <= lease_clock(store) + 20_000_500 + SLACK
        assert (row.status, row.worker_id, row.attempt, row.losses) == ("running", "w1", 1, 0)
        assert before <= row.started <= now()
        assert before <= row.updated <= now()

    async def test_a_claim_says_so_in_the_events(self, store: SqlStore) -> None:
        execution = await queued(store)
        (mine,) = await claimed(store)
        event = next(one for one in await store.events() if one.kind == "run.started")
        assert (event.execution_id, event.run_id) == (execution.id, mine.lease.run_id)
        assert event.body == {"attempt": 1}
        counts = (await store.execution(execution.id)).counts
        assert (counts.queued, counts.running) == (0, 1)

    async def test_what_waits_longest_is_taken_first_whatever_its_id(self, store: SqlStore) -> None:
        late, early = new_run(1, id="a"), new_run(2, id="z")
        await store.enqueue(Execution(), [early])
        await asyncio.sleep(0.01)
        await store.enqueue(Execution(), [late])
        assert [one.lease.run_id for one in await claimed(store, limit=2)] == ["z", "a"]

    async def test_what_is_claimed_together_comes_in_the_order_it_waited(self, store: SqlStore) -> None:
        names = [f"r{number}" for number in (3, 1, 2)]
        for name in names:
            await store.enqueue(Execution(), [new_run(id=name)])
            await asyncio.sleep(0.005)
        assert [one.lease.run_id for one in await claimed(store, limit=3)] == names

    async def test_a_run_without_a_persona_and_a_case_is_claimed_without(self, store: SqlStore) -> None:
        bare = new_run(persona=None, persona_id=None, persona_name=None, case=None)
        await store.enqueue(Execution(), [bare])
        (mine,) = await claimed(store)
        assert (mine.persona, mine.case) == (None, None)

    async def test_nothing_is_claimed_beyond_the_room_of_a_connector(self, store: SqlStore) -> None:
        runs_of = {"slow": 4, "fast": 4}
        new = [new_run(n, connector_id=name) for name, count in runs_of.items() for n in range(count)]
        await store.enqueue(Execution(), new)
        first = await store.claim("w", 3, 60, per_connector=2)
        assert [one.run.connector_id for one in first] == ["slow", "slow", "fast"]
        second = await store.claim("other", 9, 60, per_connector=3)
        assert sorted(str(one.run.connector_id) for one in second) == ["fast", "fast", "slow"]
        await store.finish(first[0].lease, ending())
        third = await store.claim("w", 9, 60, per_connector=3)
        assert [one.run.connector_id for one in third] == ["slow"]

    async def test_places_that_a_full_connector_leaves_go_to_others_once_each(self, store: SqlStore) -> None:
        names = ("slow", "slow", "slow", "fast", "fast", "fast", "fast")
        await store.enqueue(
            Execution(), [new_run(number, connector_id=name) for number, name in enumerate(names)]
        )
        first = await store.claim("w", 4, 60, per_connector=3)
        assert [one.run.repetition for one in first] == [0, 1, 2, 3]
        assert [one.run.repetition for one in await store.claim("v", 4, 60, per_connector=3)] == [4, 5]

    async def test_claiming_takes_back_what_expired(self, store: SqlStore) -> None:
        await queued(store, 2)
        lost, other = await claimed(store, "w1", 2)
        await let_expire(store, lost.lease.run_id)
        again = await claimed(store, "w2", 2)
        assert [one.lease for one in again] == [Lease(lost.lease.run_id, 2, "w2")]
        assert (await row_of(store, other.lease.run_id)).worker_id == "w1"

    async def test_work_is_what_waits_and_what_expired(self, store: SqlStore) -> None:
        assert not await store.database.read(queue.has_work)
        await queued(store)
        assert await store.database.read(queue.has_work)
        (mine,) = await claimed(store)
        assert not await store.database.read(queue.has_work)
        await let_expire(store, mine.lease.run_id)
        assert await store.database.read(queue.has_work)
        (again,) = await claimed(store)
        await store.finish(again.lease, ending())
        assert not await store.database.read(queue.has_work)


class TestHeartbeats:
    async def test_a_heartbeat_sets_the_end_anew(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store, lease=1)
        before = lease_clock(store)
        await store.heartbeat([mine.lease], 40_000.5)
        row = await row_of(store, mine.lease.run_id)
        assert before + 40_000_500 - SLACK <= row.lease_until <= lease_clock(store) + 40_000_500 + SLACK

    @pytest.mark.parametrize("step", [-86_400, -40, 40, 86_400])
    async def test_a_clock_that_is_set_ends_no_lease(
        self, store: SqlStore, monkeypatch: pytest.MonkeyPatch, step: int
    ) -> None:
        await queued(store)
        (mine,) = await claimed(store, lease=30)
        true_time = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: true_time() + step * 1_000_000_000)
        assert await claimed(store, "w2") == []
        await store.finish(mine.lease, ending())

    async def test_a_lease_from_before_the_machine_was_started_anew_is_over(self, store: SqlStore) -> None:
        if not store.database.on_one_machine:
            return
        await queued(store)
        (mine,) = await claimed(store, "w1")
        long_ago = update(runs).values(lease_until=lease_clock(store) + 10 * 86_400_000)
        await store.database.write(lambda unit: unit.connection.execute(long_ago).rowcount)
        (again,) = await claimed(store, "w2")
        assert (again.lease.run_id, again.lease.attempt) == (mine.lease.run_id, 2)

    async def test_a_lease_is_over_after_its_last_millisecond_or_beyond_a_day(
        self, store: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not store.database.on_one_machine:
            return
        await queued(store)
        await claimed(store)
        clock, day = 100 * 86_400_000, 86_400_000
        monkeypatch.setattr("evalstudio.storage.transaction.steady_ms", lambda: clock)
        for left, is_over in ((-1, True), (0, False), (day, False), (day + 1, True)):
            lease = update(runs).values(lease_until=clock + left)
            await store.database.write(lambda unit, lease=lease: unit.connection.execute(lease).rowcount)
            assert await store.database.read(queue.has_work) is is_over, left

    async def test_a_heartbeat_does_not_extend_the_lease_of_another_worker(self, store: SqlStore) -> None:
        await queued(store, 2)
        (mine,) = await claimed(store, "w1", lease=60)
        (other,) = await claimed(store, "w2", lease=60)
        until = (await row_of(store, other.lease.run_id)).lease_until
        foreign = Lease(other.lease.run_id, 1, "w1")
        beat = await store.heartbeat([mine.lease, Lease(other.lease.run_id, 1, "w3")], 600)
        assert beat == Heartbeat(frozenset({mine.lease.run_id}), frozenset(), frozenset({other.lease.run_id}))
        assert (await store.heartbeat([foreign], 600)).lost == {other.lease.run_id}
        assert (await row_of(store, other.lease.run_id)).lease_until == until

    async def test_a_heartbeat_touches_only_the_runs_it_names(self, store: SqlStore) -> None:
        await queued(store, 2)
        one, two = await claimed(store, "w1", 2, lease=60)
        until = (await row_of(store, two.lease.run_id)).lease_until
        await store.heartbeat([one.lease], 600)
        assert (await row_of(store, two.lease.run_id)).lease_until == until

    async def test_an_earlier_attempt_is_lost_even_to_the_same_worker(self, store: SqlStore) -> None:
        await queued(store)
        (old,) = await claimed(store, "w1")
        await store.release([old.lease])
        (new,) = await claimed(store, "w1")
        beat = await store.heartbeat([old.lease], 60)
        assert (beat.held, beat.lost) == (frozenset(), {old.lease.run_id})
        assert (await store.heartbeat([new.lease], 60)).held == {new.lease.run_id}

    async def test_a_run_cancelled_under_another_worker_is_lost_not_cancelled(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store, "w1")
        await store.cancel(run_ids=[mine.lease.run_id])
        beat = await store.heartbeat([Lease(mine.lease.run_id, 1, "w2")], 60)
        assert (beat.cancelled, beat.lost) == (frozenset(), {mine.lease.run_id})
        assert (await store.heartbeat([mine.lease], 60)).cancelled == {mine.lease.run_id}

    async def test_a_finished_run_gets_no_lease_again(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        await store.finish(mine.lease, ending())
        assert (await store.heartbeat([mine.lease], 60)).lost == {mine.lease.run_id}
        assert (await row_of(store, mine.lease.run_id)).lease_until is None

    async def test_without_leases_there_is_nothing_to_say(self, store: SqlStore) -> None:
        empty: frozenset[str] = frozenset()
        assert await store.heartbeat([], 60) == Heartbeat(empty, empty, empty)


class TestGivingBack:
    async def test_a_run_that_comes_back_starts_afresh(self, store: SqlStore) -> None:
        execution = await queued(store)
        (mine,) = await claimed(store)
        before = now()
        await store.release([mine.lease])
        row = await row_of(store, mine.lease.run_id)
        assert (row.status, row.attempt, row.worker_id, row.lease_until, row.started) == (
            "queued",
            2,
            None,
            None,
            None,
        )
        assert before <= row.queued <= now()
        assert before <= row.updated <= now()
        event = next(one for one in await store.events() if one.kind == "run.queued")
        assert (event.execution_id, event.run_id) == (execution.id, row.id)
        assert event.body == {"attempt": 2, "reason": "its worker stopped"}
        counts = (await store.execution(execution.id)).counts
        assert (counts.queued, counts.running) == (1, 0)

    async def test_what_comes_back_waits_behind_the_others(self, store: SqlStore) -> None:
        await queued(store, 2)
        (first,) = await claimed(store)
        await asyncio.sleep(0.01)
        await store.release([first.lease])
        assert [one.run.repetition for one in await claimed(store, "w2", 2)] == [2, 1]

    async def test_a_release_is_no_loss(self, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queue, "MOST_LOSSES", 2)
        await queued(store)
        for _ in range(5):
            (mine,) = await claimed(store)
            await store.release([mine.lease])
        row = await row_of(store, mine.lease.run_id)
        assert (row.status, row.attempt, row.losses) == ("queued", 6, 0)

    async def test_even_a_run_on_its_last_life_may_be_released(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        await store.database.write(
            lambda unit: unit.connection.execute(update(runs).values(losses=queue.MOST_LOSSES)).rowcount
        )
        await store.release([mine.lease])
        assert (await row_of(store, mine.lease.run_id)).status == "queued"

    async def test_only_the_holder_of_the_very_lease_can_release(self, store: SqlStore) -> None:
        await queued(store, 2)
        one, two = await claimed(store, "w1", 2)
        for lease in (
            Lease(one.lease.run_id, 1, "w2"),
            Lease(one.lease.run_id, 2, "w1"),
            Lease("x", 1, "w1"),
        ):
            await store.release([lease])
        assert {(await row_of(store, claim.lease.run_id)).status for claim in (one, two)} == {"running"}
        await store.finish(one.lease, ending())
        await store.release([one.lease])
        assert (await row_of(store, one.lease.run_id)).status == "completed"

    async def test_releasing_wakes_those_who_wait(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        await store.claim("w2", 1, 60)
        waiting = asyncio.create_task(store.wait_for_work("w2", 20))
        await asyncio.sleep(0.05)
        await store.release([mine.lease])
        assert await asyncio.wait_for(waiting, 5)

    async def test_what_comes_back_is_new_work(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)

        def is_new_work(unit: Transaction) -> bool:
            queue.release(unit, [mine.lease])
            return unit.new_work

        assert await store.database.write(is_new_work) is True

    async def test_an_abandoned_run_counts_a_loss_and_says_why(self, store: SqlStore) -> None:
        await queued(store, 3)
        mine, _ = await claimed(store, "dead", 2)
        await claimed(store, "alive")
        assert await store.abandon(["dead", "nobody"]) == 2
        row = await row_of(store, mine.lease.run_id)
        assert (row.status, row.losses) == ("queued", 1)
        (event, _) = [one for one in await store.events() if one.kind == "run.queued"]
        assert event.body == {"attempt": 2, "reason": "its worker was lost"}

    async def test_an_expired_lease_counts_a_loss_and_says_why(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        await let_expire(store, mine.lease.run_id)
        await claimed(store, "w2")
        assert (await row_of(store, mine.lease.run_id)).losses == 1
        event = next(one for one in await store.events() if one.kind == "run.queued")
        assert event.body["reason"] == "its worker was lost"

    async def test_the_tenth_loss_ends_a_run_and_the_ninth_does_not(self, store: SqlStore) -> None:
        execution = await queued(store, 2)
        one, two = await claimed(store, "w1", 2)
        for claim, losses in ((one, 8), (two, 9)):
            await store.database.write(
                lambda unit, run_id=claim.lease.run_id, losses=losses: (
                    unit.connection.execute(
                        update(runs).where(runs.c.id == run_id).values(losses=losses)
                    ).rowcount
                )
            )
        assert await store.abandon(["w1"]) == 2
        row = await row_of(store, one.lease.run_id)
        assert (row.status, row.losses) == ("queued", 9)
        run = await store.run(two.lease.run_id)
        assert run.result is not None
        assert (run.status, run.result.outcome, run.result.fault) == ("error", "error", "system")
        assert not run.result.success
        assert run.error == run.result.reason
        assert "after 10 attempts" in run.result.reason
        counts = (await store.execution(execution.id)).counts
        assert (counts.errored, counts.queued, counts.running) == (1, 1, 0)

    async def test_more_than_a_batch_comes_back_too(
        self, store: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue, "_BATCH", 3)
        await queued(store, 7)
        leases = [claim.lease for claim in await claimed(store, "w1", 7)]
        assert await store.database.write(lambda unit: queue.abandon(unit, ["w1"])) == 3
        await store.release(leases)
        assert await store.workers() == []

    async def test_each_worker_is_named_once(self, store: SqlStore) -> None:
        await queued(store, 4)
        await claimed(store, "w1", 2)
        (done,) = await claimed(store, "w2")
        await store.finish(done.lease, ending())
        assert await store.workers() == ["w1"]


class TestQueueing:
    async def test_a_row_begins_with_everything_the_run_brings(self, store: SqlStore) -> None:
        before = now()
        execution = Execution(eval_id="e1", eval_name="Nightly", trigger="ci", labels={"branch": "main"})
        new = new_run(2, scenario_name="BOOKING", case={"name": "Zürich", "vars": {}})
        kept = await store.enqueue(execution, [new])
        row = await row_of(store, new.id)
        assert {name: getattr(row, name) for name in ("execution_id", "status", "attempt", "losses")} == {
            "execution_id": execution.id,
            "status": "queued",
            "attempt": 1,
            "losses": 0,
        }
        for column in ("queued", "created", "updated"):
            assert before <= getattr(row, column) <= now(), column
        assert (row.eval_id, row.scenario_id, row.persona_id, row.connector_id) == ("e1", "s1", "p1", "c1")
        assert (row.scenario_name, row.persona_name, row.connector_name) == ("BOOKING", "Ada", "Agent")
        assert (row.case_name, row.repetition, row.turn_count) == ("Zürich", 2, 0)
        assert row.case == {"name": "Zürich", "vars": {}}
        assert row.scenario_snapshot == new.scenario.hash
        assert new.persona is not None
        assert (row.persona_snapshot, row.connector_snapshot) == (new.persona.hash, new.connector.hash)
        assert (kept.eval_id, kept.eval_name, kept.trigger, kept.labels) == (
            "e1",
            "Nightly",
            "ci",
            {"branch": "main"},
        )
        assert (kept.status, kept.completed_at, kept.started_at) == ("queued", None, None)

    async def test_an_execution_begins_with_everything_it_was_started_with(self, store: SqlStore) -> None:
        execution = Execution(
            partial="only",
            replayed=True,
            source="rescored",
            rescored_from="earlier",
            requirements=[Requirement(pass_rate=0.9, confidence=0.95)],
            budget=Budget(max_tokens=700),
            until_decided=8,
            agent_errors="fail",
        )
        environment, new = Snapshot.of({"version": "1.2"}), new_run()
        kept = await store.enqueue(execution, [new], environment=environment)
        for name in execution.model_fields_set:
            assert getattr(kept, name) == getattr(execution, name), name
        row = await store.database.read(lambda unit: unit.connection.execute(select(executions)).one())
        assert (row.requirements, row.budget) == (
            [{"passRate": 0.9, "confidence": 0.95}],
            {"maxTokens": 700},
        )
        assert await store.environment_of(execution.id) == {"version": "1.2"}
        assert (await claimed(store))[0].scenario == {"name": "Booking", "script": ["Book a table"]}
        assert (await row_of(store, new.id)).case_hash == new.case_hash

    async def test_an_execution_without_more_has_none_of_it(self, store: SqlStore) -> None:
        kept = await store.enqueue(Execution(), [new_run(case=None)])
        assert (kept.partial, kept.replayed, kept.source, kept.rescored_from) == (None, False, "live", None)
        assert (kept.requirements, kept.budget, kept.until_decided) == ([], None, None)
        assert kept.agent_errors == "error"
        assert await store.environment_of(kept.id) is None

    async def test_runs_and_executions_are_found_by_their_names(self, store: SqlStore) -> None:
        execution = await queued(store, case={"name": "Straße", "vars": {}})
        for text in ("booking", "STRASSE", "booking strasse"):
            assert len((await store.runs(Filters(text=text))).items) == 1, text
        for text, count in (("nightly", 1), ("daily", 0)):
            assert len((await store.executions(Filters(text=text))).items) == count
        nameless = await store.enqueue(Execution(), [new_run(case={"vars": {}})])
        assert nameless.id != execution.id
        row = await store.database.read(
            lambda unit: unit.connection.execute(
                select(executions.c.name_key, runs.c.name_key.label("run_key"), runs.c.case_name)
                .where(runs.c.execution_id == executions.c.id)
                .where(executions.c.id == nameless.id)
            ).one()
        )
        assert row.name_key == ""
        assert (row.run_key.strip(), row.case_name) == ("booking", None)

    async def test_queueing_is_told_with_its_size_and_an_empty_one_is_over(self, store: SqlStore) -> None:
        execution = await queued(store, 3)
        empty = await queued(store, 0)
        kinds = {one.execution_id: (one.kind, one.body) for one in await store.events()}
        assert kinds[execution.id] == ("execution.queued", {"total": 3})
        assert kinds[empty.id] == ("execution.completed", {"total": 0})
        assert empty.completed_at is not None
        counts = empty.counts
        assert (counts.queued, counts.running, counts.passed, counts.cancelled) == (0, 0, 0, 0)

    async def test_only_an_execution_with_runs_is_new_work(self, store: SqlStore) -> None:
        def is_new_work(unit: Transaction, new: list[NewRun]) -> bool:
            queue.enqueue(unit, Execution(), new, None)
            return unit.new_work

        assert await store.database.write(lambda unit: is_new_work(unit, [])) is False
        assert await store.database.write(lambda unit: is_new_work(unit, [new_run()])) is True

    async def test_queueing_again_after_a_lost_connection_queues_once(self, store: SqlStore) -> None:
        execution, new = Execution(), [new_run()]
        await store.enqueue(execution, new)
        again = await once_more(store, lambda unit: queue.enqueue(unit, execution, new, None))
        assert again.id == execution.id
        assert len((await store.runs()).items) == 1
        with pytest.raises(StorageError):
            await store.enqueue(execution, new)
        other = Execution()
        await once_more(store, lambda unit: queue.enqueue(unit, other, [new_run()], None))
        assert (await store.execution(other.id)).counts.total == 1


class TestEndings:
    async def test_the_end_writes_every_figure_of_the_run(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        before = now()
        verdict = ending("fail").verdict.model_copy(update={"score": 0.25, "overall_score": 0.75})
        await store.finish(
            mine.lease, RunEnding(verdict, {"a": 1}, 20.5, TokensUsage(total_tokens=7), "t-1", "no")
        )
        row = await row_of(store, mine.lease.run_id)
        assert (row.status, row.outcome, row.fault) == ("completed", "fail", None)
        assert (row.score, row.overall_score) == (0.25, 0.75)
        assert (row.reason, row.error, row.thread_id) == ("it came to fail", "no", "t-1")
        assert (row.latency_ms, row.total_tokens, row.turn_count) == (20.5, 7, 0)
        assert row.lease_until is None
        assert before <= row.completed <= now()
        assert before <= row.updated <= now()

    async def test_the_end_is_told_with_its_figures(self, store: SqlStore) -> None:
        execution = await queued(store, 2)
        one, two = await claimed(store, limit=2)
        verdict = ending("error").verdict.model_copy(update={"reason": "x" * 501})
        await store.finish(one.lease, ending())
        await store.finish(two.lease, RunEnding(verdict))
        events = {e.run_id: e for e in await store.events() if e.kind == "run.finished"}
        assert {e.execution_id for e in events.values()} == {execution.id}
        assert events[one.lease.run_id].body == {
            "outcome": "pass",
            "fault": None,
            "score": 1.0,
            "reason": "it came to pass",
            "latencyMs": 20.5,
            "totalTokens": 7,
        }
        assert events[two.lease.run_id].body == {
            "outcome": "error",
            "fault": "agent",
            "score": None,
            "reason": "x" * 500,
            "latencyMs": None,
            "totalTokens": None,
        }

    @pytest.mark.parametrize(
        ("outcome", "count", "status"),
        [
            ("pass", "passed", "completed"),
            ("unasserted", "unasserted", "completed"),
            ("fail", "failed", "completed"),
            ("error", "errored", "error"),
        ],
    )
    async def test_each_outcome_has_its_count(
        self, store: SqlStore, outcome: str, count: str, status: str
    ) -> None:
        execution = await queued(store)
        (mine,) = await claimed(store)
        await store.finish(mine.lease, RunEnding(ending(outcome).verdict))
        counts = (await store.execution(execution.id)).counts
        assert getattr(counts, count) == 1
        assert counts.passed + counts.failed + counts.errored + counts.unasserted == 1
        run = await store.run(mine.lease.run_id)
        assert run.status == status
        assert run.result is not None
        assert run.result.outcome == outcome

    async def test_the_whole_verdict_is_kept_beside_the_output(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        done = ending("fail")
        await store.finish(mine.lease, done)
        row = await store.database.read(lambda unit: unit.connection.execute(select(outputs)).one())
        assert (row.run_id, row.attempt) == (mine.lease.run_id, 1)
        assert row.result == done.verdict.model_dump(by_alias=True)
        assert row.output == {"messageCount": 2}

    async def test_results_that_came_last_stand_beside_the_output(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        await store.append_turn(mine.lease, turn(1))
        late = turn(1).results[0]
        await store.finish(mine.lease, ending(final_results=[late]))
        row = await store.database.read(lambda unit: unit.connection.execute(select(outputs)).one())
        assert row.output == {"messageCount": 2, "finalResults": [late.to_json()]}

    async def test_the_turns_are_counted_by_the_last_whether_it_comes_along_or_not(
        self, store: SqlStore
    ) -> None:
        await queued(store, 3)
        with_last, without, empty = [claim.lease for claim in await claimed(store, limit=3)]
        for number in (1, 2, 3):
            await store.append_turn(without, turn(number))
        await store.append_turn(with_last, turn(1))
        await store.finish(with_last, ending(last_turn=turn(2)))
        await store.finish(without, ending())
        await store.finish(empty, ending())
        counts = [(await store.run(lease.run_id)).turn_count for lease in (with_last, without, empty)]
        assert counts == [2, 3, 0]

    async def test_turns_of_an_earlier_attempt_are_not_counted(self, store: SqlStore) -> None:
        await queued(store)
        (first,) = await claimed(store)
        await store.append_turn(first.lease, turn(1))
        await store.append_turn(first.lease, turn(2))
        await store.release([first.lease])
        (second,) = await claimed(store)
        await store.append_turn(second.lease, turn(1))
        await store.finish(second.lease, ending())
        assert (await store.run(second.lease.run_id)).turn_count == 1

    async def test_finishing_again_after_a_lost_connection_is_no_error(self, store: SqlStore) -> None:
        execution = await queued(store, 2)
        one, two = await claimed(store, limit=2)
        for lease, done in ((one.lease, ending()), (two.lease, ending("error"))):
            await store.finish(lease, done)
            await once_more(store, lambda unit, lease=lease, done=done: attempts.finish(unit, lease, done))
        counts = (await store.execution(execution.id)).counts
        assert (counts.passed, counts.errored) == (1, 1)

    async def test_but_it_is_when_it_was_not_this_worker_who_finished(self, store: SqlStore) -> None:
        await queued(store, 2)
        done, cancelled = await claimed(store, limit=2)
        await store.finish(done.lease, ending())
        await store.cancel(run_ids=[cancelled.lease.run_id])
        strangers = (
            Lease(done.lease.run_id, 1, "w2"),
            Lease(done.lease.run_id, 2, "w1"),
            cancelled.lease,
        )
        for lease in strangers:
            with pytest.raises(LeaseLost):
                await once_more(store, lambda unit, lease=lease: attempts.finish(unit, lease, ending()))


class TestTurns:
    async def test_a_turn_is_kept_with_all_it_had_and_told(self, store: SqlStore) -> None:
        execution = await queued(store)
        (mine,) = await claimed(store)
        record = turn(1)
        await store.append_turn(mine.lease, record)
        row = await store.database.read(lambda unit: unit.connection.execute(select(turns)).one())
        assert (row.run_id, row.attempt, row.turn) == (mine.lease.run_id, 1, 1)
        usage = record.tokens_usage
        assert usage is not None
        assert row.body == {
            "turn": 1,
            "messageCount": 2,
            "latencyMs": 20.5,
            "tokensUsage": usage.model_dump(),
            "evaluatorResults": [record.results[0].to_json()],
        }
        event = next(one for one in await store.events() if one.kind == "run.turn")
        assert (event.execution_id, event.run_id) == (execution.id, mine.lease.run_id)
        assert event.body == {"attempt": 1, "turn": 1}

    async def test_a_turn_without_tokens_has_none(self, store: SqlStore) -> None:
        await queued(store)
        (mine,) = await claimed(store)
        await store.append_turn(mine.lease, Turn(number=1))
        row = await store.database.read(lambda unit: unit.connection.execute(select(turns)).one())
        assert row.body["tokensUsage"] is None

    async def test_a_turn_again_after_a_lost_connection_is_kept_once(self, store: SqlStore) -> None:
        await queued(store, 2)
        one, two = await claimed(store, limit=2)
        for claim in (one, two):
            await store.append_turn(claim.lease, turn(1, "first"))
        await once_more(store, lambda unit: attempts.append_turn(unit, one.lease, turn(1, "second")))
        await once_more(store, lambda unit: attempts.append_turn(unit, one.lease, turn(2, "third")))
        texts = [message.text for message in (await store.run(one.lease.run_id)).messages]
        assert texts == ["Book a table", "first", "Book a table", "third"]

    async def test_a_turn_again_looks_at_this_run_and_this_attempt_only(self, store: SqlStore) -> None:
        await queued(store, 2)
        one, two = await claimed(store, limit=2)
        await store.append_turn(one.lease, turn(1))
        await once_more(store, lambda unit: attempts.append_turn(unit, two.lease, turn(1)))
        assert len((await store.run(two.lease.run_id)).messages) == 2
        await store.release([one.lease])
        (again,) = await claimed(store)
        await once_more(store, lambda unit: attempts.append_turn(unit, again.lease, turn(1)))
        assert len((await store.run(one.lease.run_id)).messages) == 2


class TestWhyALeaseWasLost:
    async def test_each_way_is_named(self, store: SqlStore) -> None:
        await queued(store, 5)
        claims = [claim.lease for claim in await claimed(store, limit=5)]
        cancelled, replaced, finished, errored, running = claims
        await store.cancel(run_ids=[cancelled.run_id])
        await store.finish(finished, ending())
        await store.finish(errored, ending("error"))
        await store.release([replaced])
        reasons = {
            cancelled: "it was cancelled",
            replaced: "the lease ran out and attempt 2 has taken its place",
            finished: "it is already finished",
            errored: "it is already finished",
            Lease(running.run_id, 1, "w2"): "another worker has it",
            Lease(replaced.run_id, 2, "w1"): "it is back in the queue",
            Lease("nope", 1, "w1"): "it was deleted",
        }
        for lease, reason in reasons.items():
            for write in (store.append_turn(lease, turn(1)), store.finish(lease, ending())):
                with pytest.raises(LeaseLost, match=reason):
                    await write
