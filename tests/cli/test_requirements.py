"""Requirements, budgets and reports on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from tests.cli.conftest import Done, Typed
from tests.support.projects import apply_project, calls, make_project, scripted

Run = Callable[..., Done]


@pytest.fixture
def run(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def go(folder: Path, *arguments: str) -> Done:
        monkeypatch.chdir(folder)
        return typed(*arguments, code=None)

    return go


def project(folder: Path, *scenarios: dict[str, Any], **of_eval: Any) -> Path:
    """A project whose eval has further fields."""
    config = make_project(folder, list(scenarios))
    path = folder / "evals.json"
    definitions = json.loads(path.read_text())
    definitions["evals"][0] |= of_eval
    path.write_text(json.dumps(definitions))
    apply_project(config)
    return folder


GOOD, BAD, BROKEN = scripted("good", "x"), scripted("bad", "y", pattern="zzz"), scripted("err", "break")


def test_an_eval_says_what_it_requires_and_the_command_may_ask_for_more(run: Run, tmp_path: Path) -> None:
    folder = project(tmp_path, GOOD, BAD, requirements=[{"passRate": 0.5}])
    done = run(folder, "eval", "run")
    assert done.code == 0, done.err
    assert "met: passRate>=0.5\n    1 of 2 passed, 50%" in done.out
    more = run(folder, "eval", "run", "--require", "passRate>=1,scenario=bad", "--json")
    assert more.code == 1
    assert [one["standing"] for one in more.data["requirements"]] == ["met", "missed"]
    assert more.data["execution"]["requirements"][1] == {"passRate": 1.0, "scenario": "bad"}
    assert "missed: passRate>=1,scenario=bad" in run(folder, "execution", "show", "last").out


def test_without_requirements_any_failure_is_a_miss(run: Run, tmp_path: Path) -> None:
    assert run(project(tmp_path, GOOD, BAD), "eval", "run").code == 1


def test_errors_leave_it_undecided_unless_they_are_allowed(run: Run, tmp_path: Path) -> None:
    folder = project(tmp_path, GOOD, BROKEN)
    assert run(folder, "eval", "run", "--require", "passRate>=0.9").code == 3
    assert run(folder, "eval", "run", "--require", "passRate>=0.9", "--require", "maxErrors=1").code == 0


def test_what_is_wrong_is_said_before_anything_runs(run: Run, tmp_path: Path) -> None:
    folder = project(tmp_path, GOOD)
    for option, complaint in (
        (("--require", "passRate<=1"), "passRate is written passRate>=1"),
        (("--report", "pdf=x"), 'there is no format "pdf"'),
        (("--report", "junit"), "names no file"),
        (("--report", "md=-", "--json"), "stdout is taken"),
        (("--report", "md=/proc/none/x"), "cannot be written"),
        (("--max-tokens", "0"), "maxTokens"),
    ):
        done = run(folder, "eval", "run", *option)
        assert (done.code, complaint in done.err) == (2, True), done.err
    assert calls(folder) == []


def test_a_baseline_is_an_execution_or_the_last_of_a_branch(run: Run, tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(8)]
    folder = project(tmp_path, *(scripted(name, "hello", pattern="hello") for name in names))
    assert run(folder, "eval", "run", "--require", "noRegression=main").code == 3
    assert run(folder, "eval", "run", "--label", "branch=main").code == 0
    assert run(folder, "eval", "run", "--require", "noRegression=main").code == 0
    agent = folder / "agent.py"
    agent.write_text(agent.read_text().replace('return f"echo: {text}"', 'return "no"'))
    worse = run(folder, "eval", "run", "--require", "noRegression=main", "--report", "md=-")
    assert worse.code == 1
    assert "-100.0 points against main" in worse.out
    assert "**Regressed** (8)" in worse.out


def test_reports_are_written_beside_what_is_printed(run: Run, tmp_path: Path) -> None:
    folder = project(tmp_path, GOOD, BAD)
    done = run(folder, "eval", "run", "--report", "junit=out/j.xml", "--report", "html=r.html")
    assert done.code == 1
    [suite] = JUnitXml.fromfile(str(folder / "out/j.xml"))
    assert (suite.tests, suite.failures) == (2, 1)
    assert "echo: y" in (folder / "r.html").read_text(), "the transcript of the failure is there"
    assert not list(folder.glob(".*.part"))
    later = run(folder, "report", "last", "-f", "csv", "-o", "r.csv")
    assert "Written to r.csv." in later.out
    assert (folder / "r.csv").read_text().count("\n") == 3
    assert "fail: bad" in run(folder, "report", "last").out


def test_in_a_workflow_github_is_told(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, GOOD, BAD)
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    run(folder, "status")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = run(folder, "eval", "run", "--json")
    assert json.loads(done.out), "stdout is JSON alone"
    assert "::error title=fail%3A bad · agent::no match for /zzz/" in done.err
    assert summary.read_text().startswith("before\n### ❌ all: failed")


SPENDING = """
from evalstudio import ConnectorContext, define_connector


@define_connector(type="test-agent")
async def test_agent(ctx: ConnectorContext) -> dict:
    return {"messages": [{"role": "assistant", "content": "echo"}],
            "tokensUsage": {"input_tokens": 60, "output_tokens": 40}, "metadata": {"cost": 0.01}}
