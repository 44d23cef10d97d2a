"""Reviews of monitors, their budgets and alarms, on both databases and from several processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.storage.conftest import Opener
from tests.support.stored_runs import ending, new_run, turn

from evalstudio.project.alarms import Alarm
from evalstudio.project.entities import Execution
from evalstudio.storage.contract import FinishedRun
from evalstudio.storage.monitoring import AlarmChange, MonitorReview, MonitorStep
from evalstudio.storage.store import SqlStore


def review(key: str = "c1", revision: int = 1, outcome: str = "fail") -> MonitorReview:
    execution = Execution(id="day", eval_name="Politeness", source="production", trigger="monitor")
    finished = FinishedRun(new_run(), [turn()], ending(outcome))
    return MonitorReview("m1", key, f"conversation {key}", revision, outcome, "", 1, execution, finished)


def advanced(kept: Mapping[str, Any] | None) -> MonitorStep:
    """Tests that count, and raise an alarm at every conversation."""
    position = (kept or {}).get("position", 0) + 1
    alarm = Alarm(monitor_id="m1", monitor_name="m", kind="rate", text="t", passed=0, scored=1, edge=0.9)
    return MonitorStep({"position": position}, position, [AlarmChange(alarm, "left", 0, to_deliver=True)])


def counted(kept: Mapping[str, Any] | None) -> MonitorStep:
    position = (kept or {}).get("position", 0) + 1
    return MonitorStep({"position": position}, position)


async def test_many_hand_overs_at_once_keep_each_conversation_once(opener: Opener) -> None:
    stores = [await opener() for _ in range(3)]
    keys = [f"c{number}" for number in range(5)]
    kept = await asyncio.gather(
        *(store.keep_review(review(key), counted) for store in stores for key in keys for _ in range(2))
    )
    assert kept.count(True) == len(keys)
    assert await stores[0].monitor_test("m1") == {"position": len(keys)}
    assert len((await stores[0].runs()).items) == len(keys)
    execution = await stores[0].execution("day")
    assert (execution.counts.total, execution.counts.failed, execution.status) == (5, 5, "completed")
    [count] = await stores[0].monitored_counts("m1", 0, 10, 10)
    assert count == (0, "fail", 5)


async def test_a_later_revision_is_in_the_tests_once(store: SqlStore) -> None:
    assert await store.keep_review(review(revision=1), counted)
    assert await store.keep_review(review(revision=2, outcome="pass"), counted)
    assert not await store.keep_review(review(revision=2), counted)
    assert await store.monitor_test("m1") == {"position": 1}
    assert [run.result.outcome for run in (await store.runs()).items if run.result] == ["pass"]


async def test_a_budget_is_never_exceeded_by_several_servers(opener: Opener) -> None:
    stores = [await opener() for _ in range(3)]
    granted = await asyncio.gather(
        *(store.reserve_judge_calls("m1", "2026-01-01", 2, 9) for store in stores for _ in range(4))
    )
    assert granted.count(True) == 4
    await stores[0].settle_judge_calls("m1", "2026-01-01", -1)
    assert await stores[1].judge_calls("m1", "2026-01-01") == 7
    assert await stores[1].judge_calls("m1", "2026-01-02") == 0


async def test_an_alarm_is_taken_by_one_server_and_left_again_when_that_dies(opener: Opener) -> None:
    stores = [await opener() for _ in range(3)]
    await stores[0].keep_review(review(), advanced)
    taken = await asyncio.gather(*(store.claim_alarms(60_000, 5) for store in stores))
    assert sorted(map(len, taken)) == [0, 0, 1]
    [alarm] = [one for some in taken for one in some]
    assert (alarm.tries, alarm.delivery, len(alarm.run_ids)) == (1, "pending", 1)
    await stores[0].note_delivery(alarm.id, "down", 0)
    [again] = await stores[1].claim_alarms(60_000, 5)
    assert (again.id, again.tries, again.delivery_error) == (alarm.id, 2, "down")
    await stores[1].note_delivery(alarm.id, None, None)
    assert await stores[2].claim_alarms(60_000, 5) == []
    assert (await stores[2].alarm(alarm.id)).delivery == "delivered"


async def test_beginning_anew_ends_the_alarms(store: SqlStore) -> None:
    await store.keep_review(review(), advanced)
    assert len(await store.open_alarms()) == 1
    await store.restart_monitor("m1")
    assert await store.open_alarms() == []
    assert await store.monitor_test("m1") is None
