"""Lists and single runs stay quick however much is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter

import pytest
from tests.support.stored_runs import ending, new_run, turn

from evalstudio.project.entities import Execution
from evalstudio.storage.contract import Filters
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
    filters = {
        "all": Filters(),
        "execution": Filters(execution_id=first.execution_id),
        "scenario": Filters(scenario_id="s7"),
        "eval": Filters(eval_id="e3"),
        "connector": Filters(connector_id="c1"),
        "persona nobody has": Filters(persona_id="nobody"),
        "status": Filters(status="completed"),
        "errors": Filters(outcome="error"),
        "text": Filters(text="case 77"),
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


async def test_twenty_thousand_runs_are_listed_in_no_time(store: SqlStore) -> None:
    await fill(store, 20_000)
    await check_quick(store)


@pytest.mark.soak
async def test_a_hundred_thousand_runs_are_listed_in_no_time(store: SqlStore) -> None:
    await fill(store, 100_000)
    await check_quick(store)
