"""Deleting and pruning."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select, update
from tests.support.stored_runs import claimed, ending, queued, turn

from evalstudio.storage import run_controls as retention
from evalstudio.storage import schema, transaction
from evalstudio.storage.errors import InUse, LeaseLost, NotFound
from evalstudio.storage.store import SqlStore
from evalstudio.storage.transaction import Transaction


async def rows(store: SqlStore) -> dict[str, int]:
    def count(unit: Transaction) -> dict[str, int]:
        tables = schema.metadata.tables.values()
        found = {
            t.name: unit.connection.execute(select(func.count()).select_from(t)).scalar_one() for t in tables
        }
        return {name: number for name, number in found.items() if number}

    return await store.database.read(count)


async def age(store: SqlStore) -> None:
    """Everything so far is a hundred days old."""
    old = transaction.now_ms() - 100 * 86_400_000

    def make_old(unit: Transaction) -> None:
        for table, column in (
            (schema.executions, "completed"),
            (schema.evaluations, "created"),
            (schema.events, "at"),
            (schema.snapshots, "used"),
            (schema.idempotency, "created"),
        ):
            changed = update(table).where(table.c[column].is_not(None)).values({column: old})
            unit.connection.execute(changed)

    await store.database.write(make_old)


async def finished(store: SqlStore, number: int) -> str:
    execution = await queued(store, number)
    for claim in await claimed(store, limit=number):
        await store.append_turn(claim.lease, turn())
        await store.finish(claim.lease, ending())
    return execution.id


async def test_a_deleted_execution_takes_everything_of_its_own_along(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    mine, other = await finished(store, 8), await finished(store, 2)
    run = (await store.runs()).items[-1]
    await store.add_feedback({"score": 1}, run_id=run.id)
    assert await store.delete_execution(mine) == 8
    with pytest.raises(NotFound):
        await store.execution(mine)
    with pytest.raises(NotFound):
        await store.delete_execution(mine)
    left = await rows(store)
    assert (left["runs"], left["messages"], left["turns"], left["outputs"]) == (2, 4, 2, 2)
    assert "feedback" not in left
    assert (await store.execution(other)).counts.passed == 2


async def test_deleting_an_execution_at_work_stops_its_workers(store: SqlStore) -> None:
    execution = await queued(store, 3)
    (mine,) = await claimed(store)
    await store.delete_execution(execution.id)
    with pytest.raises(LeaseLost, match="deleted"):
        await store.append_turn(mine.lease, turn())
    assert (await store.heartbeat([mine.lease], 5)).lost == {mine.lease.run_id}
    assert (await store.runs()).items == []


async def test_deleting_runs_puts_the_counts_right(store: SqlStore) -> None:
    execution = await queued(store, 4)
    passed, failed, running = await claimed(store, limit=3)
    await store.finish(passed.lease, ending())
    await store.finish(failed.lease, ending("fail"))
    with pytest.raises(InUse, match="Cancel it first"):
        await store.delete_runs([passed.lease.run_id, running.lease.run_id])
    assert await store.delete_runs([passed.lease.run_id, "nope"]) == 1
    await store.finish(running.lease, ending())
    waiting = next(run for run in (await store.runs()).items if run.status == "queued")
    assert await store.delete_runs([waiting.id]) == 1
    assert await store.delete_runs([]) == 0
    found = await store.execution(execution.id)
    assert (found.status, found.counts.total, found.counts.passed, found.counts.failed) == (
        "completed",
        2,
        1,
        1,
    )


async def test_pruning_deletes_what_is_old_and_nothing_else(store: SqlStore) -> None:
    await finished(store, 3)
    open_one = await queued(store, 1)
    await store.save_result({"outcome": "pass"})
    await age(store)
    recent = await finished(store, 1)
    await queued(store, 2)
    done = await store.prune(timedelta(days=90))
    assert (done.executions, done.runs, done.evaluations) == (1, 3, 1)
    assert done.events > 0
    assert (await store.execution(recent)).counts.total == 1
    assert (await store.execution(open_one.id)).counts.total == 1
    left = await rows(store)
    assert "evaluations" not in left
    assert left["snapshots"] == 3
    assert (await store.prune(timedelta(days=90))).runs == 0


async def test_pruning_goes_on_with_a_deletion_that_was_interrupted(store: SqlStore) -> None:
    mine = await finished(store, 3)
    await store.database.write(lambda unit: retention.hide_execution(unit, mine))
    assert (await store.executions()).items == []
    assert (await store.prune(timedelta(days=1))).runs == 3
    assert "executions" not in await rows(store)
    await age(store)
    await store.prune(timedelta(days=1))
    assert await rows(store) == {}
