"""Every index is used by some query, and no list walks through a whole table for want of one."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from tests.storage.test_store_monitoring import advanced, review
from tests.support.stored_runs import claimed, ending, queued, turn

from evalstudio.project.config import StorageSettings
from evalstudio.storage import prepared, schema
from evalstudio.storage.contract import Filters
from evalstudio.storage.opening import DEFAULT_PATH, open_store
from evalstudio.storage.production import ConversationLimits, NewSpan
from evalstudio.storage.store import SqlStore

Statement = tuple[str, Any]


async def use_everything(store: SqlStore) -> None:
    execution = await queued(store, 4)
    one, two, three = await claimed(store, limit=3)
    await store.append_turn(one.lease, turn())
    await store.finish(one.lease, ending("error"))
    await store.heartbeat([two.lease], 60)
    await store.release([two.lease])
    await store.runs(Filters(execution_id=execution.id))
    await store.runs(Filters(eval_id="e1"))
    await store.runs(Filters(scenario_id="s1"))
    await store.runs(Filters(persona_id="p1"))
    await store.runs(Filters(connector_id="c1"))
    await store.runs(Filters(outcome="error"))
    await store.runs(Filters(status="cancelled"))
    await store.retry(execution_id=execution.id)
    await store.cancel(run_ids=[three.lease.run_id])
    await store.add_feedback({}, run_id=one.lease.run_id)
    await store.feedback(run_id=one.lease.run_id)
    evaluation = await store.save_evaluation({"agentId": "a", "sessionId": "s"})
    await store.feedback(evaluation_id=evaluation)
    await store.evaluations(Filters(agent_id="a"))
    await store.evaluations(Filters(session_id="s"))
    await store.keep_review(review(), advanced)
    await store.monitored_counts("m1", 0, 2, 1)
    await store.alarms("m1")
    await store.claim_alarms(1000, 5)
    await store.delete_execution(execution.id)
    await store.prune(timedelta(days=1))
    await store.add_spans([NewSpan(b"1" * 24, b"1" * 16, None, b"", 0)], ConversationLimits(9, 9))
    await store.claim_conversations("w", 0, 5, 1000)
    await store.conversation_holders()
    await store.bodies_of("c")
    await store.continue_conversation("c", "head")
    await store.prune_conversations(timedelta(seconds=-5))


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Any:
    """All statements that are run, those that go straight to the driver among them."""
    seen: list[Statement] = []
    arguments: Any = prepared._Compiled.arguments

    def prepare(compiled: Any, values: Any) -> list[Any]:
        seen.append((compiled.text, arguments(compiled, values)))
        return seen[-1][1]

    monkeypatch.setattr(prepared._Compiled, "arguments", prepare)

    def remember(_: object, __: object, text: str, parameters: Any, ___: object, many: bool) -> None:
        seen.append((text, parameters[0] if many else parameters))

    event.listen(Engine, "before_cursor_execute", remember)
    yield seen
    event.remove(Engine, "before_cursor_execute", remember)


def test_every_index_is_used_and_none_is_missing(tmp_path: Path, statements: list[Statement]) -> None:
    async def main() -> None:
        async with await open_store(StorageSettings(), tmp_path) as store:
            # Migrations may read tables as they were.
            statements.clear()
            await use_everything(store)

    asyncio.run(main())
    plans: list[str] = []
    with closing(sqlite3.connect(tmp_path / DEFAULT_PATH)) as connection:
        for text, parameters in dict(statements).items():
            if text.startswith(("SELECT", "UPDATE", "DELETE")):
                plans += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]
    declared = {index.name for table in schema.metadata.tables.values() for index in table.indexes}
    unused = {name for name in declared if not any(f"INDEX {name} " in f"{plan} " for plan in plans)}
    assert unused == set()
    walked = {
        plan for plan in plans if plan in ("SCAN turns", "SCAN messages", "SCAN outputs", "SCAN feedback")
    }
    assert walked <= {"SCAN feedback"}
