"""Lists and single runs stay quick however much is stored."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from tests.support.many_runs import multiply_runs
from tests.support.stored_runs import ending, new_run, queued, turn

from evalstudio.execution.home import JudgedExecutions, home_cards
from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import Execution
from evalstudio.storage import lists, sqlite
from evalstudio.storage.contract import Filters, cursor_after
from evalstudio.storage.opening import DEFAULT_PATH, open_store
from evalstudio.storage.store import SqlStore


async def fill(store: SqlStore, number: int) -> None:
    """So many runs: some executions of a thousand, a few of them worked on."""
    for start in range(0, number, 1000):
        execution = Execution(eval_id=f"e{start // 1000 % 7}", eval_name="Nightly")
        runs = [new_run(n, scenario_id=f"s{n % 50}", connector_id=f"c{n % 3}") for n in range(1000)]
        await store.enqueue(execution, runs)
    claims = await store.claim("w", 300, 600)
    for claim in claims:
        await store.append_turn(claim.lease, turn())
    await asyncio.gather(
        *(store.finish(c.lease, ending(("pass", "fail", "error")[n % 3])) for n, c in enumerate(claims))
    )


LISTS = {
    "all": Filters(),
    "scenario": Filters(scenario_id="s7"),
    "eval": Filters(eval_id="e1"),
    "connector": Filters(connector_id="c1"),
    "persona nobody has": Filters(persona_id="nobody"),
    "errors": Filters(outcome="error"),
    "text": Filters(text="case 77"),
}


async def milliseconds(call: Callable[[], Awaitable[object]]) -> float:
    await call()
    times: list[float] = []
    for _ in range(5):
        start = perf_counter()
        await call()
        times.append((perf_counter() - start) * 1000)
    return sorted(times)[2]


async def check_quick(store: SqlStore) -> None:
    first = (await store.runs(limit=1)).items[0]
    errored = (await store.runs(Filters(outcome="error"), limit=1)).items[0]
    assert errored.status == "error"
    filters = LISTS | {
        "execution": Filters(execution_id=first.execution_id),
        # Has no index of its own: it looks at the newest runs until a page is full.
        "status": Filters(status="completed"),
    }
    slow = {
        name: took
        for name, wanted in filters.items()
        if (took := await milliseconds(lambda wanted=wanted: store.runs(wanted))) > 100
    }
    assert slow == {}
    # Text is looked for run by run; one that nobody wrote is looked for in all of them.
    assert await milliseconds(lambda: store.runs(Filters(text="nowhere"))) < 250
    assert await milliseconds(lambda: store.run(errored.id)) < 100
    assert await milliseconds(store.executions) < 100
    assert await milliseconds(lambda: store.claim("x", 0, 60)) < 100


async def test_a_page_takes_the_same_work_however_much_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in instructions of SQLite's machine, which no other load of the computer changes."""
    steps = count_steps(monkeypatch)
    store = await open_store(StorageSettings(type="sqlite"), tmp_path)
    try:
        await fill(store, 2_000)
        small = {name: await steps(partial(store.runs, filters)) for name, filters in LISTS.items()}
        await fill(store, 18_000)
        large = {name: await steps(partial(store.runs, filters)) for name, filters in LISTS.items()}
    finally:
        await store.close()
    assert small["all"] > 0
    grown = {name: (small[name], large[name]) for name in LISTS if large[name] > 3 * small[name] + 10}
    assert grown == {}


def count_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[], Awaitable[object]]], Awaitable[int]]:
    """Says how much work a call is for the database, in hundreds of instructions."""
    done = [0]

    def add() -> int:
        done[0] += 1
        return 0

    usual = sqlite.set_up

    def set_up(connection: Any, **options: Any) -> None:
        usual(connection, **options)
        connection.set_progress_handler(add, 100)

    monkeypatch.setattr("evalstudio.storage.sqlite.set_up", set_up)

    async def steps(call: Callable[[], Awaitable[object]]) -> int:
        before = done[0]
        await call()
        return done[0] - before

    return steps