"""


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (("--max-tokens", "300"), "Ended by its budget: "),
        (("--max-cost", "0.03"), " of $0.0300 are used"),
        (("--max-time", "0.001"), "Ended by its budget: 0.001 seconds are over"),
    ],
)
def test_a_budget_ends_an_execution_cleanly(
    run: Run, tmp_path: Path, limit: tuple[str, str], says: str
) -> None:
    folder = project(tmp_path, GOOD)
    (folder / "agent.py").write_text(SPENDING)
    done = run(folder, "eval", "run", "--repeat", "20", "--concurrency", "1", *limit)
    assert done.code == 3, "what was not run leaves it undecided"
    assert says in done.out
    shown = run(folder, "execution", "show", "last", "--json").data
    counts = shown["summary"]["counts"]
    assert counts["passed"] + counts["cancelled"] == 20
    assert 1 <= counts["passed"] < 10
    assert shown["execution"]["status"] == "completed"
    usage = {one["role"]: one for one in shown["summary"]["usage"]}
    assert usage["agent"]["tokens"] == 100 * counts["passed"]
    assert usage["agent"]["cost"] == pytest.approx(0.01 * counts["passed"])
    assert usage["judge"] | {"runs": 0} == {
        "role": "judge",
        "runs": 0,
        "tokens": 0,
        "runsWithTokens": counts["passed"],
        "cost": 0.0,
        "runsWithCost": counts["passed"],
    }


def test_unknown_cost_is_unknown_and_a_budget_says_what_it_cannot_see(run: Run, tmp_path: Path) -> None:
    folder = project(tmp_path, GOOD, budget={"maxCost": 5})
    done = run(folder, "eval", "run")
    assert done.code == 0
    assert "agent: tokens unknown, cost unknown" in done.out
    assert "The budget does not cover all cost: unknown for agent" in done.out


class TestUntilDecided:
    """Only what is open is repeated."""

    def test_a_clear_case_needs_few_of_the_runs(self, run: Run, tmp_path: Path) -> None:
        scenarios = [scripted(f"s{number}", "x") for number in range(6)]
        folder = project(tmp_path, *scenarios)
        option = ("--repeat", "20", "--until", "decided", "--require", "passRate>=0.5")
        done = run(folder, "eval", "run", *option)
        assert done.code == 0, done.err
        assert "met: passRate>=0.5" in done.out
        assert "; decided after" in done.out
        ran = len(calls(folder))
        assert 6 <= ran <= 60, "at least half of the runs are saved"
        assert f"{ran} of 120 runs were enough; {120 - ran} were saved" in done.out
        shown = run(folder, "execution", "show", "last", "--json").data
        assert shown["execution"]["counts"]["total"] == ran
        assert shown["execution"]["status"] == "completed"

    def test_a_decided_scenario_is_not_repeated_while_another_is_open(self, run: Run, tmp_path: Path) -> None:
        folder = project(tmp_path, GOOD, BAD)
        option = ("--repeat", "8", "--until", "decided")
        one, other = ("--require", "passRate>=1,scenario=bad"), ("--require", "passRate>=0.9,scenario=good")
        done = run(folder, "eval", "run", *option, *one, *other)
        assert done.code == 1
        assert "missed: passRate>=1,scenario=bad" in done.out
        assert [call["text"] for call in calls(folder)].count("y") == 1
        assert [call["text"] for call in calls(folder)].count("x") == 8

    def test_without_requirements_a_failure_decides_its_subject(self, run: Run, tmp_path: Path) -> None:
        folder = project(tmp_path, GOOD, BAD)
        done = run(folder, "eval", "run", "--repeat", "3", "--until", "decided")
        assert done.code == 1
        assert "4 of 6 runs were enough; 2 were saved" in done.out
        failed = run(folder, "eval", "run", "--repeat", "3", "--until", "decided", "--last-failed", "--json")
        assert failed.data["execution"]["counts"]["total"] == 1
        assert failed.data["execution"]["partial"] == "last-failed"

    def test_another_end_is_refused(self, run: Run, tmp_path: Path) -> None:
        done = run(project(tmp_path, GOOD), "eval", "run", "--until", "monday")
        assert (done.code, "--until" in done.err) == (2, True)

    def test_a_budget_ends_it_between_repetitions(self, run: Run, tmp_path: Path) -> None:
        folder = project(tmp_path, GOOD)
        (folder / "agent.py").write_text(SPENDING)
        option = ("--repeat", "20", "--until", "decided", "--concurrency", "1", "--max-tokens", "300")
        done = run(folder, "eval", "run", *option, "--json")
        assert done.data["execution"]["status"] == "completed"
        assert "budget" in done.data["execution"]["partial"]
        assert "unfinished" not in done.data["execution"]["partial"]
        assert done.data["execution"]["counts"]["passed"] in (3, 4)
        assert any(note.startswith("Ended by its budget: ") for note in done.data["notes"])

    def test_a_later_look_comes_to_the_same_and_names_what_no_rule_decides(
        self, run: Run, tmp_path: Path
    ) -> None:
        folder = project(tmp_path, GOOD)
        required = ("--require", "passRate>=0.5,confidence=0.9999", "--require", "maxFlaky<=0")
        done = run(folder, "eval", "run", "--repeat", "3", "--until", "decided", *required, "--json")
        assert done.data["execution"]["untilDecided"] == 3
        saved, open_one = done.data["notes"]
        assert saved == "3 of at most 3 repetitions: 3 of 3 runs were enough; 0 were saved"
        assert open_one.startswith("maxFlaky<=0 stayed open for all repetitions: ")
        later = run(folder, "report", "last", "-f", "json").data
        assert later["requirements"] == done.data["requirements"]
        assert later["notes"] == done.data["notes"]
