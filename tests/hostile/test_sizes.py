"""Much at once: a million runs to cancel, long documents in a list, JSON that is nested without end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import event, insert
from sqlalchemy.engine import Engine
from tests.support.api_server import Api
from tests.support.stored_runs import claimed, queued

from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import Execution
from evalstudio.storage import pages as page_reading
from evalstudio.storage.opening import open_store
from evalstudio.storage.schema import executions, runs
from evalstudio.storage.store import SqlStore
from evalstudio.storage.transaction import Transaction

JSON = {"Content-Type": "application/json"}


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is sent to the database meanwhile, without what only begins and ends."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.split()[0] in ("UPDATE", "INSERT", "DELETE", "SELECT"):
            sent.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def multiplied(store: SqlStore, number: int) -> Execution:
    """An execution with this many queued runs, made quickly."""
    execution = await queued(store, 1)

    def multiply(unit: Transaction) -> None:
        row = dict(unit.connection.execute(runs.select()).mappings().one())
        rows = ({**row, "id": f"{row['id']}-{place:07}"} for place in range(number - 1))
        unit.connection.execute(insert(runs), list(rows))
        unit.connection.execute(executions.update().values(total=number, queued=number))

    await store.database.write(multiply)
    return execution


class TestCancelling:
    @pytest.mark.parametrize("number", [10, 30_000])
    async def test_any_number_of_runs_takes_the_same_few_statements(
        self, tmp_path: Path, number: int
    ) -> None:
        async with await open_store(StorageSettings(), tmp_path) as store:
            execution = await multiplied(store, number)
            with statements() as sent:
                assert await store.cancel(execution_id=execution.id) == number
            assert len(sent) <= 10, sent
            after = await store.execution(execution.id)
            assert (after.status, after.counts.cancelled, after.counts.queued) == ("cancelled", number, 0)

    @pytest.mark.parametrize("kind", ["sqlite", "postgres"])
    async def test_each_is_counted_and_told_of_once(
        self, tmp_path: Path, kind: str, request: pytest.FixtureRequest
    ) -> None:
        settings = StorageSettings()
        if kind == "postgres":
            dsn: str = request.getfixturevalue("postgres").new_database()
            settings = StorageSettings(type="postgres", connection_string=dsn)
        async with await open_store(settings, tmp_path) as store:
            other, execution = await queued(store, 3), await queued(store, 5)
            held = [one for one in await claimed(store, limit=8) if one.run.execution_id == execution.id]
            before = await store.last_event_id()
            assert await store.cancel(execution_id=execution.id) == 5
            assert await store.cancel(execution_id=execution.id) == 0
            told = await store.events(before)
            assert [one.kind for one in told] == ["run.cancelled"] * 5 + ["execution.cancelled"]
            assert len({one.run_id for one in told[:5]}) == 5
            assert all(one.body == {} for one in told[:5])
            beat = await store.heartbeat([one.lease for one in held], 60)
            assert beat.cancelled == {one.lease.run_id for one in held}
            assert (await store.execution(other.id)).counts.cancelled == 0


class TestLists:
    async def test_a_page_of_long_documents_ends_before_it_is_too_long(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_reading, "LARGEST_PAGE_BYTES", 1_000_000)
        names = [f"persona {number}" for number in range(12)]
        for name in names:
            await api.made("/api/personas", {"name": name, "systemPrompt": "x" * 300_000})
        await api.made("/api/personas", {"name": "enormous", "systemPrompt": "x" * 1_040_000})
        seen: list[str] = []
        cursor, pages = "", 0
        while True:
            answer = await api("GET", f"/api/personas?limit=500{cursor}")
            assert len(answer.text) < 1_100_000
            seen += [one["name"] for one in answer.json["items"]]
            pages += 1
            if answer.json["cursor"] is None:
                break
            cursor = f"&cursor={answer.json['cursor']}"
        assert sorted(seen) == sorted([*names, "enormous"])
        assert pages == 5

    async def test_feedback_too(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(page_reading, "LARGEST_PAGE_BYTES", 10_000)
        store: Any = api.studio.store
        execution = await queued(store, 1)
        [run] = (await store.runs(limit=1)).items
        for _ in range(6):
            await store.add_feedback({"comment": "y" * 4000}, run_id=run.id)
        page = await store.feedback(limit=500)
        assert len(page.items) == 2
        assert page.cursor is not None
        assert execution.counts.total == 1


def nested(depth: int, inside: str = "1") -> str:
    return "[" * depth + inside + "]" * depth


BODIES = {
    "/api/personas": '{"name": "x", "headers": %s}',
    "/api/scenarios": '{"name": "x", "script": ["hi"], "context": {"a": %s}, "successCriteria": "good"}',
    "/api/connectors": '{"name": "x", "type": "http", "baseUrl": "http://127.0.0.1:1", "config": {"a": %s}}',
    "/api/evals": '{"name": "x", "scenarioIds": %s}',
    "/api/executions": '{"evalId": "x", "labels": %s}',
    "/api/runs": '{"scenarioId": %s, "connectorId": "x"}',
    "/api/evaluations": '{"prompt": "a", "response": "b", "context": {"a": %s}}',
    "/api/evaluations/batch": '{"items": %s}',
    "/api/feedback": '{"runId": "x", "values": %s}',
    "/api/session": '{"token": %s}',
}


class TestDeepJson:
    @pytest.mark.parametrize("path", BODIES)
    @pytest.mark.parametrize("depth", [150, 900, 1500])
    async def test_it_is_refused_wherever_it_is_sent(self, api: Api, path: str, depth: int) -> None:
        body = (BODIES[path] % nested(depth)).encode()
        answer = await api("POST", path, raw=body, headers=JSON)
        assert answer.status == 422, answer.text[:500]
        assert "deep" in answer.error["message"]

    async def test_objects_count_like_lists(self, api: Api) -> None:
        deep = '{"a":' * 200 + "1" + "}" * 200
        answer = await api("POST", "/api/evaluations", raw=deep.encode(), headers=JSON)
        assert answer.status == 422
        assert "deep" in answer.error["message"]

    async def test_as_deep_as_files_may_be_is_fine(self, api: Api) -> None:
        scenario = {
            "name": "deep enough",
            "script": ["hi"],
            "context": {"a": orjson.loads(nested(90))},
            "evaluators": [{"type": "latency-budget", "config": {"maxMs": 1000}}],
        }
        made = await api("POST", "/api/scenarios", scenario)
        assert made.status in (201, 422), made.text
        assert "deep" not in made.text[:100]

    async def test_brackets_in_a_text_do_not_count(self, api: Api) -> None:
        made = await api("POST", "/api/personas", {"name": "brackets", "systemPrompt": "[{" * 5000})
        assert made.status == 201
