"""``/api/scoring``: datasets are scored, and results found, opened and compared; nothing outside is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ServerThread, serving
from tests.support.projects import apply_project, make_project, scripted
from tests.support.scoring_files import PLAN, rows

from evalstudio.client import Client, ServerError
from evalstudio.execution.comparing_results import compare_results
from evalstudio.execution.scorings import ScoringRequest, Scorings
from evalstudio.execution.workspace import open_workspace
from evalstudio.scoring.job import ScoringJob, score_dataset
from evalstudio.storage.contract import IdempotencyKey


def _scored(folder: Path, name: str, answers: str) -> None:
    (folder / "plan.json").write_text(json.dumps(PLAN))
    records = [{**one, "response": answers} for one in rows(4)]
    (folder / f"{name}.data.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    score_dataset(
        ScoringJob(folder / f"{name}.data.jsonl", folder / "plan.json", output=folder / f"{name}.jsonl")
    )


async def test_results_of_score_are_opened_and_compared(tmp_path: Path) -> None:
    config = make_project(tmp_path / "project", [scripted("s", "hi")])
    apply_project(config)
    folder = config.parent
    _scored(folder, "before", "answer 1")
    _scored(folder, "after", "no")
    (tmp_path / "outside.jsonl").write_text("{}\n")
    (folder / "other.jsonl").write_text('{"no": "result"}\n')
    async with serving(config) as api:
        found = await api.found("/api/scoring/files")
        assert {one["path"] for one in found} == {"before.jsonl", "after.jsonl"}
        opened = await api.found("/api/scoring/results?path=after.jsonl")
        assert opened["summary"]["outcomes"]["fail"] == 4
        close = opened["summary"]["criteria"]["close"]
        assert (close["n"], close["coverage"], len(close["histogram"]), len(close["interval"])) == (
            4,
            1,
            10,
            2,
        )
        assert [one["recordId"] for one in opened["records"]] == ["r0", "r1", "r2", "r3"]
        assert {one["reasons"][0]["reason"] for one in opened["records"]} == {"2 characters, fewer than 3"}
        passed = await api.found("/api/scoring/results?path=after.jsonl&outcome=pass")
        assert (passed["records"], passed["moreRecords"], passed["summary"]["records"]) == ([], 0, 4)

        one = await api.found("/api/scoring/results?path=after.jsonl&record=r2")
        assert ([row["recordId"] for row in one["records"]], one["summary"]["records"]) == (["r2"], 4)

        compared = await api.found("/api/compare?base=before.jsonl&candidate=after.jsonl")
        assert (compared["base"]["id"], compared["counts"]["regressed"]) == ("before.jsonl", 4)
        assert compared["base"]["isResultsFile"]
        printed = compare_results(folder / "before.jsonl", folder / "after.jsonl")
        assert compared["measures"] == printed.model_dump(mode="json", by_alias=True)["measures"]
        for other in ("../outside.jsonl", "x" * 300):
            missing = await api("GET", f"/api/compare?base=before.jsonl&candidate={other}")
            assert missing.status in (404, 422), missing.text
        for path in ("../outside.jsonl", str(tmp_path / "outside.jsonl"), "missing.jsonl", "other.jsonl"):
            answer = await api("GET", f"/api/scoring/results?path={path}")
            assert answer.status in (400, 422), path


PLAN_YAML = """\
# what support must say
criteria:
  - name: ok
    scale: binary
evaluators:
  - type: rule-based
    config: {rules: [{criterionName: ok, type: length, min: 3}]}
