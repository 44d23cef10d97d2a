"""Which records are scored and where their fields are found: mapping, sampling, limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.scoring_files import LENGTH_PLAN, PLAN, Folder, rows

from evalstudio.scoring import job as streaming
from evalstudio.scoring.datasets import BadRecord
from evalstudio.scoring.rows import RowReader, in_sample


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.plan()
    return made


def ids(folder: Folder) -> list[str]:
    return [result["recordId"] for result in folder.results()]


# -- fields


def test_fields_are_found_where_the_plan_says(folder: Folder) -> None:
    fields = {
        "id": "meta.key",
        "response": "choices[0].message.content",
        "groundTruth": "gold",
        "context.order.id": "order",
        "agentId": "agent.name",
    }
    same = {"type": "lexical-similarity", "name": "same", "config": {"sourceField": "context.order.id"}}
    folder.plan({**PLAN, "fields": fields, "evaluators": [*PLAN["evaluators"], same]})
    row = {
        "meta": {"key": "k1"},
        "choices": [{"message": {"content": "hello"}}],
        "gold": "hello",
        "order": "hello",
        "agent": {"name": "a1"},
    }
    summary = folder.score(folder.dataset([row]))
    assert summary.criteria["close"].mean == 1.0
    result = folder.results()[0]
    assert (result["recordId"], result["agentId"]) == ("k1", "a1")
    assert [item["score"] for item in result["results"]] == [True, 1.0, 1.0]


def test_a_mapped_field_that_is_missing_is_missing_whatever_else_the_row_has(folder: Folder) -> None:
    folder.plan({**LENGTH_PLAN, "fields": {"response": "answer"}})
    folder.dataset([{"answer": "hello"}, {"response": "hello"}])
    with pytest.raises(BadRecord, match=r'records.jsonl:2: has no "answer" field to score'):
        folder.score()


def test_a_column_whose_name_has_dots_is_found_as_it_is(folder: Folder) -> None:
    folder.plan({**LENGTH_PLAN, "fields": {"response": "out.text"}})
    assert folder.score(folder.dataset([{"out.text": "hello"}])).records == 1


def test_columns_nobody_mapped_are_metadata(folder: Folder) -> None:
    same = {"type": "lexical-similarity", "criterionName": "close", "referenceField": "metadata.expected"}
    folder.plan({**PLAN, "evaluators": [same]})
    folder.dataset([{"response": "hello", "expected": "hello", "metadata": {"a": 1}}])
    assert folder.score().criteria["close"].mean == 1.0


def test_a_record_may_bring_its_own_criteria(folder: Folder) -> None:
    folder.plan({"evaluators": PLAN["evaluators"]})
    folder.dataset(
        [{"response": "hello", "criteria": [{"name": "ok"}]}, {"response": "hello", "groundTruth": "x"}]
    )
    summary = folder.score()
    assert [result["overallScore"] for result in folder.results()] == [1.0, None]
    assert summary.overall.count == 1


@pytest.mark.parametrize(
    "row",
    [
        {"response": "x", "prompt": None, "context": None, "metadata": None},
        {"response": "x", "groundTruth": 5, "agentId": "a", "sessionId": "s"},
        {"response": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}},
        {"response": "x", "messageHistory": [{"role": "user", "content": "hi"}], "latencyMs": 5},
        {"response": ""},
        {"response": 0},
        {"response": False},
    ],
)
def test_rows_in_many_shapes_become_records(row: dict[str, Any]) -> None:
    record = RowReader([], {}).record(3, row)
    assert record.id == "3"
    assert record.facts.is_final


def test_the_quick_and_the_careful_way_read_a_row_alike() -> None:
    reader = RowReader([], {})
    row = {"id": "a", "prompt": "p", "response": "r", "groundTruth": "g", "context": {"k": 1}, "agentId": "x"}
    quick, careful = reader.record(1, row), reader.record(1, {**row, "latencyMs": 0})
    for name in ("ground_truth", "context", "metadata", "given_response", "given_prompt", "is_final"):
        assert getattr(quick.facts, name) == getattr(careful.facts, name)
    assert quick.facts.messages == careful.facts.messages
    assert (quick.id, quick.agent_id, quick.session_id) == (careful.id, careful.agent_id, careful.session_id)


# -- samples


def test_a_sample_is_the_same_whatever_the_order_and_the_run(folder: Folder) -> None:
    given = rows(2000)
    folder.score(folder.dataset(given), share=0.1)
    first = ids(folder)
    folder.score(folder.dataset(reversed(given)), share=0.1)
    assert sorted(ids(folder)) == sorted(first)
    folder.score(folder.dataset(given[:1000]), share=0.1)
    assert ids(folder) == [one for one in first if int(one[1:]) < 1000]


def test_a_sample_is_close_to_its_share_and_counted(folder: Folder) -> None:
    summary = folder.score(folder.dataset(rows(10_000)), share=0.05)
    assert 400 < summary.records < 600
    assert summary.records + summary.unsampled == 10_000
    assert summary.to_json()["notSampled"] == summary.unsampled


def test_a_larger_sample_holds_the_smaller_one_and_another_seed_draws_another() -> None:
    names = [f"r{n}" for n in range(3000)]
    small, large = ({n for n in names if in_sample(n, share, "0")} for share in (0.1, 0.3))
    assert small < large
    other = {n for n in names if in_sample(n, 0.1, "1")}
    assert 5 < len(small & other) < 100


@given(st.text(), st.text())
def test_nothing_is_in_no_sample_and_everything_in_the_whole(record_id: str, seed: str) -> None:
    safe = record_id.encode("utf-8", "replace").decode()
    seed = seed.encode("utf-8", "replace").decode()
    assert in_sample(safe, 1.0, seed)
    assert not in_sample(safe, 0.0, seed)


# -- limits


@pytest.mark.parametrize(("limit", "workers"), [(1, 1), (7, 1), (400, 1), (999, 1), (400, 2)])
def test_no_more_records_are_scored_than_the_limit(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, limit: int, workers: int
) -> None:
    monkeypatch.setattr(streaming, "CHUNK_BYTES", 4096)
    summary = folder.score(folder.dataset(rows(600)), limit=limit, workers=workers)
    assert summary.records == min(limit, 600)
    assert ids(folder) == [f"r{n}" for n in range(min(limit, 600))]


def test_a_limit_counts_chosen_records_and_no_bad_ones_after_it(folder: Folder) -> None:
    good = b'{"id": "%d", "response": "hello", "groundTruth": "x"}\n'
    content = b"oops\n" + b"".join(good % n for n in range(5)) + b"oops\n"
    summary = folder.score(folder.dataset(content), limit=3, skip_bad=True)
    assert (summary.records, summary.bad) == (3, 1)
    both = folder.score(folder.dataset(rows(1000)), limit=20, share=0.2)
    assert both.records == 20
    assert both.unsampled > 20


def test_a_bad_record_after_the_limit_does_not_matter(folder: Folder) -> None:
    content = b'{"response": "hello", "groundTruth": "x"}\n' * 3 + b"oops\n"
    assert folder.score(folder.dataset(content), limit=3).records == 3
    with pytest.raises(BadRecord, match=r"records\.jsonl:4"):
        folder.score(folder.dataset(content), limit=4)


def test_only_chooses_among_the_evaluators_of_the_plan(folder: Folder) -> None:
    folder.plan({**PLAN, "evaluators": [*PLAN["evaluators"], {"type": "nlp-accuracy"}]})
    summary = folder.score(folder.dataset(rows(3)), only=["fast"])
    assert summary.records == 3
    assert all(len(result["results"]) == 2 for result in folder.results())


# -- odd values in results


def test_an_odd_value_from_an_evaluator_never_costs_the_run(folder: Folder) -> None:
    (folder.path / "odd.py").write_text(
        "from evalstudio import EvaluationResult, define_evaluator\n"
        "@define_evaluator(kind='metric')\n"
        "def odd(ctx):\n"
        "    return EvaluationResult.measured(1e308, half='\\ud800', big=10**30, keys={1: {2}}, call=print)\n"
    )
    folder.plan({"plugins": ["./odd.py"], "evaluators": [{"type": "odd"}]})
    summary = folder.score(folder.dataset(rows(3)))
    assert summary.records == 3
    assert summary.metrics["odd"].count == 3
    metadata = folder.results()[0]["results"][0]["metadata"]
    assert metadata == {"half": "\ufffd", "big": str(10**30), "keys": {"1": [2]}}


# -- processes


def test_only_a_large_file_without_models_is_scored_by_all_processors(folder: Folder) -> None:
    small, large = folder.dataset(rows(5)), folder.path / "large.jsonl"
    with large.open("wb") as file:
        # Of a size, and yet next to nothing on the disk.
        file.truncate(100_000_000)
    processors = min(8, len(os.sched_getaffinity(0)))
    runner = streaming.set_up(folder.job()).runner

    def chosen(dataset: Path, **settings: Any) -> int:
        return streaming.workers_of(folder.job(dataset, workers=None, **settings), runner)

    assert chosen(large) == processors
    assert [chosen(small), chosen(large, limit=10), chosen(large, share=0.05)] == [1, 1, 1]
    folder.plan({"evaluators": [{"type": "nlp-accuracy"}]})
    runner = streaming.set_up(folder.job()).runner
    assert chosen(large) == 1
    folder.plan()
    assert folder.score(workers=None).records == 5
