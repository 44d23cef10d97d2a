"""``evalstudio eval run`` as a user and a CI job see it: what it prints and how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.projects import calls, make_project, scripted

COMMAND = [sys.executable, "-m", "evalstudio"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, env=environment
    )


def applied(folder: Path, scenarios: list[dict[str, Any]], **more: Any) -> Path:
    make_project(folder, scenarios, **more)
    done = run(folder, "apply", "evals.json")
    assert done.returncode == 0, done.stderr
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
    tmp_path: Path, scenarios: list[dict[str, Any]], code: int, says: str
) -> None:
    done = run(applied(tmp_path, scenarios), "eval", "run")
    assert done.returncode == code, done.stderr
    assert says in done.stdout
    assert "95% interval" in done.stdout
    assert "Traceback" not in done.stderr


def test_json_is_plain_and_complete(tmp_path: Path) -> None:
    folder = applied(tmp_path, [scripted("a", "x"), scripted("b", "break")])
    done = run(folder, "eval", "run", "--json", "--repeat", "2", "--label", "branch=main")
    assert done.returncode == 3
    shown = json.loads(done.stdout)
    assert shown["execution"]["labels"] == {"branch": "main"}
    assert shown["execution"]["counts"]["total"] == 4
    assert shown["summary"]["counts"] == {"pass": 2, "fail": 0, "error": 2, "cancelled": 0}
    assert shown["summary"]["passRateOfScored"]["of"] == 2
    assert shown["summary"]["passRateOfAttempted"]["of"] == 4
    assert len(shown["runs"]) == 4


def test_agent_errors_may_count_as_failures(tmp_path: Path) -> None:
    done = run(applied(tmp_path, [scripted("b", "break")]), "eval", "run", "--agent-errors", "fail")
    assert done.returncode == 1
    assert "1 failed, 0 errored" in done.stdout


def test_only_some_and_only_what_failed(tmp_path: Path) -> None:
    folder = applied(tmp_path, [scripted("good", "x"), scripted("bad", "y", pattern="zzz")])
    assert "1 run: 1 passed" in run(folder, "eval", "run", "--only", "good").stdout
    run(folder, "eval", "run")
    again = run(folder, "eval", "run", "--last-failed")
    assert "1 run: 0 passed, 1 failed" in again.stdout
    assert "bad" in again.stdout


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
def test_what_is_wrong_is_said_with_exit_code_2(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    done = run(applied(tmp_path, [scripted("a", "x")]), "eval", "run", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_project_says_what_to_do(tmp_path: Path) -> None:
    make_project(tmp_path, [scripted("a", "x")])
    done = run(tmp_path, "eval", "run")
    assert done.returncode == 2
    assert "evalstudio apply" in done.stderr


def test_a_recording_replays_without_the_agent(tmp_path: Path) -> None:
    folder = applied(tmp_path, [scripted("a", "x", "y")])
    assert run(folder, "eval", "run", "--record", "tape.jsonl").returncode == 0
    asked = len(calls(folder))
    replayed = run(folder, "eval", "run", "--replay", "tape.jsonl")
    assert replayed.returncode == 0, replayed.stderr
    assert len(calls(folder)) == asked
    changed = json.loads((folder / "evals.json").read_text())
    changed["scenarios"][0]["script"] = ["something else"]
    (folder / "evals.json").write_text(json.dumps(changed))
    run(folder, "apply", "evals.json")
    missed = run(folder, "eval", "run", "--replay", "tape.jsonl")
    assert missed.returncode == 3
    assert "something else" in missed.stdout + missed.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_releases_and_a_worker_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    folder = applied(tmp_path, [scripted("a", "wait=7 x")], repetitions=3)
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
    (folder / "agent.py").write_text((folder / "agent.py").read_text().replace("float(word[5:])", "0"))
    done = run(folder, "worker", "--until-done")
    assert done.returncode == 0, done.stderr
    listed = run(folder, "run", "list", "--json")
    assert [item["status"] for item in json.loads(listed.stdout)["items"]] == ["completed"] * 3


def test_the_demo_finds_the_planted_bug(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", "here")
    assert done.returncode == 0, done.stderr
    assert "6 runs: 5 passed, 1 failed, 0 errored" in done.stdout
    assert "Cancel a booking" in done.stdout
    again = run(tmp_path / "here", "eval", "run", "--last-failed")
    assert again.returncode == 1
    assert run(tmp_path, "demo", "here").returncode == 2