thresholds: {ok: 0.9}
"""
LINES = "".join(json.dumps(one) + "\n" for one in rows(4))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path]]:
    """A server on a project with a dataset, a plan, and files that are neither."""
    folder = tmp_path_factory.mktemp("scored") / "project"
    config = make_project(folder, [scripted("s", "hi")])
    apply_project(config)
    (folder / "answers.jsonl").write_text(LINES)
    (folder / "plans").mkdir()
    (folder / "plans" / "plan.yaml").write_text(PLAN_YAML)
    (folder / "plans" / "keyed.yaml").write_text(PLAN_YAML + "llmSettings: {apiKey: sk-very-secret}\n")
    (folder / "notes.yaml").write_text("shopping: [milk]\n")
    server = ServerThread(config)
    server.wait_ready()
    with Client(server.url) as client:
        yield client, folder
    server.stop()


def _refused(client: Client, method: Any, path: str, body: Any = None) -> ServerError:
    with pytest.raises(ServerError) as refusal:
        client.call(method, path, body=body)
    return refusal.value


def test_datasets_and_plans_of_the_project_are_listed_and_read(shop: tuple[Client, Path]) -> None:
    client, _ = shop
    sources = client.call("GET", "/api/scoring/sources")
    assert [one["path"] for one in sources["datasets"]] == ["answers.jsonl"]
    assert {one["path"] for one in sources["plans"]} == {"plans/plan.yaml", "plans/keyed.yaml"}
    plain = client.scorings.plan("plans/plan.yaml")
    assert (plain.text, plain.masked, plain.problems) == (PLAN_YAML, False, [])
    keyed = client.scorings.plan("plans/keyed.yaml")
    assert (keyed.masked, keyed.problems) == (True, [])
    assert "sk-very-secret" not in keyed.model_dump_json()
    for path in (
        "notes.yaml",
        "evalstudio.config.json",
        "../x.yaml",
        "data/secret.key",
        "answers.jsonl",
        f"{'x' * 300}.yaml",
    ):
        assert _refused(client, "GET", f"/api/scoring/plan?path={path}").status == 422, path


@pytest.mark.parametrize(
    ("text", "path", "line", "message"),
    [
        ("criteria: [", "", 2, "not valid YAML"),
        ("", "", None, "expected an object"),
        ("criteria: []\nevaluators: []\n", "evaluators", 2, "at least one evaluator"),
        ("evaluators:\n- type: regexx\n", "evaluators[0].type", 2, "regexx"),
        ("evaluators:\n- type: regex\n  config: {pattern: '('}\n", "evaluators[0].config", 3, "bad pattern"),
        (PLAN_YAML.replace("{ok:", "{okay:"), "thresholds.okay", 8, "no criterion"),
        (PLAN_YAML.replace("criterionName: ok", "criterionName: good"), "", 7, "not among the plan's"),
        ("evaluators: [{type: llm-judge, successCriteria: x}]\n", "", 1, "asks a language model"),
        # Code and addresses come from files of the project, and so do plans that are extended.
        (PLAN_YAML + "plugins: [./evil.py]\n", "plugins", 9, "cannot be set here"),
        (PLAN_YAML + "llmSettings: {baseUrl: 'http://evil'}\n", "llmSettings", 9, "cannot be set here"),
        (PLAN_YAML + "extends: ../outside.yaml\n", "extends", 9, "may not be extended"),
        (PLAN_YAML + "extends: data/scorings/x/dataset.jsonl\n", "extends", 9, "may not be extended"),
    ],
)
def test_a_plan_is_checked_as_it_is_written(
    shop: tuple[Client, Path], text: str, path: str, line: int | None, message: str
) -> None:
    checked = shop[0].scorings.check_plan(text)
    problem = checked.problems[0].model_dump()
    assert message in problem["message"], problem
    assert problem["line"] == line, problem
    assert problem["path"].startswith(path), problem


def test_a_plan_is_text_and_settings(shop: tuple[Client, Path]) -> None:
    client, _ = shop
    read = client.scorings.check_plan(PLAN_YAML)
    assert read.plan is not None
    assert (read.problems, read.plan["thresholds"]) == ([], {"ok": 0.9})
    written = client.scorings.check_plan(read.plan)
    assert (written.problems, written.plan) == ([], read.plan)
    assert written.text.startswith("criteria:\n")


def test_a_dataset_is_scored_from_files_and_from_what_is_sent(shop: tuple[Client, Path]) -> None:
    client, folder = shop
    request = {"dataset": "answers.jsonl", "plan": "plans/plan.yaml"}
    named = client.scorings.start(key="once", **request)
    assert client.scorings.start(key="once", **request).id == named.id
    sent = client.scorings.start(
        upload={"name": "my answers.jsonl", "text": LINES + "not json\n"},
        planText="extends: plans/plan.yaml\n",
        skipBad=True,
    )
    done = [client.scorings.wait(one.id, timeout=60) for one in (named, sent)]
    assert [(one.status, one.problems, one.standing) for one in done] == [("done", [], "met")] * 2
    assert [(one.records, one.bad) for one in done] == [(4, 0), (4, 1)]
    assert done[1].left_out[0].startswith("line 5: ")
    assert done[1].id.startswith("my-answers-2")
    assert {one.id for one in client.scorings.list()} >= {one.id for one in done}
    assert {one.results for one in done} <= {one.path for one in client.scorings.files()}
    results = client.scorings.results(done[1].results)
    assert results.summary["outcomes"]["pass"] == 4
    assert str(folder) not in (folder / done[1].results).read_text()
    compared = client.compare(*(one.results for one in done))
    assert compared.counts["unchanged"] == 4
    assert client.call("GET", f"/api/scoring/plan?path={sent.plan_copy}")["text"].startswith("extends")
    with pytest.raises(ServerError, match="used for another request"):
        client.scorings.start(key="once", **request, limit=1)
    client.scorings.delete(named.id)
    with pytest.raises(ServerError, match="was deleted since"):
        client.scorings.start(key="once", **request)
    client.scorings.delete(sent.id)
    assert not (folder / done[1].results).exists()
    assert _refused(client, "GET", f"/api/scoring/jobs/{sent.id}").status == 404


def test_what_cannot_be_scored_is_refused_or_says_why(shop: tuple[Client, Path]) -> None:
    client, _ = shop
    lines = {"name": "a.jsonl", "text": LINES}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"dataset": "../a.jsonl", "plan": "plans/plan.yaml"}, "dataset"),
        ({"dataset": "data/secret.key", "plan": "plans/plan.yaml"}, "dataset"),
        ({"dataset": "missing.jsonl", "plan": "plans/plan.yaml"}, "dataset"),
        ({"dataset": f"{'x' * 300}.jsonl", "plan": "plans/plan.yaml"}, "dataset"),
        ({"upload": {**lines, "name": "a.parquet"}, "plan": "plans/plan.yaml"}, "upload.name"),
        ({"upload": {**lines, "text": " \n"}, "plan": "plans/plan.yaml"}, "upload.text"),
        ({"upload": lines, "plan": "/etc/passwd"}, "plan"),
        ({"upload": lines, "plan": "answers.jsonl"}, "plan"),
        ({"upload": lines, "planText": "evaluators: []"}, "planText.evaluators"),
        ({"upload": lines, "dataset": "answers.jsonl", "plan": "plans/plan.yaml"}, ""),
        ({"upload": lines}, ""),
    ]
    for body, path in wrong:
        refusal = _refused(client, "POST", "/api/scoring/jobs", body)
        assert (refusal.status, refusal.details[0]["path"]) == (422, path), refusal
    broken = {"upload": {"name": "a.jsonl", "text": "not json\n"}, "plan": "plans/plan.yaml"}
    failed = client.scorings.wait(client.scorings.start(**broken).id, timeout=60)
    assert failed.status == "failed"
    assert failed.problems[0].startswith(f"data/scorings/{failed.id}/dataset.jsonl:1: ")


def test_a_scoring_is_cancelled_and_one_that_the_server_lost_says_so(shop: tuple[Client, Path]) -> None:
    client, folder = shop
    (folder / "slow.py").write_text(
        "import time\nfrom evalstudio import EvaluationResult, define_evaluator\n"
        "@define_evaluator()\ndef slow(ctx) -> EvaluationResult:\n"
        "    time.sleep(600)\n    return EvaluationResult.passed('at last')\n"
    )
    (folder / "plans" / "slow.yaml").write_text("plugins: [../slow.py]\nevaluators: [{type: slow}]\n")
    request = {"dataset": "answers.jsonl", "plan": "plans/slow.yaml"}
    started, other = client.scorings.start(**request), client.scorings.start(**request)
    assert (started.status, started.share) == ("running", 0)
    assert _refused(client, "POST", "/api/scoring/jobs", request).status == 409
    assert _refused(client, "DELETE", f"/api/scoring/jobs/{other.id}").status == 409
    cancelled = client.scorings.cancel(started.id)
    assert cancelled.status == "cancelled"
    assert cancelled.ended_at is not None
    assert client.scorings.cancel(started.id) == cancelled
    state = folder / "data" / "scorings" / started.id / "scoring.json"
    state.write_text(state.read_text().replace('"cancelled"', '"running"'))
    assert client.scorings.get(started.id).status == "interrupted"


async def test_the_same_request_twice_at_once_is_one_scoring(tmp_path: Path) -> None:
    config = make_project(tmp_path / "project", [scripted("s", "hi")])
    apply_project(config)
    (config.parent / "plan.json").write_text(json.dumps(PLAN))
    (config.parent / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows(2)))
    async with open_workspace(config) as workspace:
        scorings = Scorings(workspace)
        once, request = IdempotencyKey("key", "print"), ScoringRequest("answers.jsonl", plan="plan.json")
        started = await asyncio.gather(*(scorings.start(request, once=once) for _ in range(3)))
        assert len({one.id for one in started}) == 1
        # Two rows may be scored before the last is answered.
        assert {one.status for one in started} <= {"running", "done"}
        assert [one.id for one in await scorings.list()] == [started[0].id]
        await scorings.stop()
