"""``evalstudio eval run`` as a user and a CI job see it: what it prints and how it exits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Done, Typed
from tests.support.projects import apply_project, calls, make_project, scripted

COMMAND = [sys.executable, "-m", "evalstudio"]
Run = Callable[..., Done]


@pytest.fixture
def run(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Type a command in a folder, however it ends."""

    def go(folder: Path, *arguments: str) -> Done:
        monkeypatch.chdir(folder)
        return typed(*arguments, code=None)

    return go


def applied(folder: Path, scenarios: list[dict[str, Any]], **more: Any) -> Path:
    apply_project(make_project(folder, scenarios, **more))
    return folder


@pytest.mark.parametrize(
    ("scenarios", "code", "says"),
    [
        ([scripted("a", "x"), scripted("b", "y")], 0, "2 runs: 2 passed, 0 failed, 0 errored"),
        ([scripted("a", "x"), scripted("b", "y", pattern="zzz")], 1, "1 passed, 1 failed"),
        ([scripted("a", "x"), scripted("b", "break")], 3, "1 passed, 0 failed, 1 errored (1 agent)"),
        ([scripted("a", "x", pattern="zzz"), scripted("b", "break")], 1, "0 passed, 1 failed, 1 errored"),
    ],
)
def test_the_exit_code_says_what_it_came_to(
    run: Run, tmp_path: Path, scenarios: list[dict[str, Any]], code: int, says: str
) -> None:
    done = run(applied(tmp_path, scenarios), "eval", "run")
    assert done.code == code, done.err
    assert says in done.out
    assert "95% interval" in done.out
    assert "Traceback" not in done.err


def measured(name: str) -> dict[str, Any]:
    """A scenario with metrics only."""
    return scripted(name, "x") | {"evaluators": [{"type": "response-length"}]}


def test_nothing_asserted_is_not_decided_and_in_no_rate(run: Run, tmp_path: Path) -> None:
    folder = applied(tmp_path, [measured("a"), measured("b")])
    done = run(folder, "eval", "run")
    assert done.code == 3
    assert "2 runs: 0 passed, 0 failed, 0 errored, 2 unasserted" in done.out
    assert "pass rate: - (0 runs)" in done.out
    assert "Not decided: nothing was asserted" in done.err
    shown = run(folder, "execution", "show", "last")
    assert "unasserted" in shown.out
    listed = json.loads(run(folder, "run", "list", "--outcome", "unasserted", "--json").out)
    assert [one["result"]["outcome"] for one in listed["items"]] == ["unasserted", "unasserted"]
    assert [one["result"]["success"] for one in listed["items"]] == [False, False]
    assert "agent: unasserted" in run(folder, "run", "show", listed["items"][1]["id"]).out
    assert "2 unasserted" in run(folder, "status").out
    assert "nothing failed or errored" in run(folder, "eval", "run", "--last-failed").err


def test_unasserted_runs_beside_passing_ones_change_no_rate(run: Run, tmp_path: Path) -> None:
    folder = applied(tmp_path, [scripted("a", "x"), measured("b")])
    done = run(folder, "eval", "run", "--repeat", "2")
    assert done.code == 0
    assert "4 runs: 2 passed, 0 failed, 0 errored, 2 unasserted" in done.out
    assert "pass rate: 100% (2 of 2" in done.out
    assert "0 of 0 pass, 2 unasserted" in done.out


def test_json_is_plain_and_complete(run: Run, tmp_path: Path) -> None:
    folder = applied(tmp_path, [scripted("a", "x"), scripted("b", "break")])
    done = run(folder, "eval", "run", "--json", "--repeat", "2", "--label", "branch=main")
    assert done.code == 3
    shown = json.loads(done.out)
    assert shown["execution"]["labels"] == {"branch": "main"}
    assert shown["execution"]["counts"]["total"] == 4
    assert shown["summary"]["counts"] == shown["execution"]["counts"]
    assert (shown["summary"]["counts"]["passed"], shown["summary"]["counts"]["errored"]) == (2, 2)
    assert shown["summary"]["passRateOfScored"]["of"] == 2
    assert shown["summary"]["passRateOfAttempted"]["of"] == 4
    assert len(shown["runs"]) == 4