# No index leads to these, alone or together.
SCANNED = {
    "text nobody wrote": Filters(text="nowhere"),
    "case": Filters(case_name="case 9999"),
    "fault": Filters(fault="system"),
    "outcome": Filters(outcome="unasserted"),
    "status": Filters(status="completed", connector_id="c1"),
    "failed of a connector": Filters(connector_id="c1", outcome="error"),
    "label": Filters(labels=("release",)),
}


async def test_a_page_that_no_index_leads_to_looks_at_a_bounded_number_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = count_steps(monkeypatch)
    monkeypatch.setattr(lists, "MOST_SCANNED", 400)
    store = await open_store(StorageSettings(), tmp_path)
    try:
        await fill(store, 2_000)
        small = {name: await steps(partial(store.runs, filters)) for name, filters in SCANNED.items()}
        await store.close()
        multiply_runs(tmp_path / DEFAULT_PATH, 9)
        store = await open_store(StorageSettings(), tmp_path)
        large = {name: await steps(partial(store.runs, filters)) for name, filters in SCANNED.items()}
        bounded = await all_of(store, Filters(text="case 77"), limit=3)
        monkeypatch.setattr(lists, "MOST_SCANNED", 1_000_000)
        assert bounded == await all_of(store, Filters(text="case 77"), limit=500)
        assert len(bounded) > 100
    finally:
        await store.close()
    grown = {name: (small[name], large[name]) for name in SCANNED if large[name] > 3 * small[name] + 10}
    assert grown == {}


async def test_a_page_ends_where_enough_runs_were_looked_at_on_either_database(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queued(store, 30)
    everything = await all_of(store, Filters(text="book"), limit=500)
    monkeypatch.setattr(lists, "MOST_SCANNED", 8)
    page = await store.runs(Filters(text="nowhere"))
    assert (page.items, page.cursor) == ([], cursor_after(everything[7]))
    assert await all_of(store, Filters(text="nowhere"), limit=3) == []
    assert await all_of(store, Filters(text="book", eval_id="e1"), limit=3) == everything
    assert len(everything) == 30


async def all_of(store: SqlStore, filters: Filters, limit: int) -> list[str]:
    ids: list[str] = []
    cursor = None
    while True:
        page = await store.runs(filters, cursor=cursor, limit=limit)
        ids += [run.id for run in page.items]
        if (cursor := page.cursor) is None:
            return ids


@pytest.mark.soak
async def test_a_million_runs_stay_listable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``EVALSTUDIO_STORED_RUNS`` for another number."""
    steps = count_steps(monkeypatch)
    number = int(os.environ.get("EVALSTUDIO_STORED_RUNS", "1000000"))

    async def work_of_lists() -> dict[str, int]:
        async with await open_store(StorageSettings(), tmp_path) as store:
            filters = {**LISTS, **SCANNED}
            work = {name: await steps(partial(store.runs, one)) for name, one in filters.items()}
            work["executions"] = await steps(store.executions)
            work["home"] = await steps(partial(home_cards, store, JudgedExecutions()))
            return work

    async with await open_store(StorageSettings(), tmp_path) as store:
        await fill(store, 100_000)
    with closing(sqlite3.connect(tmp_path / DEFAULT_PATH)) as connection:
        # As in a project that has been at work: hardly a run waits.
        connection.execute("UPDATE runs SET status = 'completed', outcome = 'pass' WHERE status = 'queued'")
        connection.commit()
    small = await work_of_lists()
    multiply_runs(tmp_path / DEFAULT_PATH, number // 100_000 - 1)
    large = await work_of_lists()
    # Where no index leads to the runs, so much as looking at a hundred thousand of them takes.
    scanned = {"text", *SCANNED}
    most = {name: 20_000 if name in scanned else 2 * work + 20 for name, work in small.items()}
    assert {name: (small[name], large[name]) for name in small if large[name] > most[name]} == {}
    async with await open_store(StorageSettings(), tmp_path) as store:
        await check_quick(store)


@pytest.mark.soak
async def test_a_hundred_thousand_runs_are_listed_in_no_time(store: SqlStore) -> None:
    await fill(store, 100_000)
    await check_quick(store)
