"""Recorded evaluations and feedback in the database."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.support.stored_runs import claimed, queued

from evalstudio.base.times import now
from evalstudio.evaluators.criteria import EvaluationCriteria
from evalstudio.evaluators.records import EvaluationInput
from evalstudio.scoring.config import EvaluationRunConfig
from evalstudio.scoring.runner import run_evaluation
from evalstudio.storage.contract import Filters
from evalstudio.storage.errors import NotFound
from evalstudio.storage.store import SqlStore


async def test_the_store_keeps_what_recorded_scoring_finds(store: SqlStore) -> None:
    config = EvaluationRunConfig.model_validate(
        {"evaluatorConfigs": [{"type": "KeywordCoverage", "config": {"expectedKeywords": ["table"]}}]}
    )
    given = EvaluationInput(
        response="A table is booked",
        criteria=[EvaluationCriteria(name="KeywordCoverage", description="d", scale="numeric")],
        agent_id="agent \x00 1",
    )
    result = await run_evaluation(given, config, storage=store)
    (shown,) = (await store.evaluations()).items
    assert shown["outcome"] == result.outcome
    whole = await store.evaluation(shown["id"])
    assert whole["inputSnapshot"]["response"] == "A table is booked"
    assert whole["createdAt"].endswith("Z")


async def test_many_results_at_once_are_all_kept(store: SqlStore) -> None:
    await asyncio.gather(*(store.save_result({"agentId": f"a{n % 3}", "n": n}) for n in range(300)))
    seen: list[Any] = []
    cursor: str | None = None
    while True:
        page = await store.evaluations(Filters(agent_id="a1"), cursor=cursor, limit=30)
        seen += [(await store.evaluation(one["id"]))["n"] for one in page.items]
        if (cursor := page.cursor) is None:
            break
    assert sorted(seen) == list(range(1, 300, 3))


async def test_results_are_found_by_agent_session_outcome_and_time(store: SqlStore) -> None:
    long = "x" * 5000
    await store.save_result({"agentId": long, "sessionId": "s", "outcome": "pass", "overallScore": 0.5})
    await store.save_result({"agentId": long + "y", "outcome": "fail", "overallScore": "not a number"})
    for filters, expected in [
        (Filters(agent_id=long), ["pass"]),
        (Filters(agent_id=long + "y"), ["fail"]),
        (Filters(session_id="s"), ["pass"]),
        (Filters(outcome="fail"), ["fail"]),
        (Filters(since=now() + timedelta(minutes=1)), []),
    ]:
        assert [one["outcome"] for one in (await store.evaluations(filters)).items] == expected
    with pytest.raises(NotFound):
        await store.evaluation("nope")


async def test_feedback_belongs_to_a_run_or_an_evaluation(store: SqlStore) -> None:
    await queued(store)
    (mine,) = await claimed(store)
    evaluation = await store.save_evaluation({"outcome": "pass"})
    first = await store.add_feedback({"score": 1, "comment": "good \x00"}, run_id=mine.lease.run_id)
    await store.add_feedback({"score": 0}, evaluation_id=evaluation)
    assert (await store.feedback(run_id=mine.lease.run_id)).items == [first]
    assert [one["score"] for one in (await store.feedback(evaluation_id=evaluation)).items] == [0]
    page = await store.feedback(limit=1)
    assert [one["score"] for one in page.items] == [0]
    assert (await store.feedback(cursor=page.cursor)).items == [first]
    with pytest.raises(NotFound):
        await store.add_feedback({}, run_id="nope")
    with pytest.raises(ValueError, match="one of the two"):
        await store.add_feedback({})