def test_agent_errors_may_count_as_failures(run: Run, tmp_path: Path) -> None:
    done = run(applied(tmp_path, [scripted("b", "break")]), "eval", "run", "--agent-errors", "fail")
    assert done.code == 1
    assert "1 failed, 0 errored" in done.out


def test_only_some_and_only_what_failed(run: Run, tmp_path: Path) -> None:
    folder = applied(tmp_path, [scripted("good", "x"), scripted("bad", "y", pattern="zzz")])
    assert "1 run: 1 passed" in run(folder, "eval", "run", "--only", "good").out
    run(folder, "eval", "run")
    again = run(folder, "eval", "run", "--last-failed")
    assert "1 run: 0 passed, 1 failed" in again.out
    assert "bad" in again.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nightly"], 'there is no eval called "nightly"'),
        (["--only", "nothing"], 'there is no scenario of this eval called "nothing"; there are a'),
        (["--connector", "nobody"], 'there is no connector called "nobody"'),
        (["--last-failed"], "has not been run yet"),
        (["--agent-errors", "ignore"], '--agent-errors is "error" or "fail"'),
        (["--record", "x", "--replay", "y"], "exclude each other"),
        (["--replay", "missing.jsonl"], "missing.jsonl"),
        (["--config", "nowhere.json"], "nowhere.json"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    run: Run, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    done = run(applied(tmp_path, [scripted("a", "x")]), "eval", "run", *arguments)
    assert done.code == 2
    assert complaint in done.err
    assert "Traceback" not in done.err


def test_an_empty_project_says_what_to_do(run: Run, tmp_path: Path) -> None:
    make_project(tmp_path, [scripted("a", "x")])
    done = run(tmp_path, "eval", "run")
    assert done.code == 2
    assert "evalstudio apply" in done.err


def test_a_recording_replays_without_the_agent(run: Run, tmp_path: Path) -> None:
    folder = applied(tmp_path, [scripted("a", "x", "y")])
    assert run(folder, "eval", "run", "--record", "tape.jsonl").code == 0
    asked = len(calls(folder))
    replayed = run(folder, "eval", "run", "--replay", "tape.jsonl")
    assert replayed.code == 0, replayed.err
    assert len(calls(folder)) == asked
    changed = json.loads((folder / "evals.json").read_text())
    changed["scenarios"][0]["script"] = ["something else"]
    (folder / "evals.json").write_text(json.dumps(changed))
    run(folder, "apply", "evals.json")
    missed = run(folder, "eval", "run", "--replay", "tape.jsonl")
    assert missed.code == 3
    assert "something else" in missed.out + missed.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_releases_and_a_worker_goes_on(run: Run, tmp_path: Path, number: signal.Signals) -> None:
    folder = applied(tmp_path, [scripted("a", "until=go-on x")], repetitions=3)
    process = subprocess.Popen(
        [*COMMAND, "eval", "run", "--concurrency", "2"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while len(calls(folder)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "3 runs left; they stay queued" in errors
    assert "Traceback" not in errors
    (folder / "go-on").touch()
    done = run(folder, "worker", "--until-done")
    assert done.code == 0, done.err
    listed = run(folder, "run", "list", "--json")
    assert [item["status"] for item in json.loads(listed.out)["items"]] == ["completed"] * 3


def test_the_demo_finds_the_planted_bug(run: Run, tmp_path: Path) -> None:
    done = run(tmp_path, "demo", "here")
    assert done.code == 0, done.err
    assert "6 runs: 5 passed, 1 failed, 0 errored" in done.out
    assert "Cancel a booking" in done.out
    again = run(tmp_path / "here", "eval", "run", "--last-failed")
    assert again.code == 1
    assert run(tmp_path, "demo", "here").code == 2
