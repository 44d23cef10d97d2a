"""Lists of runs and executions, their filters and pages, and figures about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.stored_runs import claimed, ending, new_run, queued, turn

from evalstudio.base.times import now
from evalstudio.evaluators.results import Finding
from evalstudio.project.entities import Execution, StoredScenario
from evalstudio.reporting.statistics import group_of, summarize
from evalstudio.storage import run_search
from evalstudio.storage.contract import Filters
from evalstudio.storage.errors import NotFound
from evalstudio.storage.store import SqlStore


async def mixed(store: SqlStore) -> Execution:
    """Six runs: pass, fail, error, running, cancelled, queued."""
    execution = await queued(store, 6)
    first, second, third, _, fifth = await claimed(store, limit=5)
    await store.finish(first.lease, ending("pass"))
    await store.finish(second.lease, ending("fail", latency_ms=100.0))
    await store.finish(third.lease, ending("error", latency_ms=None, tokens_usage=None))
    await store.cancel(run_ids=[fifth.lease.run_id])
    return execution


async def cases(store: SqlStore, **filters: Any) -> list[str | None]:
    return [run.case_name for run in (await store.runs(Filters(**filters))).items]


async def test_runs_are_listed_newest_first_and_narrowed(store: SqlStore) -> None:
    execution = await mixed(store)
    assert await cases(store) == [f"case {n}" for n in (6, 5, 4, 3, 2, 1)]
    for status, expected in {
        "queued": "case 6",
        "cancelled": "case 5",
        "running": "case 4",
        "error": "case 3",
    }.items():
        assert await cases(store, status=status) == [expected]
    assert await cases(store, status="completed") == ["case 2", "case 1"]
    assert await cases(store, outcome="pass") == ["case 1"]
    assert await cases(store, outcome="fail") == ["case 2"]
    assert await cases(store, outcome="error") == ["case 3"]
    assert await cases(store, outcome="fail", status="error") == []
    for field, value in {
        "eval_id": "e1",
        "scenario_id": "s1",
        "connector_id": "c1",
        "persona_id": "p1",
    }.items():
        assert len(await cases(store, **{field: value})) == 6
        assert await cases(store, **{field: "other"}) == []
    assert len(await cases(store, execution_id=execution.id)) == 6
    assert await cases(store, text="CASE 3") == ["case 3"]
    assert await cases(store, text="%") == []
    assert await cases(store, since=now() + timedelta(minutes=1)) == []
    assert (
        len(await cases(store, since=now() - timedelta(minutes=1), until=now() + timedelta(minutes=1))) == 6
    )


@pytest.mark.parametrize("wanted", ["\x00", "'; --", "x" * 5000, "\ud800", "💥"])
async def test_hostile_filters_find_nothing(store: SqlStore, wanted: str) -> None:
    await queued(store)
    for field in ("status", "eval_id", "execution_id", "scenario_id", "connector_id", "persona_id", "text"):
        assert await cases(store, **{field: wanted}) == []
    assert await cases(store, tags=[wanted]) == []
    assert (await store.executions(Filters(text=wanted))).items == []
    for read in (store.run, store.execution):
        with pytest.raises(NotFound):
            await read(wanted)


async def test_runs_are_found_by_the_tags_of_their_scenario(store: SqlStore) -> None:
    tagged = StoredScenario.model_validate(
        {"name": "S", "successCriteria": "x", "script": ["a"], "tags": ["Smoke"]}
    )
    await store.create(tagged)
    await queued(store, scenario_id=tagged.id)
    await queued(store)
    assert len(await cases(store, tags=["smoke"])) == 1
    assert await cases(store, tags=["smoke", "other"]) == []


async def test_a_page_of_runs_stays_where_it_is_while_others_arrive(store: SqlStore) -> None:
    await queued(store, 23)
    seen: list[str | None] = []
    cursor: str | None = None
    while True:
        page = await store.runs(Filters(scenario_id="s1"), cursor=cursor, limit=5)
        seen += [run.case_name for run in page.items]
        await queued(store, 3)
        if (cursor := page.cursor) is None:
            break
    assert seen == [f"case {n}" for n in range(23, 0, -1)]


async def test_the_last_page_has_no_cursor_even_when_it_is_full(store: SqlStore) -> None:
    await queued(store, 4)
    assert (await store.runs(limit=4)).cursor is None
    assert (await store.runs(limit=3)).cursor is not None


async def test_executions_are_listed_with_their_counts(store: SqlStore) -> None:
    first = await mixed(store)
    second = await store.enqueue(Execution(eval_name="Wöchentlich", eval_id="e2"), [new_run()])
    page = await store.executions(limit=1)
    assert [one.id for one in page.items] == [second.id]
    rest = await store.executions(cursor=page.cursor)
    assert [one.id for one in rest.items] == [first.id]
    counts = rest.items[0].counts
    assert counts.model_dump() == {
        "total": 6,
        "queued": 1,
        "running": 1,
        "passed": 1,
        "failed": 1,
        "errored": 1,
        "cancelled": 1,
        "unasserted": 0,
        "finished": 4,
        "standing": "running",
    }
    assert rest.items[0].labels == {"branch": "main"}
    for filters, wanted in [
        (Filters(status="running"), first),
        (Filters(status="queued"), second),
        (Filters(eval_id="e2"), second),
        (Filters(text="WÖCH"), second),
    ]:
        assert [one.id for one in (await store.executions(filters)).items] == [wanted.id]


async def test_lists_hold_no_messages_and_no_output(store: SqlStore) -> None:
    await queued(store)
    (mine,) = await claimed(store)
    await store.finish(mine.lease, ending(last_turn=turn()))
    shown = (await store.runs()).items[0].model_dump(by_alias=True)
    assert not {"messages", "turns", "output", "case"} & shown.keys()
    assert shown["result"]["outcome"] == "pass"


async def test_figures_count_errors_apart_and_say_how_many_they_cover(store: SqlStore) -> None:
    execution = await mixed(store)
    (by_execution,) = await store.tally_executions()
    (by_scenario,) = await store.tally("scenario", Filters(execution_id=execution.id))
    assert by_execution.id == execution.id
    assert (by_scenario.id, by_scenario.name) == ("s1", "Booking")
    for found in (by_execution, by_scenario):
        assert found.counts.total == 6
        assert (found.counts.passed, found.counts.failed, found.counts.errored) == (1, 1, 1)
        assert found.mean_latency_ms == pytest.approx(60.25)
        assert found.max_latency_ms == 100.0
        assert found.mean_score == pytest.approx(0.5)
        assert found.total_tokens == 14
    assert [one.name for one in await store.tally("persona")] == ["Ada"]
    # Nobody wrote the scenario of these runs down, so it has no tags.
    (untagged,) = await store.tally("tag", Filters(execution_id=execution.id))
    assert untagged == replace(by_scenario, id=None, name=None)
    assert [one.name for one in await store.tally("connector", Filters(since=now() + timedelta(1)))] == []
    empty = await queued(store, 0)
    assert (await store.tally_executions(Filters(execution_id=empty.id)))[0].mean_score is None


async def test_runs_in_groups_come_to_the_same_as_one_by_one(store: SqlStore) -> None:
    execution = await mixed(store)
    other = await store.enqueue(
        Execution(eval_id="e1"), [new_run(number, case=None) for number in range(1, 5)]
    )
    for one, outcome in zip(
        await store.claim("w2", 4, 60, execution_id=other.id), ("pass", "pass", "fail", "error"), strict=True
    ):
        await store.finish(one.lease, ending(outcome))
    for execution_id, flaky in ((execution.id, []), (other.id, [(4, 2, 1)])):
        filters = Filters(execution_id=execution_id)
        groups = await store.run_groups(filters)
        summary = summarize(groups)
        assert summary == summarize(map(group_of, (await store.runs(filters)).items))
        assert summary.counts == (await store.execution(execution_id)).counts
        assert [(one.runs, one.passed, one.failed) for one in summary.flaky] == flaky
    assert len(await store.run_groups(Filters(execution_id=other.id))) == 3


async def test_runs_are_found_by_what_they_hold_in_pages_of_bounded_work(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queued(store, 6)
    for place, run in enumerate(await claimed(store, limit=6), 1):
        text = f'Booked "table {place}", <b>Zürich</b> 100 %' if place % 2 else "Sorry."
        result = Finding("regex", "Regex", "names it", "assertion", "always", place % 2 == 1, 1.0, "why")
        output = {"evaluatorResults": [result.to_json()], "metrics": {"words": float(place)}}
        await store.finish(run.lease, ending("pass", output=output, last_turn=turn(1, text)))
    assert await cases(store, said='booked "TABLE 3"') == ["case 3"]
    assert await cases(store, said="100 %") == ["case 5", "case 3", "case 1"]
    assert await cases(store, said="1_0") == []
    assert await cases(store, said="Zürich", evaluator="names it", verdict="pass", metric="words") == [
        "case 5",
        "case 3",
        "case 1",
    ]
    assert await cases(store, evaluator="regex", verdict="fail") == ["case 6", "case 4", "case 2"]
    assert await cases(store, metric="words", metric_min=2, metric_max=3) == ["case 3", "case 2"]
    assert await cases(store, metric="other") == []
    assert await cases(store, labels=["branch=main"], fault="agent") == []
    assert len(await cases(store, labels=["branch=main"])) == 6
    assert await cases(store, labels=["branch=other"]) == []

    monkeypatch.setattr(run_search, "LOOKED_AT", 2)
    pages: list[list[str | None]] = []
    cursor = None
    while True:
        page = await store.runs(Filters(metric="words", metric_max=3), cursor=cursor, limit=1)
        pages.append([run.case_name for run in page.items])
        if (cursor := page.cursor) is None:
            break
    assert pages == [[], ["case 3"], ["case 2"], ["case 1"]]
