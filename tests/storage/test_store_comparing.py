"""What comparing rests on in the store: whether executions are whole, labels, baselines, clustered counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.storage.test_store_retention import age, finished
from tests.support.stored_runs import claimed, ending, new_run, queued

from evalstudio.project.entities import Execution
from evalstudio.storage.contract import Filters, RepetitionCounts, Snapshot
from evalstudio.storage.errors import InUse, NotFound
from evalstudio.storage.store import SqlStore


async def labelled(store: SqlStore, **labels: Any) -> str:
    execution = Execution(eval_id="e1", eval_name="Nightly", labels=labels)
    return (await store.enqueue(execution, [new_run()])).id


async def listed(store: SqlStore, *labels: str) -> list[str]:
    return [execution.id for execution in (await store.executions(Filters(labels=labels))).items]


class TestLabels:
    async def test_narrow_a_list_by_key_and_value_or_by_key(self, store: SqlStore) -> None:
        main = await labelled(store, branch="main", commit="abc")
        other = await labelled(store, branch="other")
        await labelled(store, nested={"branch": "main"}, text='"branch":"main"')
        assert await listed(store, "branch=main") == [main]
        assert await listed(store, "branch") == [other, main]
        assert await listed(store, "branch=main", "commit=abd") == []
        assert await listed(store, "nothing") == []

    @pytest.mark.parametrize("key", ["a.b", "$", "$.branch", 'a"b', "1", "[0]", "Ünï · 🎉", "' OR 1", "%"])
    async def test_may_have_any_key(self, store: SqlStore, key: str) -> None:
        mine = await labelled(store, **{key: "x=y"})
        await labelled(store, branch="x=y")
        assert await listed(store, f"{key}=x=y") == [mine]
        assert await listed(store, f"{key}=") == []

    async def test_with_what_a_database_refuses_do_not_break_the_others(self, store: SqlStore) -> None:
        await labelled(store, **{"a\x00b": "\x00", "branch": "\ud800"})
        mine = await labelled(store, branch="main")
        assert await listed(store, "branch=main") == [mine]
        assert await listed(store, "a\x00b=\x00") == []

    async def test_that_are_no_text_are_found_by_how_they_are_written(self, store: SqlStore) -> None:
        mine = await labelled(store, dirty=True, number=12)
        await labelled(store, dirty=False, number=1)
        assert await listed(store, "dirty=true") == [mine]
        assert await listed(store, "number=12") == [mine]


class TestWhole:
    async def test_an_execution_says_why_it_is_not(self, store: SqlStore) -> None:
        whole = await finished(store, 1)
        only = await store.enqueue(Execution(eval_id="e1", partial="only"), [new_run()])
        replayed = await store.enqueue(Execution(eval_id="e1", replayed=True), [new_run()])
        assert (await store.execution(only.id)).partial == "only"
        assert (await store.execution(replayed.id)).replayed
        assert [one.id for one in (await store.executions(Filters(whole=True))).items] == [whole]
        assert [one.id for one in await store.tally_executions(Filters(whole=True))] == [whole]
        assert len((await store.runs(Filters(whole=True))).items) == 1

    async def test_cancelled_and_deleted_runs_are_noted_once(self, store: SqlStore) -> None:
        execution = await store.enqueue(Execution(partial="only"), [new_run(1), new_run(2), new_run(3)])
        (mine,) = await claimed(store)
        await store.finish(mine.lease, ending())
        await store.cancel(execution_id=execution.id)
        assert (await store.execution(execution.id)).partial == "only, cancelled"
        await store.delete_runs([mine.lease.run_id])
        await store.mark_partial(execution.id, "deleted")
        assert (await store.execution(execution.id)).partial == "only, cancelled, deleted"

    async def test_one_cancelled_run_is_enough(self, store: SqlStore) -> None:
        execution = await queued(store, 2)
        (mine,) = await claimed(store)
        waiting = next(run for run in (await store.runs()).items if run.status == "queued")
        await store.cancel(run_ids=[waiting.id])
        await store.finish(mine.lease, ending())
        done = await store.execution(execution.id)
        assert (done.status, done.partial) == ("completed", "cancelled")


class TestBaselines:
    async def test_there_is_one_per_eval_and_name(self, store: SqlStore) -> None:
        first, second = await finished(store, 1), await finished(store, 1)
        await store.set_baseline("e1", "main", first)
        await store.set_baseline("e1", "Main", second)
        await store.set_baseline("e2", "main", first)
        assert [(one.eval_id, one.name, one.execution_id) for one in await store.baselines()] == [
            ("e1", "Main", second),
            ("e2", "main", first),
        ]
        assert [one.name for one in await store.baselines("e1")] == ["Main"]
        await store.remove_baseline("e1", "MAIN")
        assert await store.baseline("e1", "main") is None
        with pytest.raises(NotFound, match="baseline"):
            await store.remove_baseline("e1", "main")
        with pytest.raises(NotFound, match="execution"):
            await store.set_baseline("e1", "main", "nope")

    async def test_are_spared_by_pruning_and_refuse_to_be_deleted(self, store: SqlStore) -> None:
        kept, gone = await finished(store, 2), await finished(store, 1)
        await store.set_baseline("e1", "main", kept)
        await age(store)
        done = await store.prune(timedelta(days=90))
        assert (done.executions, done.runs) == (1, 1)
        assert (await store.execution(kept)).counts.total == 2
        with pytest.raises(NotFound):
            await store.execution(gone)
        with pytest.raises(InUse, match='the baseline "main"'):
            await store.delete_execution(kept)
        await store.remove_baseline("e1", "main")
        assert await store.delete_execution(kept) == 2


async def test_what_an_execution_ran_with_is_kept_as_long_as_it(store: SqlStore) -> None:
    environment = Snapshot.of({"version": "1.2"})
    execution = await store.enqueue(Execution(), [new_run()], environment=environment)
    (mine,) = await claimed(store)
    await store.finish(mine.lease, ending())
    await age(store)
    await store.prune(timedelta(days=10_000))
    assert await store.environment_of(execution.id) == {"version": "1.2"}
    assert await store.environment_of((await queued(store)).id) is None


async def test_figures_say_what_the_repetitions_of_subjects_came_to(store: SqlStore) -> None:
    same = {"case": None}
    runs = [new_run(n, **same) for n in (1, 2, 3)] + [new_run(1, scenario_id="s2", **same) for _ in range(2)]
    execution = await store.enqueue(Execution(eval_id="e1"), runs)
    outcomes = {"s1": iter(("pass", "fail", "error")), "s2": iter(("pass", "pass"))}
    for claim in await claimed(store, limit=5):
        await store.finish(claim.lease, ending(next(outcomes[claim.run.scenario_id or ""])))
    (figures,) = await store.tally_executions(Filters(execution_id=execution.id))
    assert figures.subjects == {RepetitionCounts(1, 1, 1): 1, RepetitionCounts(2, 0, 0): 1}
    by_scenario = {one.id: one.subjects for one in await store.tally("scenario")}
    assert by_scenario == {"s1": {RepetitionCounts(1, 1, 1): 1}, "s2": {RepetitionCounts(2, 0, 0): 1}}


async def test_results_are_read_in_pages_with_hashes_and_the_output_of_the_last_attempt(
    store: SqlStore,
) -> None:
    execution = await queued(store, 3)
    for number, claim in enumerate(await claimed(store, limit=3)):
        outcome = "error" if number == 0 else "pass"
        await store.finish(claim.lease, ending(outcome, output={"number": number}, answer_hash=f"a{number}"))
    await store.retry(execution_id=execution.id)
    for claim in await claimed(store):
        await store.finish(claim.lease, ending(output={"number": 9}))
    first = await store.results_of(execution.id, limit=2)
    rest = await store.results_of(execution.id, cursor=first.cursor, limit=2)
    results = [*first.items, *rest.items]
    assert sorted(one.output["number"] for one in results) == [1, 2, 9]
    assert len({one.hashes.case for one in results}) == 3
    assert sorted(str(one.answer) for one in results) == ["None", "a1", "a2"]
    assert (await store.results_of(execution.id, connector="another")).items == []
