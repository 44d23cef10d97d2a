"""Production conversations handed to monitors: filtered, sampled, judged once, counted, and alarms raised."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.conversation.talking import verdict
from tests.support.model_server import ModelServer
from tests.support.projects import make_project, scripted

from evalstudio.execution import alarm_delivery
from evalstudio.execution.alarm_delivery import deliver_due, prune_monitors
from evalstudio.execution.definitions import DefinitionService
from evalstudio.execution.monitor_status import read_series
from evalstudio.execution.monitoring import on_conversation
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.messages import Message
from evalstudio.project.entities import StoredMonitor
from evalstudio.project.monitors import Monitor
from evalstudio.recordings.conversation import ConversationBuilder, RecordedConversation
from evalstudio.storage.contract import Filters

POLITE = {"evaluators": [{"type": "regex", "config": {"pattern": "thank you"}}]}
NARROW = {"expected": 0.95, "falseAlarmsPerMonth": 100}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", [scripted("hello", "hi there")])


@pytest.fixture
async def workspace(project: Path) -> AsyncGenerator[Workspace]:
    async with open_workspace(project) as opened:
        yield opened


async def made(workspace: Workspace, **fields: Any) -> StoredMonitor:
    monitor = Monitor.model_validate({"name": "Politeness", **POLITE, **fields})
    stored = await DefinitionService(workspace).create("monitor", monitor)
    assert isinstance(stored, StoredMonitor)
    return stored


def said(name: str, answer: str = "thank you", started: datetime | None = None) -> RecordedConversation:
    builder = ConversationBuilder()
    builder.add(Message(role="user", content="hello"))
    builder.add(Message(role="assistant", content=answer))
    return RecordedConversation(name, builder.turns, agent="shop", started=started)


async def total(workspace: Workspace, monitor: StoredMonitor) -> dict[str, int]:
    point = (await read_series(workspace.store, monitor, days=30, bucket="day")).total
    counts = {"pass": point.rate.passed, "fail": point.rate.of - point.rate.passed, "error": point.errored}
    return {**counts, "unasserted": point.unasserted, "notJudged": point.not_judged}


async def test_a_day_of_a_monitor_is_an_execution_of_finished_runs(workspace: Workspace) -> None:
    monitor = await made(workspace)
    for number, answer in enumerate(["thank you", "thank you", "go away"]):
        await on_conversation(workspace, said(f"c{number}", answer), {}, revision=1)
    [execution] = (await workspace.store.executions(Filters(source="production"))).items
    assert (execution.eval_name, execution.status) == ("Politeness", "completed")
    assert (execution.counts.passed, execution.counts.failed, execution.counts.total) == (2, 1, 3)
    assert execution.partial is None
    runs = (await workspace.store.runs(Filters(execution_id=execution.id))).items
    assert {run.case_name for run in runs} == {"c0", "c1", "c2"}
    assert await total(workspace, monitor) == {
        "pass": 2,
        "fail": 1,
        "error": 0,
        "unasserted": 0,
        "notJudged": 0,
    }


async def test_the_same_conversation_from_two_servers_at_once_is_one_run(
    workspace: Workspace, project: Path
) -> None:
    monitor = await made(workspace)
    async with open_workspace(project) as other:
        hand_overs = [on_conversation(one, said("same"), {}, revision=1) for one in (workspace, other) * 3]
        await asyncio.gather(*hand_overs)
    assert (await total(workspace, monitor))["pass"] == 1
    assert len((await workspace.store.runs()).items) == 1


async def test_a_newer_revision_takes_the_place_of_the_review_before(workspace: Workspace) -> None:
    monitor = await made(workspace)
    await on_conversation(workspace, said("grows", "thank you"), {}, revision=1)
    await on_conversation(workspace, said("grows", "go away"), {}, revision=2)
    await on_conversation(workspace, said("grows", "thank you"), {}, revision=1)
    counts = await total(workspace, monitor)
    assert (counts["pass"], counts["fail"]) == (0, 1)
    [run] = (await workspace.store.runs()).items
    assert run.result is not None
    assert run.result.outcome == "fail"
    execution = await workspace.store.execution(run.execution_id)
    assert (execution.counts.total, execution.counts.failed, execution.partial) == (1, 1, None)


async def test_what_a_filter_leaves_out_is_not_reviewed(workspace: Workspace) -> None:
    conditions = [
        {"attribute": "gen_ai.agent.name", "equals": "shop"},
        {"attribute": "deployment.environment", "in": ["prod", "staging"]},
        {"attribute": "http.route", "prefix": "/chat"},
        {"attribute": "debug", "exists": False},
    ]
    monitor = await made(workspace, filter=conditions)
    fitting = {"gen_ai.agent.name": "shop", "deployment.environment": "prod", "http.route": "/chat/1"}
    await on_conversation(workspace, said("fits"), fitting, revision=1)
    wrong: list[dict[str, Any]] = [
        {},
        fitting | {"debug": None},
        fitting | {"http.route": 5},
        fitting | {"deployment.environment": "dev"},
        {name: value for name, value in fitting.items() if name != "gen_ai.agent.name"},
    ]
    for number, attributes in enumerate(wrong):
        await on_conversation(workspace, said(f"wrong {number}"), attributes, revision=1)
    assert (await total(workspace, monitor))["pass"] == 1


@pytest.mark.parametrize(("rate", "low", "high"), [(0.001, 0, 10), (1, 1000, 1000), (0.25, 190, 310)])
def test_sampling_is_by_the_id_alone(rate: float, low: int, high: int) -> None:
    monitor = Monitor.model_validate({"name": "m", **POLITE, "samplingRate": rate})
    chosen = [f"c{number}" for number in range(1000) if monitor.samples(f"c{number}")]
    assert low <= len(chosen) <= high
    assert all(monitor.samples(one) for one in chosen)


@pytest.mark.parametrize(
    ("field", "says"),
    [("samplingRate", "0 would look at no conversation"), ("judgeCallsPerDay", "0 would let no judge look")],
)
def test_a_monitor_that_looks_at_nothing_is_refused(field: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"{says}.*; set enabled to false to switch the monitor off"):
        Monitor.model_validate({"name": "m", **POLITE, field: 0})


async def test_conversations_of_which_nothing_is_asserted_raise_an_alarm(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    measured = {"evaluators": [{"type": "response-length"}], "alarm": {"unassertedInARow": 3}}
    monitor = await made(workspace, **measured)
    with caplog.at_level(logging.WARNING, logger="evalstudio"):
        for number in range(5):
            await on_conversation(workspace, said(f"c{number}"), {}, revision=1)
    [alarm] = (await workspace.store.alarms(monitor.id)).items
    assert (alarm.kind, alarm.scored, alarm.passed, alarm.ended_at) == ("unasserted", 3, 0, None)
    assert "the last 3 conversations came to no verdict: nothing was asserted of them" in alarm.text
    assert [record.getMessage() for record in caplog.records] == [f"ALARM {alarm.text}"]
    runs = [await workspace.store.run(one) for one in alarm.run_ids]
    assert [run.result and run.result.outcome for run in runs] == ["unasserted"] * 3
    series = await read_series(workspace.store, monitor, days=1, bucket="day")
    assert (series.standing, [one.id for one in series.alarms]) == ("unasserted", [alarm.id])


def test_a_larger_sample_holds_the_smaller() -> None:
    small, large = (
        Monitor.model_validate({"name": str(rate), **POLITE, "samplingRate": rate}) for rate in (0.1, 0.3)
    )
    ids = [f"é\ud800{number}" for number in range(300)]
    assert {one for one in ids if small.samples(one)} <= {one for one in ids if large.samples(one)}


@pytest.mark.parametrize(
    "condition",
    [
        {"attribute": "a"},
        {"attribute": "a", "equals": 1, "exists": True},
        {"attribute": "a", "in": []},
        {"attribute": "a[", "exists": True},
        {"attribute": "", "exists": True},
        {"attribute": "a", "equals": None},
        {"attribute": "a", "matches": "x"},
    ],
)
def test_a_filter_that_tests_nothing_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"filter"):
        Monitor.model_validate({"name": "m", **POLITE, "filter": [condition]})


def test_true_is_not_one() -> None:
    monitor = Monitor.model_validate({"name": "m", **POLITE, "filter": [{"attribute": "a", "equals": 1}]})
    assert monitor.covers({"a": 1})
    assert not monitor.covers({"a": True})


async def test_times_that_cannot_be_believed_are_the_time_of_arrival(workspace: Workspace) -> None:
    monitor = await made(workspace)
    moment = datetime.now(UTC)
    times = [moment - timedelta(hours=30), None, moment + timedelta(days=400), datetime(1970, 1, 1)]
    for number, started in enumerate(times):
        await on_conversation(workspace, said(f"c{number}", started=started), {}, revision=1)
    series = await read_series(workspace.store, monitor, days=3, bucket="hour")
    assert sum(point.rate.of for point in series.points) == 4
    assert series.points[0].rate.of == 1
    assert moment - timedelta(hours=31) <= series.points[0].start <= moment - timedelta(hours=29)


async def test_what_no_judge_may_be_called_for_is_not_judged_and_never_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(verdict(True, evidence=["thank you"])) as models:
        settings = {
            "provider": "openai",
            "baseUrl": models.url,
            "apiKey": "k",
            "models": {"evaluation": "judge"},
        }
        config = make_project(tmp_path / "judged", [scripted("hello", "hi")], llmSettings=settings)
        async with open_workspace(config) as workspace:
            judged = {"successCriteria": "The agent is polite", "evaluators": []}
            monitor = await made(workspace, **judged, judgeCallsPerDay=3)
            for number in range(4):
                await on_conversation(workspace, said(f"c{number}"), {}, revision=1)
            counts = await total(workspace, monitor)
            assert counts["notJudged"] >= 1
            assert counts["pass"] >= 1
            assert sum(counts.values()) == 4
            assert await workspace.store.judge_calls(monitor.id, datetime.now(UTC).date().isoformat()) <= 3

            from evalstudio.execution import monitoring

            tomorrow = datetime.now(UTC) + timedelta(days=1)
            monkeypatch.setattr(monitoring, "now", lambda: tomorrow)
            await on_conversation(workspace, said("tomorrow"), {}, revision=1)
            assert await workspace.store.judge_calls(monitor.id, tomorrow.date().isoformat()) >= 1


async def test_an_agent_that_gets_worse_raises_one_alarm_with_the_runs_behind_it(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = await made(workspace, band=NARROW)
    with caplog.at_level(logging.WARNING, logger="evalstudio"):
        await _get_worse(workspace)
    [alarm] = (await workspace.store.alarms(monitor.id)).items
    assert (alarm.kind, alarm.ended_at, alarm.delivery) == ("rate", None, "none")
    assert alarm.passed < alarm.scored
    failed = [await workspace.store.run(one) for one in alarm.run_ids]
    assert failed
    assert all(run.result is not None and run.result.outcome == "fail" for run in failed)
    assert [record.getMessage() for record in caplog.records] == [f"ALARM {alarm.text}"]
    series = await read_series(workspace.store, monitor, days=1, bucket="day")
    assert (series.standing, [one.id for one in series.alarms]) == ("left-band", [alarm.id])

    assert (await workspace.store.acknowledge_alarm(alarm.id)).acknowledged_at is not None
    await DefinitionService(workspace).update(
        "monitor", monitor.id, Monitor.model_validate({"name": "Politeness", **POLITE, "band": {}})
    )
    await on_conversation(workspace, said("after the change of the band"), {}, revision=1)
    [ended] = (await workspace.store.alarms(monitor.id)).items
    assert ended.ended_at is not None


async def _get_worse(workspace: Workspace) -> None:
    for number in range(60):
        answer = "thank you" if number < 20 else "go away"
        await on_conversation(workspace, said(f"c{number}", answer), {}, revision=1)
        # A stake is put down with the time that passes; a test has none to spare.
        await _age_test(workspace)


async def _age_test(workspace: Workspace) -> None:
    def earlier(unit: Any) -> None:
        from sqlalchemy import select, update

        from evalstudio.storage.schema import monitor_tests

        for row in unit.connection.execute(select(monitor_tests)).all():
            body = {
                **row.body,
                "rate": {**row.body["rate"], "last_ms": row.body["rate"]["last_ms"] - 3_600_000},
            }
            unit.connection.execute(
                update(monitor_tests).where(monitor_tests.c.monitor_id == row.monitor_id).values(body=body)
            )

    await workspace.store.database.write(earlier)


class Receiver:
    """A webhook that refuses as often as it is told, then takes what comes."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.posts = refusals, list[tuple[dict[str, str], bytes]]()

    async def answer(self, request: web.Request) -> web.Response:
        self.posts.append((dict(request.headers), await request.read()))
        self.refusals -= 1
        return web.Response(status=503 if self.refusals >= 0 else 204)


