"""Being told to stop: the first signal is heeded with care, the second at once, none with a traceback."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.scoring.test_resuming import slow_plan
from tests.support.api_server import ServerThread
from tests.support.command_line import heed_ctrl_c, ignore_ctrl_c
from tests.support.postgres import free_port
from tests.support.projects import apply_project, calls, make_project, scripted
from tests.support.scoring_files import Folder, rows

from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import StoredEval

SECONDS = 60


class Command:
    """A command under way, in a session of its own as in a terminal."""

    def __init__(self, folder: Path, *arguments: str, in_background: bool = False) -> None:
        self._errors = folder / "errors.txt"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "evalstudio", *arguments],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                preexec_fn=ignore_ctrl_c if in_background else heed_ctrl_c,
            )

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    def wait_for(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not happened():
            assert self._process.poll() is None, self.errors
            assert time.monotonic() < deadline, self.errors
            time.sleep(0.02)

    def signal(self, *numbers: signal.Signals) -> int:
        """Send these to every process of the command, one after the other; its exit code."""
        for number in numbers:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            # Two of one kind that wait to be delivered are one.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.3)
        code = self._process.wait(SECONDS)
        # What a shell calls 130: the last one came when Python was all but gone.
        return 130 if code == -signal.SIGINT else code

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


Start = Callable[..., Command]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    begun: list[Command] = []

    def begin(*arguments: str, in_background: bool = False) -> Command:
        begun.append(Command(tmp_path, *arguments, in_background=in_background))
        return begun[-1]

    yield begin
    for command in begun:
        command.end()


def queued(folder: Path, seconds: float = 600) -> Path:
    """A project with a run that waits to be worked on and then takes so long; the path of its config."""
    config = make_project(folder, [scripted("s", f"wait={seconds} x")])
    apply_project(config)

    async def queue() -> None:
        async with open_workspace(config) as workspace:
            chosen = await workspace.store.find("eval", "all")
            assert isinstance(chosen, StoredEval)
            await start_execution(workspace, await request_for(workspace, chosen))

    asyncio.run(queue())
    return config


COMMANDS = {
    "worker": ("worker",),
    "serve": ("serve", "--port", "PORT"),
    "eval run": ("eval", "run"),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_second_ctrl_c_ends_a_command_at_once(
    tmp_path: Path, start: Start, arguments: tuple[str, ...]
) -> None:
    queued(tmp_path)
    command = start(*(str(free_port()) if one == "PORT" else one for one in arguments))
    command.wait_for(lambda: bool(calls(tmp_path)))
    assert command.signal(signal.SIGINT, signal.SIGINT) == 130, command.errors
    assert "Traceback" not in command.errors
    assert "never retrieved" not in command.errors


def test_a_second_ctrl_c_ends_a_command_that_watches_a_server(tmp_path: Path, start: Start) -> None:
    config = make_project(tmp_path / "there", [scripted("s", "wait=600 x")])
    apply_project(config)
    server = ServerThread(config)
    server.wait_ready()
    command = start("eval", "run", "--server", server.url)
    command.wait_for(lambda: bool(calls(config.parent)))
    assert command.signal(signal.SIGINT, signal.SIGINT, signal.SIGINT) == 130, command.errors
    assert "Traceback" not in command.errors
    server.stop()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_ctrl_c_ends_scoring_at_once(tmp_path: Path, start: Start, workers: str) -> None:
    folder = Folder(tmp_path)
    slow_plan(folder)
    folder.dataset({**row, "prompt": "x" * 300} for row in rows(4000))
    command = start("score", "records.jsonl", "-c", "plan.json", "-o", "results.jsonl", "--workers", workers)
    command.wait_for(lambda: folder.output.exists() and folder.output.stat().st_size > 0)
    assert command.signal(signal.SIGINT, signal.SIGINT, signal.SIGINT) == 130, command.errors
    assert "Traceback" not in command.errors
    assert folder.score(resume=True, limit=1).records > 0


def test_a_server_stops_as_well_when_its_terminal_is_closed(tmp_path: Path, start: Start) -> None:
    make_project(tmp_path, [])
    command = start("serve", "--port", str(free_port()))
    command.wait_for(lambda: "EvalStudio is at" in command.errors)
    assert command.signal(signal.SIGHUP) == 0, command.errors
    assert "Traceback" not in command.errors


def test_a_terminal_that_is_closed_is_no_second_ctrl_c(tmp_path: Path, start: Start) -> None:
    config = queued(tmp_path, seconds=2)
    command = start("worker")
    command.wait_for(lambda: bool(calls(tmp_path)))
    # It says so more than once.
    assert command.signal(signal.SIGHUP, signal.SIGHUP) == 0, command.errors
    assert "worker stopped" in command.errors
    assert asyncio.run(statuses(config)) == ["completed"]


async def statuses(config: Path) -> list[str]:
    async with open_workspace(config) as workspace:
        return [run.status for run in (await workspace.store.runs()).items]


@pytest.mark.parametrize("in_background", [False, True], ids=["terminal", "background"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_scoring_says_how_to_go_on_whatever_stops_it(
    tmp_path: Path, start: Start, number: signal.Signals, in_background: bool
) -> None:
    folder = Folder(tmp_path)
    slow_plan(folder)
    folder.dataset({**row, "prompt": "x" * 300} for row in rows(4000))
    arguments = ("score", "records.jsonl", "-c", "plan.json", "-o", "results.jsonl")
    command = start(*arguments, in_background=in_background)
    command.wait_for(lambda: folder.output.exists() and folder.output.stat().st_size > 0)
    assert command.signal(number) == 130, command.errors
    assert "--resume" in command.errors
    assert "Traceback" not in command.errors
