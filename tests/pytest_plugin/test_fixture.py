"""The fixture in tests of every kind, and results in the project's database."""

from __future__ import annotations

import asyncio
import json
import subprocess
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from tests.pytest_plugin.conftest import RunTests
from tests.support.projects import make_project, scripted

from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import Execution, Run
from evalstudio.storage.contract import Filters, all_runs

SCENARIO = (
    'SCENARIO = {"name": "refund", "script": ["hi", "{{wish}}"], "evaluators": '
    '[{"type": "regex", "name": "must say", "config": {"pattern": "money"}}]}\n'
    'CASES = [{"name": "asks", "vars": {"wish": "money"}}, {"name": "waits", "vars": {"wish": "time"}}]\n'
)
TESTS = (
    "import pytest\n"
    "from evalstudio import EvaluationResult, Scenario, define_evaluator\n"
    + SCENARIO
    + """
def echo(messages):
    print("the agent prints")
    return "echo: " + messages[-1].text

def broken(messages):
    raise RuntimeError("no answer")

@define_evaluator(type="in-the-test")
def in_the_test(ctx):
    return EvaluationResult(success="echo" in ctx.response, reason="looked")

def test_one_case(evalstudio):
    assert evalstudio.run(SCENARIO, echo, case=CASES[0]).passed

def test_a_table(evalstudio):
    assert evalstudio.run(SCENARIO, echo, cases=CASES, repetitions=2).passed

def test_truth(evalstudio):
    assert evalstudio.run(SCENARIO, echo, case=CASES[1])

def test_an_error(evalstudio):
    assert evalstudio.run(SCENARIO, broken, case=CASES[0]).passed

def test_nothing_asserted(evalstudio):
    measured = SCENARIO | {"evaluators": [{"type": "response-length"}]}
    assert evalstudio.run(measured, echo, case=CASES[0]).passed

def test_an_evaluator_in_the_test(evalstudio):
    result = evalstudio.run(Scenario(name="own", script=["hi"], evaluators=[in_the_test]), echo)
    assert result.passed and result.runs[0].evaluator_results[0].name == "in-the-test"

def test_that_never_looks(evalstudio):
    evalstudio.run(SCENARIO, echo, case=CASES[0])
    evalstudio.run(SCENARIO, echo, case=CASES[1])

def test_that_never_looks_at_an_error(evalstudio):
    evalstudio.run(SCENARIO, broken, case=CASES[0])

def test_that_never_looks_at_a_pass(evalstudio):
    evalstudio.run(SCENARIO, echo, case=CASES[0])

def test_wrong_input(evalstudio):
    with pytest.raises(ValueError, match="no case is called"):
        evalstudio.run(SCENARIO, echo, case="nobody")
    with pytest.raises(ValueError, match="empty table"):
        evalstudio.run(SCENARIO, echo, cases=[])
    with pytest.raises(ValueError, match="there is no connector called"):
        evalstudio.run(SCENARIO, "nobody")
    with pytest.raises(ValueError, match="evaluators"):
        evalstudio.run({"name": "x", "script": ["hi"]}, echo)
"""
)


def test_a_scenario_runs_against_a_function_and_a_failure_explains_itself(
    tmp_path: Path, run_tests: RunTests
) -> None:
    (tmp_path / "test_agent.py").write_text(TESTS)
    done = run_tests(code=1)
    assert {name.partition("::")[2]: result for name, result in done.results.items()} == {
        "test_one_case": "passed",
        "test_a_table": "failed",
        "test_truth": "failed",
        "test_an_error": "failed",
        "test_nothing_asserted": "failed",
        "test_an_evaluator_in_the_test": "passed",
        "test_that_never_looks": "failed",
        "test_that_never_looks_at_an_error": "failed",
        "test_that_never_looks_at_a_pass": "passed",
        "test_wrong_input": "passed",
    }
    assert "the test never looked at what it ran; write: assert evalstudio.run(...).passed" in done.out
    short = 'refund · waits · repetition 1: turn 2, evaluator "must say" failed: no match for /money/'
    assert f"where False = <4 runs, 2 passed: {short}>.passed" in done.out
    assert 'assert <1 run, 0 passed: refund · waits: turn 2, evaluator "must say" failed' in done.out
    assert "refund · asks: error at turn 1, fault of the agent: " in done.out
    assert "RuntimeError: no answer" in done.out
    assert "refund · asks: nothing was asserted" in done.out
    assert "evalstudio: what did not pass" in done.out
    assert "2. assistant: echo: time" in done.out
    assert "the agent prints" in done.out
    assert {path.name for path in tmp_path.iterdir()} <= {
        *("test_agent.py", "pytest.ini", "__pycache__", ".pytest_cache")
    }


ASYNC = (
    "import asyncio\nimport pytest\n"
    + SCENARIO
    + """
async def check(evalstudio):
    loop = asyncio.get_running_loop()
    async def agent(messages):
        assert asyncio.get_running_loop() is loop
        return "echo: " + messages[-1].text
    assert await evalstudio.run_async(SCENARIO, agent, case=CASES[0])
    def plain(messages):
        return "echo: " + messages[-1].text
    assert evalstudio.run(SCENARIO, plain, case=CASES[0])
    assert not await evalstudio.run_async(SCENARIO, plain, case=CASES[1])
"""
)


