"""Datasets judged by models that misbehave: every record ends with a score or a named error, none is lost."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_server import DROP, HANG, ModelServer, Recorded, refusal, threaded_server
from tests.support.scoring_files import Folder, command, rows

from evalstudio.llm import embeddings
from evalstudio.llm.embeddings import LocalEmbedder

RECORDS = 30
TONE = {"name": "tone", "description": "It is kind", "scale": "likert5"}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def judged(server: ModelServer, **settings: Any) -> dict[str, Any]:
    llm = {
        "provider": "local",
        "apiKey": "k",
        "baseUrl": server.url,
        "models": {"evaluation": "judge"},
        # Nothing here is late by itself, however busy the machine is.
        "timeoutSeconds": 120,
        "totalTimeoutSeconds": 600,
        "maxRetries": 3,
        **settings,
    }
    return {"criteria": [TONE], "evaluators": [{"type": "criteria-judge"}], "llmSettings": llm}


class Moody:
    """Fails the first time a record is asked about, in one of five ways; one record in ten always fails."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()
        self.lock = threading.Lock()

    def __call__(self, request: Recorded) -> Any:
        found = re.search(r"answer (\d+)", request.texts[1])
        assert found is not None
        number = int(found[1])
        with self.lock:
            self.asked[number] += 1
            first = self.asked[number] == 1
        if number % 10 == 9:
            return "I cannot say."
        if not first:
            return {"reasoning": "fine", "score": 5}
        return {
            0: {"reasoning": "fine", "score": 5},
            1: "certainly! my score is",
            2: refusal(429, "slow down", retry_after="0.05"),
            3: 500,
            4: DROP,
        }[number % 5]


def settle(folder: Folder, said: str) -> None:
    results = folder.results()
    assert [result["recordId"] for result in results] == [f"r{n}" for n in range(RECORDS)]
    for number, result in enumerate(results):
        item = result["results"][0]
        if number % 10 == 9:
            assert "no usable answer, twice" in item["error"]
            assert item["metadata"]["reply"] == "I cannot say."
            assert "score" not in item
            assert result["outcome"] == "error"
        else:
            assert item["score"] == 5
    counted = re.search(r"models were asked again (\d+) times", said)
    assert counted is not None
    # One more try for each record that failed at first, one repair for each that always fails.
    assert int(counted[1]) == RECORDS * 4 // 5 - RECORDS // 10 + RECORDS // 10
    assert "3 × judge (" in said


@pytest.mark.parametrize("workers", [1, 2])
def test_a_moody_judge_costs_no_record_and_its_retries_are_counted(
    folder: Folder, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    with threaded_server(Moody()) as server:
        plan = folder.plan(judged(server))
        dataset = folder.dataset(rows(RECORDS))
        said = command(capsys, "score", dataset, "-c", plan, "-o", folder.output, "--workers", str(workers))
    assert said.code == 3, "errors leave it undecided"
    settle(folder, said.out)


def test_a_judge_that_is_down_leaves_a_named_error_on_every_record(folder: Folder) -> None:
    with threaded_server(503) as server:
        folder.plan(judged(server, maxRetries=0))
        summary = folder.score(folder.dataset(rows(10)))
    assert summary.outcomes == {"pass": 0, "fail": 0, "error": 10, "unasserted": 0}
    assert summary.criterion_errors == {"tone": 10}
    assert all("503" in result["results"][0]["error"] for result in folder.results())
    assert summary.to_json()["criteria"]["tone"] == {
        "mean": None,
        "n": 0,
        "coverage": 0.0,
        "errors": 10,
        "histogram": [0] * 10,
    }


def test_a_judge_that_hangs_leaves_a_named_error_on_every_record(folder: Folder) -> None:
    with threaded_server(HANG) as server:
        folder.plan(judged(server, maxRetries=0, timeoutSeconds=0.1))
        summary = folder.score(folder.dataset(rows(5)))
    assert summary.outcomes["error"] == 5
    assert all("did not answer within 0.1 s" in result["results"][0]["error"] for result in folder.results())


def test_fast_evaluators_keep_their_results_beside_a_failing_judge(folder: Folder) -> None:
    with threaded_server(500) as server:
        plan = judged(server, maxRetries=0)
        plan["evaluators"].append({"type": "response-length", "name": "size"})
        folder.plan(plan)
        summary = folder.score(folder.dataset(rows(5)))
    assert summary.metrics["size"].count == 5


def test_no_more_records_are_asked_about_than_the_limit(folder: Folder) -> None:
    for workers in (1, 2):
        with threaded_server({"reasoning": "x", "score": 3}) as server:
            folder.plan(judged(server))
            assert folder.score(folder.dataset(rows(500)), limit=5, workers=workers).records == 5
            assert len(server.requests) == 5


def test_no_more_records_wait_for_the_judge_at_once_than_the_plan_allows(folder: Folder) -> None:
    with threaded_server({"reasoning": "x", "score": 3}) as server:
        folder.plan({**judged(server), "concurrency": 3})
        folder.score(folder.dataset(rows(30)))
        assert server.peak <= 3


# -- embeddings


@pytest.fixture
def patient_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are asked about at the same time share a call, however busy the machine is."""
    monkeypatch.setattr(embeddings, "_PAUSE_SECONDS", 0.05)


def close_plan(**more: Any) -> dict[str, Any]:
    entry = {"type": "nlp-accuracy", "config": {"criterionName": "close"}}
    return {"criteria": [{"name": "close", "scale": "numeric"}], "evaluators": [entry], **more}


@pytest.mark.usefixtures("patient_batches")
def test_texts_of_a_dataset_are_embedded_in_batches(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    embed = LocalEmbedder.embed

    async def counted(self: LocalEmbedder, texts: Sequence[str], *, model: str | None = None) -> Any:
        asked.append(len(texts))
        return await embed(self, texts, model=model)

    monkeypatch.setattr(LocalEmbedder, "embed", counted)
    folder.plan(close_plan())
    summary = folder.score(folder.dataset(rows(640)))
    # The record whose answer is the reference needs no model.
    assert sum(asked) == 2 * 639
    assert len(asked) <= 640 / 16
    assert summary.records == 640
    assert folder.results()[1]["overallScore"] == 1.0
    assert all(0 < result["overallScore"] <= 1 for result in folder.results())


@pytest.mark.usefixtures("patient_batches")
def test_a_providers_embeddings_are_asked_for_in_batches(folder: Folder) -> None:
    with threaded_server() as server:
        folder.plan(
            close_plan(
                llmSettings={
                    "provider": "openai",
                    "apiKey": "k",
                    "baseUrl": server.url,
                    "models": {"embedding": "small"},
                }
            )
        )
        summary = folder.score(folder.dataset(rows(96)))
        assert len(server.requests) <= 12
        assert {request.body["model"] for request in server.requests} == {"small"}
    assert summary.criteria["close"].count == 96


def test_embeddings_that_fail_leave_named_errors(folder: Folder) -> None:
    with threaded_server(500) as server:
        settings = {"provider": "openai", "apiKey": "k", "baseUrl": server.url, "maxRetries": 0}
        folder.plan(close_plan(llmSettings={**settings, "models": {"embedding": "small"}}))
        summary = folder.score(folder.dataset(rows(20)))
    assert summary.criterion_errors == {"close": 19}
    assert summary.criteria["close"].count == 1
