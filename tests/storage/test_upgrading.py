"""A database of the first release, with results in it, brought to this version: nothing is lost or wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import Connection, text
from tests.storage.conftest import on_postgres
from tests.support.postgres import PostgresServer

from evalstudio.project.config import StorageSettings
from evalstudio.reporting.statistics import summarize
from evalstudio.storage.contract import Filters
from evalstudio.storage.migrations import upgrade
from evalstudio.storage.opening import DEFAULT_PATH, migrate, open_store
from evalstudio.storage.postgres import PostgresDatabase
from evalstudio.storage.sqlite import connect
from evalstudio.storage.store import SqlStore

RUNS = {
    # outcome, asserted
    "run-1": ("pass", True),
    "run-2": ("pass", False),
    "run-3": ("fail", True),
    "run-4": ("error", False),
    "run-5": ("pass", False),
}
RECORDED: dict[str, dict[str, Any]] = {
    "asserted": {
        "results": [
            {"criterionName": "polite", "score": True, "evaluatorType": "Toxicity"},
            {"criterionName": "response-length", "score": 3.0, "evaluatorType": "response-length"},
        ],
        "metrics": {"response-length": 3.0},
    },
    "measured-only": {
        "results": [{"criterionName": "mood", "score": 0.7, "evaluatorType": "Sentiment"}],
        "metrics": {"sentiment": 0.7},
    },
    "own-metric": {
        "results": [{"criterionName": "stars", "score": 4.0, "evaluatorType": "stars"}],
        "metrics": {"stars": 4.0},
    },
    "all-skipped": {
        "results": [{"criterionName": "tool-usage", "evaluatorType": "ToolUsage", "skipped": True}],
        "metrics": {},
    },
    "nothing": {"results": [], "metrics": {}},
}


def insert(connection: Connection, table: str, **values: Any) -> None:
    columns, places = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({places})"), values)


def dumped(document: object) -> str:
    return orjson.dumps(document).decode()


def make_first_release(connection: Connection) -> None:
    """The schema of the first release with an execution of five runs and five recorded evaluations."""
    upgrade(connection, "0002")
    times = {"created": 1, "updated": 2, "started": 3, "completed": 4}
    counts = {"total": 5, "queued": 0, "running": 0, "passed": 3, "failed": 1, "errored": 1, "cancelled": 0}
    insert(
        connection,
        "executions",
        id="e",
        eval_name="Support",
        name_key="support",
        status="completed",
        cancelling=False,
        deleting=False,
        unasserted=2,
        labels="{}",
        **counts,
        **times,
    )
    for number, (run_id, (outcome, asserted)) in enumerate(RUNS.items(), 1):
        _insert_run(connection, run_id, outcome, asserted, times | {"queued": number})
    for evaluation_id, parts in RECORDED.items():
        body = {"outcome": "pass", "success": True, "overallScore": None, **parts}
        insert(connection, "evaluations", id=evaluation_id, outcome="pass", created=1, body=dumped(body))
    failed = {"outcome": "fail", "success": False, "overallScore": None, "results": [], "metrics": {}}
    insert(connection, "evaluations", id="failed", outcome="fail", created=1, body=dumped(failed))


def _insert_run(
    connection: Connection, run_id: str, outcome: str, asserted: bool, times: dict[str, int]
) -> None:
    insert(
        connection,
        "runs",
        id=run_id,
        execution_id="e",
        status="error" if outcome == "error" else "completed",
        outcome=outcome,
        asserted=asserted,
        attempt=2 if run_id == "run-5" else 1,
        losses=0,
        scenario_name=run_id,
        name_key=run_id,
        repetition=1,
        turn_count=1,
        reason=f"{run_id} said so",
        scenario_snapshot="s",
        connector_snapshot="c",
        **times,
    )
    verdict = {"outcome": outcome, "reason": f"{run_id} said so", "asserted": asserted}
    result = verdict | {"score": None, "fault": None, "overallScore": None, "success": outcome == "pass"}
    for attempt in (1, 2) if run_id == "run-5" else (1,):
        insert(
            connection, "outputs", run_id=run_id, attempt=attempt, result=dumped(result), output=dumped({})
        )
    turn = {"turn": 1, "messageCount": 1, "latencyMs": 1.0, "tokensUsage": None, "evaluatorResults": []}
    message = {"role": "assistant", "content": "Hi"}
    insert(connection, "turns", run_id=run_id, attempt=1, turn=1, body=dumped(turn))
    insert(connection, "messages", run_id=run_id, attempt=1, turn=1, position=0, body=dumped(message))
    insert(
        connection, "events", kind="run.finished", execution_id="e", run_id=run_id, at=1, body=dumped(verdict)
    )


@pytest.fixture(params=["sqlite", "postgres"])
async def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore]:
    """A store on a database of the first release, after ``evalstudio db migrate``."""
    if request.param == "sqlite":
        settings = StorageSettings()
        (tmp_path / DEFAULT_PATH).parent.mkdir()
        engine = connect(tmp_path / DEFAULT_PATH)
        with engine.begin() as connection:
            make_first_release(connection)
        engine.dispose()
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        settings = on_postgres(dsn := server.new_database())
        database = PostgresDatabase(dsn)
        await database.first(make_first_release)
        await database.close()
    assert (await migrate(settings, tmp_path)).before.found == "0002"
    async with await open_store(settings, tmp_path) as store:
        yield store


async def test_a_pass_without_assertions_becomes_unasserted_and_nothing_else_changes(
    upgraded: SqlStore,
) -> None:
    outcomes = {run.id: run.result.outcome for run in (await upgraded.runs()).items if run.result}
    expected = {"run-1": "pass", "run-2": "unasserted", "run-3": "fail", "run-4": "error"}
    assert outcomes == expected | {"run-5": "unasserted"}
    run = await upgraded.run("run-2")
    assert run.result is not None
    assert (run.status, run.result.success, run.result.reason) == ("completed", False, "run-2 said so")
    assert [message.text for message in run.messages] == ["Hi"]


async def test_earlier_attempts_and_events_say_the_same(upgraded: SqlStore) -> None:
    earlier = (await upgraded.run("run-5", attempt=1)).result
    assert earlier is not None
    assert (earlier.outcome, earlier.success) == ("unasserted", False)
    told = {event.run_id: event.body["outcome"] for event in await upgraded.events()}
    assert told["run-1"] == "pass"
    assert told["run-2"] == told["run-5"] == "unasserted"


async def test_counts_and_rates_leave_unasserted_runs_out(upgraded: SqlStore) -> None:
    counts = (await upgraded.execution("e")).counts
    assert (counts.passed, counts.unasserted, counts.failed, counts.errored) == (1, 2, 1, 1)
    summary = summarize(await upgraded.run_groups(Filters(execution_id="e")))
    assert summary.counts == counts
    assert (summary.pass_rate_of_scored.passed, summary.pass_rate_of_scored.of) == (1, 2)


async def test_runs_are_found_by_the_new_outcome(upgraded: SqlStore) -> None:
    page = await upgraded.runs(Filters(outcome="unasserted"))
    assert {run.id for run in page.items} == {"run-2", "run-5"}


async def test_recorded_evaluations_that_asserted_nothing_are_unasserted(upgraded: SqlStore) -> None:
    page = await upgraded.evaluations()
    outcomes = {item["id"]: item["outcome"] for item in page.items}
    assert outcomes == {
        "asserted": "pass",
        "measured-only": "unasserted",
        "own-metric": "unasserted",
        "all-skipped": "unasserted",
        "nothing": "unasserted",
        "failed": "fail",
    }
    for evaluation_id, outcome in outcomes.items():
        body = await upgraded.evaluation(evaluation_id)
        assert (body["outcome"], body["success"]) == (outcome, outcome == "pass")
