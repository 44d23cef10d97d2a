"""Retention: by age, number and label, sparing baselines and what they rest on, and giving back the space."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from tests.support.stored_runs import claimed, ending, new_run, queued, turn

from evalstudio.project.entities import Execution
from evalstudio.storage import retention, schema, transaction
from evalstudio.storage.sqlite import SqliteDatabase
from evalstudio.storage.store import SqlStore
from evalstudio.storage.transaction import Transaction

DAY = 86_400_000


async def ended(store: SqlStore, days_ago: int, *, text: str = "Done.", **more: Any) -> str:
    """A finished execution of one run that ended so many days ago."""
    fields: dict[str, Any] = {"eval_id": "e1", "eval_name": "Nightly", "labels": {}}
    execution = await store.enqueue(Execution(**fields | more), [new_run()])
    (claim,) = await claimed(store)
    await store.append_turn(claim.lease, turn(text=text))
    await store.finish(claim.lease, ending())
    moment = transaction.now_ms() - days_ago * DAY
    change = update(schema.executions).where(schema.executions.c.id == execution.id)
    await store.database.write(lambda unit: unit.connection.execute(change.values(completed=moment)) and None)
    return execution.id


async def kept(store: SqlStore) -> set[str]:
    return {execution.id for execution in (await store.executions()).items}


async def test_age_and_number_both_limit_what_is_kept(store: SqlStore) -> None:
    _, middle, newest = [await ended(store, days) for days in (100, 20, 10)]
    assert (await store.retain(timedelta(days=90), None)).executions == 1
    assert await kept(store) == {middle, newest}
    done = await store.retain(timedelta(days=90), 1)
    assert (done.executions, done.runs) == (1, 1)
    assert await kept(store) == {newest}


async def test_without_an_age_recorded_evaluations_stay(store: SqlStore) -> None:
    await store.save_result({"outcome": "pass"})
    assert (await store.retain(None, 1)).evaluations == 0


async def test_labels_keep_by_value_or_by_key_and_do_not_count(store: SqlStore) -> None:
    release = await ended(store, 300, labels={"release": "2.0"})
    main = await ended(store, 200, labels={"branch": "main", "by": "CI"})
    await ended(store, 150, labels={"branch": "feature"})
    await ended(store, 140)
    newest = await ended(store, 1)
    done = await store.retain(timedelta(days=90), 1, ["release", "branch=main"])
    assert done.executions == 2
    assert await kept(store) == {release, main, newest}


async def test_baselines_and_what_they_were_scored_from_are_never_touched(store: SqlStore) -> None:
    original = await ended(store, 300)
    rescored = await ended(store, 200, rescored_from=original, source="rescored")
    await ended(store, 250)
    await store.set_baseline("e1", "main", rescored)
    for prune in (store.retain(timedelta(days=1), 1), store.prune(timedelta(days=1))):
        await prune
        assert await kept(store) == {original, rescored}


async def test_what_waits_or_runs_is_neither_deleted_nor_counted(store: SqlStore) -> None:
    newest = await ended(store, 1)
    waiting = (await queued(store, 1)).id
    assert (await store.retain(None, 1)).executions == 0
    assert await kept(store) == {newest, waiting}


async def test_what_a_monitor_reviewed_is_left_to_the_monitor(store: SqlStore) -> None:
    reviewed = await ended(store, 300)
    row = {"monitor_id": "m1", "conversation_key": "k", "conversation_id": "k", "revision": 1}
    row |= {"outcome": "pass", "reason": "", "execution_id": reviewed, "at": 1, "reviewed": 1}

    def note(unit: Transaction) -> None:
        unit.connection.execute(schema.monitored.insert().values(row))

    await store.database.write(note)
    await store.retain(timedelta(days=1), 1)
    assert await kept(store) == {reviewed}


async def test_who_is_labelled_meanwhile_stays(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = await ended(store, 300)
    # Listed as old, and labelled before its turn came.
    monkeypatch.setattr(retention, "surplus_executions", lambda *_: [execution])
    change = update(schema.executions).values(labels={"keep": "yes"})
    await store.database.write(lambda unit: unit.connection.execute(change) and None)
    assert (await store.retain(timedelta(days=1), None, ["keep"])).executions == 0
    assert await kept(store) == {execution}


async def test_the_space_goes_back_to_the_disk(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isinstance(store.database, SqliteDatabase):
        # PostgreSQL's own vacuum does it; there is nothing for us to do.
        assert await store.database.write(retention.give_back) == 0
        return
    monkeypatch.setattr(retention, "_PAGES_AT_ONCE", 50)
    for _ in range(5):
        await ended(store, 100, text="word " * 40_000)

    def pages(unit: Transaction) -> tuple[int, int]:
        numbers = [
            unit.connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("page_count", "freelist_count")
        ]
        return numbers[0], numbers[1]

    before, _ = await store.database.write(pages)
    await store.retain(timedelta(days=90), None)
    after, free = await store.database.write(pages)
    assert free == 0
    assert after < before / 2
