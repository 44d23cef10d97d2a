"""Tokens and cost of a scored dataset, by role: what is not known is unknown, never 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_server import ModelServer, threaded_server
from tests.support.scoring_files import LENGTH_PLAN, CommandResult, Folder, command, rows

SCORE = {"reasoning": "fine", "score": 5}
OWN_MODEL = """
from evalstudio import define_evaluator

@define_evaluator(cost="llm")
async def own_judge(ctx) -> bool:
    return True
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def judged(server: ModelServer, provider: str, model: str) -> dict[str, Any]:
    settings = {"provider": provider, "apiKey": "k", "baseUrl": server.url, "models": {"evaluation": model}}
    tone = {"name": "tone", "description": "It is kind", "scale": "likert5"}
    return {"criteria": [tone], "evaluators": [{"type": "criteria-judge"}], "llmSettings": settings}


def usage(folder: Folder, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, dict[str, Any]]:
    arguments = (folder.path / "records.jsonl", "-c", folder.path / "plan.json", "-o", folder.output)
    shown = json.loads(command(capsys, "score", *arguments, "--json", *more).out)
    return {one["role"]: one for one in shown["usage"]}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_judge_with_a_price_is_summed_over_the_records(
    folder: Folder, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    folder.dataset(rows(6))
    with threaded_server(SCORE) as server:
        folder.plan(judged(server, "openai", "gpt-4o-mini"))
        judge = usage(folder, capsys, "--workers", workers)["judge"]
        asked = len(server.requests)
    assert asked == 6
    lines = [result["usage"] for result in folder.results()]
    assert judge["tokens"] == sum(line["judgeTokens"] for line in lines) > 0
    assert judge["cost"] == pytest.approx(sum(line["judgeCost"] for line in lines))
    assert judge["cost"] > 0
    assert (judge["runsWithTokens"], judge["runsWithCost"]) == (6, 6)


def test_a_judge_without_a_price_is_unknown_in_every_report(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.dataset(rows(3))
    with threaded_server(SCORE) as server:
        folder.plan(judged(server, "local", "judge"))
        judge = usage(folder, capsys, "--report", f"html={folder.path / 'r.html'}")["judge"]
    assert judge["tokens"] > 0
    assert judge["cost"] is None
    line = f"judge: tokens {judge['tokens']:,}, cost unknown"
    assert line in command(capsys, "report", folder.output, "-f", "md").out
    assert line in command(capsys, "report", folder.output, "-f", "terminal").out
    assert "<td>judge</td>" in (folder.path / "r.html").read_text()


def test_an_agent_is_known_by_what_its_records_say(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    used = {"tokensUsage": {"total_tokens": 40}, "metadata": {"cost": 0.25}}
    records = rows(4)
    folder.dataset([*({**row, **used} for row in records[:2]), records[2], {**records[3], "cost": "much"}])
    plan = folder.plan(LENGTH_PLAN)
    said = command(capsys, "score", folder.path / "records.jsonl", "-c", plan).out
    told = "agent: tokens 80 (known of 2 of 4 records), cost $0.5000 (known of 2 of 4 records)"
    assert told in said
    assert "judge:" not in said, "no model was asked"


def test_records_that_say_nothing_leave_the_agent_unknown(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.plan(LENGTH_PLAN)
    folder.dataset(rows(2))
    used = usage(folder, capsys)
    assert (used["agent"]["tokens"], used["agent"]["cost"]) == (None, None)
    assert (used["judge"]["tokens"], used["judge"]["cost"]) == (0, 0.0), "no model was asked"


def test_embeddings_of_a_provider_are_counted(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.dataset(rows(8))
    with threaded_server() as server:
        settings = {"provider": "openai", "apiKey": "k", "baseUrl": server.url}
        models = {"embedding": "text-embedding-3-small"}
        close = {"type": "nlp-accuracy", "config": {"criterionName": "close"}}
        criteria = [{"name": "close", "scale": "numeric"}]
        llm = {**settings, "models": models}
        folder.plan({"criteria": criteria, "evaluators": [close], "llmSettings": llm})
        judge = usage(folder, capsys)["judge"]
        texts = sum(len(request.body["input"]) for request in server.requests)
    assert judge["tokens"] == texts > 0
    assert judge["cost"] > 0


def test_a_plugins_judge_with_a_model_of_its_own_is_unknown(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "own.py").write_text(OWN_MODEL)
    folder.plan({"plugins": ["./own.py"], "evaluators": [{"type": "own-judge"}]})
    folder.dataset(rows(2))
    judge = usage(folder, capsys)["judge"]
    assert (judge["tokens"], judge["cost"]) == (None, None)


def test_results_of_a_version_that_kept_no_usage_are_unknown(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.plan(LENGTH_PLAN)
    folder.score(folder.dataset(rows(2)))
    lines = [{name: item for name, item in one.items() if name != "usage"} for one in folder.results()]
    folder.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = command(capsys, "report", folder.output, "-f", "terminal").out
    assert "agent: tokens unknown, cost unknown" in text
    assert "judge: tokens unknown, cost unknown" in text


def test_what_is_scored_again_is_counted_once(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.dataset(rows(3))
    replies = iter([SCORE, "no", "no", SCORE, SCORE])
    with threaded_server(lambda _: next(replies)) as server:
        plan = judged(server, "openai", "gpt-4o-mini")
        folder.plan({**plan, "concurrency": 1})
        usage(folder, capsys)
        judge = usage(folder, capsys, "--resume", "--retry-errors")["judge"]
    lines = [result["usage"] for result in folder.results()]
    assert len(lines) == judge["runs"] == 3
    assert judge["tokens"] == sum(line["judgeTokens"] for line in lines)


class TestABudget:
    """Judging ends when its budget is used up: cleanly, marked as partial, and resumable."""

    def score(self, folder: Folder, capsys: pytest.CaptureFixture[str], *more: str) -> CommandResult:
        arguments = (folder.path / "records.jsonl", "-c", folder.path / "plan.json", "-o", folder.output)
        return command(capsys, "score", *arguments, *more)

    @pytest.mark.parametrize(
        "limit", [("--max-tokens", "1"), ("--max-cost", "0.000001"), ("--max-time", "0.001")]
    )
    def test_ends_it_and_a_resume_goes_on(
        self, folder: Folder, capsys: pytest.CaptureFixture[str], limit: tuple[str, str]
    ) -> None:
        folder.dataset(rows(40))
        with threaded_server(SCORE) as server:
            folder.plan(judged(server, "openai", "gpt-4o-mini") | {"concurrency": 1})
            ended = self.score(folder, capsys, *limit, "--require", "maxErrors=0", "--json")
            first = len(folder.results())
            assert ended.code == 3, ended.err
            assert 0 < first < 40
            shown = json.loads(ended.out)
            assert (shown["partial"], shown["records"]) == ("budget", first)
            assert shown["notes"][0].startswith("Ended by its budget: ")
            assert "run the same command with --resume" in ended.err
            report = command(capsys, "report", folder.output, "-f", "md")
            assert "Not all records: ended by its budget" in report.out
            rest = self.score(folder, capsys, "--resume", "--json")
            assert len(server.requests) == 40, "nothing is judged twice"
        assert rest.code == 0, rest.err
        assert (json.loads(rest.out)["partial"], json.loads(rest.out)["records"]) == (None, 40)
        assert "ended by its budget" not in command(capsys, "report", folder.output, "-f", "md").out

    def test_counts_what_judges_use_now_not_what_agents_used_then(
        self, folder: Folder, capsys: pytest.CaptureFixture[str]
    ) -> None:
        used = {"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}
        folder.dataset([{**row, "tokensUsage": used} for row in rows(20)])
        folder.plan(LENGTH_PLAN)
        done = self.score(folder, capsys, "--max-tokens", "500", "--json")
        assert (done.code, json.loads(done.out)["partial"]) == (0, None)

    def test_says_what_it_cannot_see(self, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
        (folder.path / "own.py").write_text(OWN_MODEL)
        folder.dataset(rows(3))
        folder.plan({"plugins": ["./own.py"], "evaluators": [{"type": "own-judge"}]})
        done = self.score(folder, capsys, "--max-cost", "1")
        assert "The budget does not cover all cost: unknown for judge" in done.out
