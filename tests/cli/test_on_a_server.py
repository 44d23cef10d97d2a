"""The commands against a server instead of a project of one's own: ``--server URL``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Typed
from tests.support.api_server import ServerProcess
from tests.support.command_line import COMMAND
from tests.support.projects import apply_project, make_project, scripted

TOKEN = "a-token-that-is-long-enough-to-be-one"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    config = make_project(
        tmp_path_factory.mktemp("served"),
        [scripted("Greets", "hello"), scripted("Misses", "bye", pattern="zzz"), scripted("Breaks", "break")],
    )
    apply_project(config)
    served = ServerProcess(config, env={"EVALSTUDIO_TOKEN": TOKEN})
    served.wait_ready()
    yield served
    served.stop()


@pytest.fixture
def there(server: ServerProcess, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Type a command in an empty folder, with the server named by the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALSTUDIO_TOKEN", TOKEN)
    monkeypatch.setenv("EVALSTUDIO_SERVER", server.url)
    return typed


def told(there: Typed, *arguments: str) -> Any:
    return there(*arguments, "--json").data


def test_an_eval_is_run_there_and_looked_at_from_here(there: Typed) -> None:
    out = there("eval", "run", "--label", "branch=main", code=1).out
    assert "3 runs: 1 passed, 1 failed, 1 errored (1 agent)" in out
    assert "zzz" in out

    out = there("eval", "run", "all", "--only", "greets", "--repeat", "2", "--connector", "agent", code=0).out
    assert "2 runs: 2 passed" in out

    first = told(there, "execution", "list")["items"][1]
    assert (first["trigger"], first["labels"]) == ("cli", {"branch": "main"})
    out = there("run", "list", "--execution", first["id"], "--outcome", "fail").out
    assert "Misses" in out
    assert "Greets" not in out
    out = there("run", "show", "last-failed").out
    assert "the agent broke" in out or "zzz" in out


def test_the_server_repeats_only_what_is_open(there: Typed) -> None:
    repeated = ("eval", "run", "--only", "greets", "--only", "misses", "--repeat", "4", "--until", "decided")
    out = there(*repeated, code=1).out
    assert "4 of at most 4 repetitions: 5 of 8 runs were enough; 3 were saved" in out
    data = told_code(there, 0, *repeated[:4], *repeated[6:], "--require", "passRate>=0.1")
    assert data["execution"]["status"] == "completed"
    assert data["execution"]["untilDecided"] == 4
    total = data["execution"]["counts"]["total"]
    assert 1 <= total <= 4
    assert any(f"{total} of 4 runs were enough; {4 - total} w" in note for note in data["notes"])


def test_the_server_counts_the_agents_errors_as_it_was_told(there: Typed) -> None:
    broken = ("eval", "run", "--only", "breaks", "--repeat", "3", "--until", "decided")
    data = told_code(there, 1, *broken, "--agent-errors", "fail")
    # A failure decides its subject; an error would have been repeated.
    assert (data["execution"]["counts"]["total"], data["summary"]["counts"]["failed"]) == (1, 1)
    assert data["execution"]["agentErrors"] == "fail"
    out = there("report", data["execution"]["id"]).out
    assert "1 failed" in out
    out = there("report", data["execution"]["id"], "--agent-errors", "error").out
    assert "1 errored" in out
    assert told_code(there, 3, *broken)["execution"]["counts"]["total"] == 3


def test_requirements_and_budgets_go_along_and_the_server_says_what_became_of_them(
    there: Typed, tmp_path: Path
) -> None:
    only, allowed = ("eval", "run", "--only", "greets"), ("--require", "passRate>=1")
    out = there(*only, *allowed, "--require", "noRegression=nothing", code=3).out
    assert "met: passRate>=1" in out
    assert 'there is no execution "nothing"' in out
    out = there("eval", "run", "--require", "passRate>=0.9", "--require", "maxErrors<=1", code=1).out
    assert "missed: passRate>=0.9\n    1 of 2 passed, 50%" in out
    assert "met: maxErrors<=1" in out
    # Reports are written from the runs, and come to the same.
    there("eval", "run", "--require", "passRate>=0.9", "--report", "md=report.md", code=1)
    assert "pass rate at least" in (tmp_path / "report.md").read_text()
    data = told_code(there, 3, *only, "--repeat", "40", "--max-tokens", "1", "--max-time", "0.001")
    assert data["execution"]["budget"] == {"maxTokens": 1, "maxTime": 0.001}
    assert data["execution"]["partial"] is not None
    assert data["standing"] == "undecided"


def told_code(there: Typed, code: int, *arguments: str) -> Any:
    return there(*arguments, "--json", code=code).data


def test_only_what_failed_is_run_again(there: Typed) -> None:
    there("eval", "run", code=1)
    out = there("eval", "run", "--last-failed", code=1).out
    assert "2 runs: 0 passed, 1 failed, 1 errored" in out
    there("eval", "run", "--only", "Greets")
    err = there("eval", "run", "--last-failed", code=2).err
    assert "nothing failed or errored in the last execution" in err


def test_errored_runs_are_retried_there(there: Typed) -> None:
    there("eval", "run", "--only", "Breaks", code=3)
    out = there("run", "retry", "last", code=3).out
    assert "1 errored" in out
    assert told(there, "run", "show", "last")["attempt"] == 2
    assert told(there, "run", "retry", "last", "--queue-only") == {"queued": 1}


def test_what_is_defined_there_is_changed_from_here(there: Typed) -> None:
    there("persona", "create", "--name", "Bo", "--description", "in a hurry", "--header", "X-Key: hush")
    there("scenario", "create", "--name", "New", "--say", "hi", "--persona", "bo", "--evaluator", "latency")
    shown = told(there, "scenario", "show", "new")
    assert shown["personaIds"] == [told(there, "persona", "show", "Bo")["id"]]
    there("persona", "update", "Bo", "--name", "Bob", "--wants", "a table")
    bob = told(there, "persona", "show", "Bob")
    assert (bob["description"], bob["wants"]) == ("in a hurry", "a table")
    assert bob["headers"] == {"X-Key": "********"}
    err = there("persona", "delete", "Bob", "--yes", code=2).err
    assert "in use" in err or "New" in err
    there("scenario", "delete", "New", "--yes")
    assert told(there, "persona", "delete", "Bob", "--yes") == {"deleted": "Bob"}
    err = there("scenario", "create", "--name", "Odd", "--say", "hi", "--evaluator", "regexx", code=2).err
    assert "did you mean regex" in err


def test_the_project_and_its_agents_are_seen(there: Typed) -> None:
    out = there("status").out
    assert "test (http://127.0.0.1:" in out
    assert "3 scenarios" in out
    assert told(there, "connector", "test", "agent")["success"]
    assert "test-agent" in {one["type"] for one in told(there, "connector", "types")}
    out = there("export").out
    assert "name: Greets" in out


def test_recorded_conversations_are_reviewed_there_and_scored_again(there: Typed, tmp_path: Path) -> None:
    lines = [
        {"id": f"{task}{trial}", "taskId": task, "messages": chat("A table", answer)}
        for task, answers in {"a": ("zzz", "zzz"), "b": ("zzz", "Sorry.")}.items()
        for trial, answer in enumerate(answers)
    ]
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, lines)))
    by = ("review", "chats.jsonl", "--scenario", "misses")
    out = there(*by, "--require", "passRate>=0.9", "--label", "of=today", code=1).out
    assert "4 runs: 3 passed, 1 failed" in out
    assert "missed: passRate>=0.9" in out
    assert "recorded conversations" in out
    execution = told(there, "execution", "list")["items"][0]
    assert (execution["source"], execution["trigger"], execution["labels"]["of"]) == (
        "recorded",
        "cli",
        "today",
    )
    runs = told(there, "run", "list", "--execution", execution["id"])["items"]
    assert {(run["caseName"], run["repetition"]) for run in runs} == {("a", 1), ("a", 2), ("b", 1), ("b", 2)}
    output = told(there, "run", "show", runs[0]["id"])["output"]
    assert output["recording"]["origin"].startswith("chats.jsonl, line ")

    # What was sent before is known, and what cannot be read is named here.
    with (tmp_path / "chats.jsonl").open("a") as file:
        file.write("\n{broken")
    again = there(*by, "--resume", execution["id"], code=1)
    assert "4 conversations had been reviewed before" in again.out
    assert "chats.jsonl:5: is not valid JSON" in again.err
    assert told(there, "execution", "list")["items"][0]["partial"] == "unreadable"

    (tmp_path / "plan.yaml").write_text("evaluators: [{type: regex, config: {pattern: Sorry}}]\n")
    assert "3 failed" in there("review", "chats.jsonl", "--plan", "plan.yaml", "--skip-bad", code=1).out
    out = there("rescore", execution["id"], "--evaluators", "plan.yaml", code=1).out
    assert "4 runs: 1 passed, 3 failed" in out
    assert "regressed" in out
    run = told(there, "run", "list", "--execution", execution["id"], "--outcome", "fail")["items"][0]
    assert "0 passed, 1 failed" in there("rescore", run["id"], code=1).out


def test_what_cannot_be_reviewed_there_is_said(there: Typed, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{broken")
    err = there("review", "bad.jsonl", "--scenario", "Greets", code=2).err
    assert "not one of 1 conversations could be reviewed" in err
    assert "no scenario" in there("review", "bad.jsonl", "--scenario", "Gone", code=2).err
    assert "the server's own" in there("rescore", "last", "--concurrency", "2", code=2).err
    assert "nowhere" in there("rescore", "nowhere", code=2).err
    (tmp_path / "good.jsonl").write_text(json.dumps({"messages": chat("hello", "hi")}))
    err = there("review", "good.jsonl", "--eval", "all", code=2).err
    assert "no scenario fits it" in err


def chat(question: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def test_runs_and_executions_are_cleared_away(there: Typed) -> None:
    there("eval", "run", "--only", "Greets", "--repeat", "2")
    assert told(there, "run", "delete", "last", "--yes") == {"deleted": 1}
    assert told(there, "execution", "delete", "last", "--yes") == {"deleted": 1}
    assert told(there, "execution", "cancel", "last") == {"cancelled": 0}


def test_a_server_out_of_reach_is_exit_code_4(there: Typed) -> None:
    err = there("status", "--server", "http://127.0.0.1:9", code=4).err
    assert "cannot be reached" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "variables", "says"),
    [
        (["status"], {"EVALSTUDIO_TOKEN": "wrong"}, "token"),
        (["status", "--server", "somewhere"], {}, "takes an address such as"),
        (["run", "show", "nowhere"], {}, "nowhere"),
        (["run", "list", "-c", "x.json"], {}, "exclude each other"),
        (["eval", "run", "--record", "x"], {}, "--record"),
        (["eval", "run", "nightly"], {}, 'there is no eval called "nightly"'),
        (["eval", "run", "--only", "nightly"], {}, 'there is no scenario called "nightly"'),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    there: Typed,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    variables: dict[str, str],
    says: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    err = there(*arguments, code=2).err
    assert says in err
    assert "Traceback" not in err


def test_stopping_here_leaves_it_running_there(server: ServerProcess, there: Typed, tmp_path: Path) -> None:
    there("scenario", "create", "--name", "Slow", "--say", "wait=60", "--evaluator", "regex={pattern: echo}")
    there("eval", "create", "--name", "slow", "--scenario", "Slow", "--connector", "agent")
    running = subprocess.Popen(
        [COMMAND, "eval", "run", "slow"],
        cwd=tmp_path,
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not told(there, "execution", "list", "--status", "running")["items"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=20)
    assert (running.returncode, "the server goes on" in err) == (130, True), err
    assert told(there, "execution", "show", "last")["execution"]["status"] == "running"
    assert told(there, "execution", "cancel", "last") == {"cancelled": 1}
