"""Commands with ``--on ray`` that are stopped: what is kept is told, and nothing of the cluster stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.command_line import COMMAND, heed_ctrl_c
from tests.support.processes import descendants, is_running
from tests.support.projects import apply_project, make_project, scripted
from tests.support.scoring_files import SCORE, Folder, rows

# Says when it has begun, and then takes longer than anybody waits.
SLOW = """
import time
from pathlib import Path
from evalstudio import define_evaluator


@define_evaluator("slow", kind="assertion")
def slow(ctx):
    Path(__file__).with_name("begun").touch()
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.dataset(rows(40))
    folder.plan({"plugins": ["./slow.py"], "evaluators": [{"type": "slow"}]})
    (tmp_path / "slow.py").write_text(SLOW)
    return folder


SCORE_ON_RAY = (*SCORE, "--on", "ray", "--workers", "1")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        [COMMAND, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,
    )


def wait_for_file(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)


def stop(process: subprocess.Popen[str], number: signal.Signals, *, group: bool) -> str:
    """What it said when it was stopped; every process that it had started is gone."""
    below = descendants(process.pid)
    assert below
    (os.killpg if group else os.kill)(process.pid, number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    while left := [one for one in below if is_running(one)]:
        time.sleep(0.1)
    assert not left
    return said


@pytest.mark.soak
def test_a_stopped_command_says_how_to_go_on_and_ends_its_cluster(folder: Folder) -> None:
    command = start(folder.path, *SCORE_ON_RAY)
    wait_for_file(folder.path / "begun", command)
    said = stop(command, signal.SIGTERM, group=False)
    assert said == (
        "Stopped. What is in results.jsonl is whole: run the same command with --resume to go on.\n"
    )


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_of_a_terminal_ends_them(folder: Folder, number: signal.Signals) -> None:
    command = start(folder.path, *SCORE_ON_RAY)
    wait_for_file(folder.path / "begun", command)
    assert "--resume" in stop(command, number, group=True)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM])
def test_a_signal_while_the_cluster_starts_ends_it(folder: Folder, number: signal.Signals) -> None:
    command = start(folder.path, *SCORE_ON_RAY)
    while not descendants(command.pid):
        assert command.poll() is None
        time.sleep(0.01)
    assert "--resume" in stop(command, number, group=False)


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_live_runs_that_are_stopped_stay_queued(tmp_path: Path, number: signal.Signals) -> None:
    config = make_project(tmp_path, [scripted("a", "wait=600")], repetitions=3, execution={"type": "ray"})
    apply_project(config)
    command = start(tmp_path, "eval", "run", "all")
    wait_for_file(tmp_path / "agent.log", command)
    assert "Stopped with 3 runs left; they stay queued" in stop(command, number, group=False)
    # All over again, by whoever takes them: nothing was lost, and nothing is held by the dead.
    listed = subprocess.run(
        [COMMAND, "run", "list", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert {run["status"] for run in json.loads(listed.stdout)["items"]} == {"queued"}