async def test_a_webhook_is_posted_signed_and_tried_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarm_delivery, "_FIRST_RETRY", 0.001)
    receiver = Receiver(refusals=2)
    app = web.Application()
    app.router.add_post("/hook", receiver.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    hook = {"url": f"http://127.0.0.1:{port}/hook", "secret": "a long secret"}
    monitor = await made(workspace, band=NARROW, alarm={"webhook": hook, "log": False})
    assert monitor.alarm.webhook is not None
    assert monitor.alarm.webhook.secret == "********"
    await _get_worse(workspace)
    async with asyncio.timeout(20):
        while (await workspace.store.alarms(monitor.id)).items[0].delivery != "delivered":
            await deliver_due(workspace)
            await asyncio.sleep(0.01)
    await runner.cleanup()
    assert len(receiver.posts) == 3
    headers, body = receiver.posts[-1]
    signed = headers["X-EvalStudio-Timestamp"].encode() + b"." + body
    expected = hmac.new(b"a long secret", signed, hashlib.sha256).hexdigest()
    assert headers["X-EvalStudio-Signature"] == f"sha256={expected}"
    [alarm] = (await workspace.store.alarms(monitor.id)).items
    sent = json.loads(body)
    assert (sent["type"], sent["alarm"]["id"], sent["alarm"]["runIds"]) == (
        "monitor.alarm",
        alarm.id,
        alarm.run_ids,
    )


async def test_a_webhook_that_stays_down_is_given_up_after_a_day(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = {"url": "http://127.0.0.1:9/secret-place", "secret": "a long secret"}
    monitor = await made(workspace, band=NARROW, alarm={"webhook": hook})
    await _get_worse(workspace)
    assert await deliver_due(workspace) == 1
    [alarm] = (await workspace.store.alarms(monitor.id)).items
    assert (alarm.delivery, alarm.tries) == ("pending", 1)
    assert "secret" not in str(alarm.delivery_error)
    assert await deliver_due(workspace) == 0, "it waits before it tries again"
    monkeypatch.setattr(alarm_delivery, "_GIVEN_UP_AFTER", timedelta())
    await workspace.store.note_delivery(alarm.id, "down", 0)
    assert await deliver_due(workspace) == 1
    assert (await workspace.store.alarms(monitor.id)).items[0].delivery == "failed"


async def test_a_webhook_at_the_metadata_of_a_cloud_is_not_posted_to(workspace: Workspace) -> None:
    monitor = await made(workspace, band=NARROW, alarm={"webhook": {"url": "http://169.254.169.254/x"}})
    await _get_worse(workspace)
    await deliver_due(workspace)
    [alarm] = (await workspace.store.alarms(monitor.id)).items
    assert "metadata" in str(alarm.delivery_error)


async def test_a_monitor_that_names_a_scenario_judges_as_it_does(workspace: Workspace, project: Path) -> None:
    from evalstudio.execution.definitions import apply_files

    await apply_files(workspace, [project.parent / "evals.json"])
    path = project.parent / "monitors" / "shop.yaml"
    path.parent.mkdir()
    path.write_text("kind: monitor\nname: Shop\nscenarios: [hello]\nsamplingRate: 0.5\n")
    assert [str(change) for change in await apply_files(workspace, [path])] == ["+ monitor Shop"]
    monitor = await workspace.store.find("monitor", "Shop")
    assert monitor is not None
    names = [name for name in (f"c{number}" for number in range(8)) if monitor.samples(name)]
    for name in names:
        await on_conversation(workspace, said(name, "echo"), {}, revision=1)
    assert (await total(workspace, monitor))["pass"] == len(names) > 0


async def test_old_reviews_go_with_their_runs(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = await made(workspace, retentionDays=1)
    await on_conversation(workspace, said("old"), {}, revision=1)
    assert await prune_monitors(workspace) == 0
    from evalstudio.storage import store, transaction

    monkeypatch.setattr(store, "now_ms", lambda: transaction.now_ms() + 3 * 86_400_000)
    assert await prune_monitors(workspace) == 1
    assert (await workspace.store.runs()).items == []
    assert sum((await total(workspace, monitor)).values()) == 0
