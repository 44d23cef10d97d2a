"""Executions that were held outside the queue, such as in a test: kept whole, and never seen waiting."""

from __future__ import annotations

import pytest
from tests.support.stored_runs import claimed, ending, new_run, turn

from evalstudio.evaluators.results import Finding
from evalstudio.project.entities import Execution
from evalstudio.storage.contract import Filters, FinishedRun
from evalstudio.storage.store import SqlStore


async def test_they_are_over_when_they_are_first_seen(store: SqlStore) -> None:
    before = await store.last_event_id()
    outcomes = ("pass", "fail", "error", "unasserted")
    finished = [
        FinishedRun(new_run(number), [turn(1, "Which day?")], ending(outcome, last_turn=turn(2)))
        for number, outcome in enumerate(outcomes, 1)
    ]
    execution = await store.record(Execution(trigger="pytest"), finished)
    execution = await store.execution(execution.id)
    counts = execution.counts
    assert (execution.status, counts.total, counts.queued, counts.running) == ("completed", 4, 0, 0)
    assert (counts.passed, counts.failed, counts.errored, counts.unasserted) == (1, 1, 1, 1)
    assert execution.completed_at is not None
    assert await claimed(store, limit=10) == []
    run = await store.run(finished[0].run.id)
    assert (run.status, run.turn_count, run.latency_ms) == ("completed", 2, 20.5)
    assert [message.text for message in run.messages][1::2] == ["Which day?", "Done."]
    assert "execution.completed" in [event.kind for event in await store.events(before)]


async def test_what_was_found_at_the_end_belongs_to_the_last_turn(store: SqlStore) -> None:
    late = Finding("regex", "Regex", "late", "assertion", "finally", False, 0.0, "too late", turn=1)
    finished = FinishedRun(new_run(), [turn(1)], ending("fail", final_results=[late]))
    await store.record(Execution(), [finished])
    run = await store.run(finished.run.id)
    assert [finding.name for finding in run.turns[0].results] == ["regex", "late"]
    assert run.turn_count == 1


async def test_a_run_that_never_began_is_kept_with_its_error(store: SqlStore) -> None:
    finished = FinishedRun(new_run(), [], ending("error", error="no agent", latency_ms=None))
    execution = await store.record(Execution(), [finished])
    [run] = (await store.runs(Filters(execution_id=execution.id))).items
    assert (run.status, run.error, run.turn_count) == ("error", "no agent", 0)


async def test_all_of_it_is_kept_or_nothing(store: SqlStore) -> None:
    finished = FinishedRun(new_run(), [turn(1)], ending())
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.record(Execution(), [finished, finished])
    assert (await store.executions()).items == []
    assert (await store.runs()).items == []
