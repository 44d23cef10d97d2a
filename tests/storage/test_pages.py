"""Rows read in one step are the rows that were stored, and lists in JSON are what their entities say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import Text, bindparam, literal, select, update
from tests.support.stored_runs import claimed, ending, new_run, queued

from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import Execution
from evalstudio.project.requirements import Budget, Requirement
from evalstudio.storage.contract import Filters
from evalstudio.storage.errors import DamagedRow
from evalstudio.storage.opening import DEFAULT_PATH, open_store
from evalstudio.storage.pages import RowsQuery
from evalstudio.storage.schema import executions, outputs, runs
from evalstudio.storage.store import SqlStore
from evalstudio.storage.transaction import Transaction

NUMBERS = [0.1 + 0.2, 1 / 3, 1e-300, 1.7976931348623157e308, 5e-324, 12345678901234.567, 1.0]
TEXTS = ['"quoted" \\ and \n lines', "Zürich 🦉 \u2028", "\x01\x1f\x7f", "]}[{,", "", "null"]


@pytest.fixture
async def filled(store: SqlStore) -> SqlStore:
    await queued(store, len(NUMBERS))
    for number, one in zip(NUMBERS, await claimed(store, limit=len(NUMBERS)), strict=True):
        await store.finish(one.lease, ending(latency_ms=number, judge_cost=number))
    for outcome in ("fail", "error", "unasserted"):
        await queued(store, 2)
        [one] = await claimed(store)
        await store.finish(one.lease, ending(outcome, error="it broke" if outcome == "error" else None))
    needs: Any = {"requirements": [Requirement(pass_rate=0.5)], "budget": Budget(max_tokens=5)}
    await store.enqueue(Execution(**needs), [new_run(scenario_name=text or "none") for text in TEXTS])
    return store


async def test_rows_keep_every_digit_and_character(filled: SqlStore) -> None:
    columns = (runs.c.id, runs.c.latency_ms, runs.c.scenario_name, runs.c.case)
    plain: Any = select(*columns).order_by(runs.c.id)
    query = RowsQuery(plain)
    one_step = await filled.database.read(lambda unit: [tuple(row) for row in query.all(unit)])
    row_by_row = await filled.database.read(
        lambda unit: [tuple(row) for row in unit.connection.execute(plain)]
    )
    assert one_step == row_by_row
    assert {repr(row[1]) for row in one_step} >= {repr(number) for number in NUMBERS}


async def test_rows_take_values_and_may_be_none(filled: SqlStore) -> None:
    by_eval = RowsQuery(select(executions.c.deleting).where(executions.c.eval_id == bindparam("eval")))
    some = await filled.database.read(lambda unit: by_eval.all(unit, {"eval": "e1"}))
    none = await filled.database.read(lambda unit: by_eval.all(unit, {"eval": "e1'"}))
    assert [row.deleting for row in some] == [False] * 4
    assert list(none) == []


FILTERS = [
    Filters(),
    Filters(status="queued"),
    Filters(status="error"),
    Filters(outcome="pass", eval_id="e1", scenario_id="s1"),
    Filters(text="book"),
    Filters(eval_id="nothing"),
]


@pytest.mark.parametrize("filters", FILTERS)
async def test_the_json_of_a_page_is_what_its_entities_say(filled: SqlStore, filters: Filters) -> None:
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        page = await filled.runs(filters, cursor=cursor, limit=7)
        text = await filled.run_page_json(filters, cursor=cursor, limit=7)
        assert orjson.loads(text) == {
            "items": [run.model_dump(mode="json", by_alias=True) for run in page.items],
            "cursor": page.cursor,
        }
        cursor, pages = page.cursor, pages + 1


async def test_so_is_the_json_of_executions(filled: SqlStore) -> None:
    page = await filled.executions(limit=50)
    text = await filled.execution_page_json(Filters(), cursor=None, limit=50)
    assert orjson.loads(text)["items"] == [one.model_dump(mode="json", by_alias=True) for one in page.items]
    assert len(page.items) == 5


async def test_so_is_the_json_of_a_run(filled: SqlStore) -> None:
    for run in (await filled.runs(limit=50)).items:
        whole = await filled.run(run.id)
        assert orjson.loads(await filled.run_json(run.id)) == whole.model_dump(mode="json", by_alias=True)


async def test_a_damaged_document_is_named_and_others_are_read(
    filled: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (await filled.executions(Filters(eval_id="e1"))).items[-1].id
    whole = await filled.runs_with_outputs(listed)
    # Too long for one text, rows come one by one and say the same.
    monkeypatch.setattr("evalstudio.storage.pages.LARGEST_PAGE_BYTES", 10)
    assert await filled.runs_with_outputs(listed) == whole
    monkeypatch.undo()
    page = await filled.results_of(listed, limit=3)
    for text in ("{", "1,2", '{"a": 1}\n'):
        damaged = update(outputs).where(outputs.c.run_id == page.items[-1].id)
        raw = damaged.values(output=literal(text, Text))
        await filled.database.write(lambda unit, raw=raw: unit.connection.execute(raw) and None)
        if text.startswith('{"'):
            assert (await filled.results_of(listed, limit=3)).items[-1].output == {"a": 1}
            continue
        with pytest.raises(DamagedRow, match="A stored document is damaged"):
            await filled.results_of(listed, limit=3)
        assert (await filled.results_of(listed, limit=1)).items == page.items[:1]


async def test_statements_of_one_operation_see_one_moment(tmp_path: Path) -> None:
    names = RowsQuery(select(runs.c.scenario_name))
    async with await open_store(StorageSettings(), tmp_path) as store:
        await queued(store, 1)

        def twice(unit: Transaction) -> list[str]:
            before = names.all(unit)
            with closing(sqlite3.connect(tmp_path / DEFAULT_PATH)) as other, other:
                other.execute("UPDATE runs SET scenario_name = 'Changed meanwhile'")
            return [row.scenario_name for row in (*before, *names.all(unit))]

        first, second = await store.database.read(twice)
    assert first == second != "Changed meanwhile"