def test_async_tests_stay_in_their_own_loop(tmp_path: Path, run_tests: RunTests) -> None:
    (tmp_path / "test_anyio.py").write_text(
        f"{ASYNC}\n"
        "@pytest.fixture(params=['asyncio'])\n"
        "def anyio_backend(request): return request.param\n"
        "@pytest.mark.anyio\n"
        "async def test_anyio(evalstudio): await check(evalstudio)\n"
    )
    (tmp_path / "test_asyncio.py").write_text(
        f"{ASYNC}\n@pytest.mark.asyncio\nasync def test_asyncio(evalstudio): await check(evalstudio)\n"
    )
    plugins = ("-p", "anyio", "-p", "pytest_asyncio.plugin")
    done = run_tests(*plugins)
    assert list(done.results.values()) == ["passed", "passed"]


FILE_TESTS = (
    "import pytest\n"
    """
def agent(messages):
    return "echo: " + messages[-1].text

def test_by_name(evalstudio):
    assert evalstudio.run("greets", "agent", persona={"name": "Eve"})

def test_of_a_file(evalstudio):
    result = evalstudio.run("evals.json", agent)
    assert [run.outcome for run in result.runs] == ["pass", "fail"]
"""
)


def stored(config: Path) -> list[tuple[Execution, list[Run]]]:
    async def read() -> list[tuple[Execution, list[Run]]]:
        async with open_workspace(config, lazy=True) as workspace:
            records = workspace.store
            return [
                (
                    one,
                    [
                        await records.run(run.id)
                        async for run in all_runs(records, Filters(execution_id=one.id))
                    ],
                )
                for one in (await records.executions()).items
            ]

    return asyncio.run(read())


def project(folder: Path) -> Path:
    config = make_project(
        folder, [scripted("greets", "hello", "there"), scripted("fails", "x", pattern="zzz")]
    )
    data: dict[str, Any] = json.loads((folder / "evals.json").read_text())
    data["connectors"][0]["headers"] = {"Authorization": "Bearer very-secret"}
    (folder / "evals.json").write_text(json.dumps(data))
    (folder / "test_agent.py").write_text(FILE_TESTS)
    return config


def test_results_of_all_workers_are_one_execution_that_the_page_shows(
    tmp_path: Path, run_tests: RunTests
) -> None:
    config = project(tmp_path)
    options = ("-p", "xdist", "-n", "2", "--evalstudio-store")
    done = run_tests(*options, code=1, ini="evalstudio_files = evals.json")
    assert sorted(done.results.values()) == ["failed", "passed", "passed", "passed"]
    [(execution, runs)] = stored(config)
    assert f"evalstudio: 5 runs stored; see: evalstudio execution show {execution.id}" in done.out
    assert (execution.status, execution.trigger) == ("completed", "pytest")
    assert (execution.counts.passed, execution.counts.failed, execution.counts.total) == (3, 2, 5)
    greeting = next(run for run in runs if run.scenario_name == "greets" and run.persona_name == "Eve")
    assert [message.text for message in greeting.messages] == ["hello", "echo: hello", "there", "echo: there"]
    assert [turn.number for turn in greeting.turns] == [1, 2]
    assert greeting.turn_count == 2
    assert greeting.turns[0].results[0].name == "regex"
    assert {run.connector_name for run in runs} == {"agent"}
    assert {run.status for run in runs} == {"completed"}
    assert (execution.partial, execution.labels) == (None, {})
    database = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert b"very-secret" not in database


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "1")])
def test_a_session_that_left_tests_out_is_partial_and_has_the_labels_of_its_commit(
    tmp_path: Path, run_tests: RunTests, workers: tuple[str, ...]
) -> None:
    config = project(tmp_path)
    for command in (("init", "-qb", "main"), ("commit", "-q", "--allow-empty", "-m", "Begin")):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *command], cwd=tmp_path, check=True
        )
    ini = "evalstudio_files = evals.json"
    run_tests(*workers, "--evalstudio-store", "-k", "greets", code=0, ini=ini)
    [(execution, _)] = stored(config)
    assert (execution.partial, execution.labels["branch"]) == ("only", "main")
    assert len(execution.labels["commit"]) == 40


def test_what_cannot_be_stored_turns_the_session_red(tmp_path: Path, run_tests: RunTests) -> None:
    (tmp_path / "test_agent.py").write_text(TESTS)
    assert "--evalstudio-store needs a project" in run_tests("--evalstudio-store", code=4).out
    make_project(tmp_path, [scripted("greets", "hello")])
    (tmp_path / "data").write_text("a file where the folder should be")
    done = run_tests("--evalstudio-store", "-k", "one_case", code=1)
    assert list(done.results.values()) == ["passed"]
    assert "evalstudio: the results could not be stored: " in done.out


def test_the_plugin_is_declared() -> None:
    declared = {point.name: point.value for point in entry_points(group="pytest11")}
    assert declared["evalstudio"] == "evalstudio.pytest_plugin"
