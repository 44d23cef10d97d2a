"""``--watch`` as a person sees it: a real process, real saves, one run at a time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.projects import calls, make_project, scripted

from evalstudio.cli.watch import Watch, own_arguments

_PATIENCE_SECONDS = 60.0


class Watching:
    """A command under way, with what it has printed so far."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.lines = folder, list[str]()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evalstudio", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines += self.process.stdout

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "".join(self.lines)
            assert self.process.poll() is None, "".join(self.lines)
            time.sleep(0.02)

    def rounds(self) -> int:
        return "".join(self.lines).count("Watching; Ctrl-C ends it.")

    def waits_after(self, rounds: int) -> None:
        """Wait until so many runs are over."""
        self.wait_for(lambda: self.rounds() >= rounds)

    def says(self, text: str) -> None:
        self.wait_for(lambda: text in "".join(self.lines))

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(_PATIENCE_SECONDS)


@pytest.fixture
def watching() -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def start(folder: Path, *arguments: str) -> Watching:
        started.append(Watching(folder, *arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        if one.process.stdout is not None:
            one.process.stdout.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with two evals of one scenario each, in a file each."""
    make_project(tmp_path, [scripted("unused", "x")])
    (tmp_path / "evals.json").unlink()
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "agent.json").write_text(
        '{"connectors": [{"name": "agent", "type": "test-agent"}]}'
    )
    for name in ("one", "two"):
        save(tmp_path, name, f"hello {name}")
    return tmp_path


def save(folder: Path, name: str, text: str) -> None:
    """Save as editors do: beside the file, then renamed over it."""
    body = {
        "scenarios": [scripted(name, text)],
        "evals": [{"name": f"eval {name}", "scenarios": [name], "connectors": ["agent"]}],
    }
    path = folder / "evals" / f"{name}.json"
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(body))
    fresh.replace(path)


def texts(folder: Path) -> list[str]:
    return [one["text"] for one in calls(folder)]


def test_what_a_saved_file_touches_runs_again_and_nothing_else(
    watching: Callable[..., Watching], folder: Path
) -> None:
    watch = watching(folder, "eval", "run", "-f", "evals", "--watch")
    watch.waits_after(1)
    assert texts(folder) == ["hello one", "hello two"]
    save(folder, "two", "hello again")
    watch.waits_after(2)
    assert texts(folder)[2:] == ["hello again"]
    watch.says("running eval two")

    (folder / "evals" / "two.json").write_text('{"scenarios": [')
    watch.says("Waiting for the next save.")
    (folder / "evals" / "two.json").unlink()
    watch.says("nothing that runs was touched")
    save(folder, "two", "hello back")
    watch.waits_after(3)
    assert texts(folder)[3:] == ["hello back"]

    agent = folder / "agent.py"
    agent.write_text(agent.read_text().replace("echo:", "echo, anew:"))
    watch.waits_after(4)
    assert sorted(texts(folder)[4:]) == ["hello back", "hello one"]
    assert watch.stop() == 130


def test_stopping_reaches_the_run_that_is_under_way(watching: Callable[..., Watching], folder: Path) -> None:
    save(folder, "one", "wait=30")
    watch = watching(folder, "eval", "run", "eval one", "-f", "evals", "--watch")
    watch.wait_for(lambda: texts(folder) == ["wait=30"])
    assert watch.stop(signal.SIGTERM) == 130
    watch.process.wait()
    assert re.search("Stopped with 1 runs? left", "".join(watch.lines))


def test_the_agents_own_folder_may_be_watched_too(watching: Callable[..., Watching], tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"scenarios": [scripted("hello", "hello")]}))
    agent = tmp_path / "watched_agent.py"
    agent.write_text('def reply(messages):\n    return "echo"\n')
    arguments = ("--connector", "watched_agent:reply", "--watch", "--watch-also", "watched_agent.py")
    watch = watching(tmp_path, "run", "-f", "s.json", *arguments)
    watch.waits_after(1)
    agent.write_text('def reply(messages):\n    return "something else"\n')
    watch.waits_after(2)
    assert "".join(watch.lines).count("1 run: 1 passed") == 1
    assert "".join(watch.lines).count("1 run: 0 passed, 1 failed") == 1
    os.utime(tmp_path / "s.json", (1, 1))
    watch.says("nothing that runs was touched")
    assert watch.stop() == 130


def test_the_command_that_is_run_again_does_not_watch() -> None:
    typed = ["eval", "run", "--watch", "-f", "a", "--watch-also", "src", "--watch-also=lib", "--only", "x"]
    assert own_arguments(typed) == ["eval", "run", "-f", "a", "--only", "x"]


def definitions(folder: Path) -> None:
    """Two evals: one with a plugin's evaluator and cases in a file, one with a function of a module."""
    texts = {
        "personas.yaml": "personas: [{name: Ann}]",
        "connectors.yaml": (
            "connectors:\n"
            "  - {name: web, type: http, baseUrl: 'http://127.0.0.1:1'}\n"
            "  - {name: function, type: python, config: {function: 'shop.agent:reply'}}\n"
        ),
        "scenarios.yaml": (
            "scenarios:\n"
            "  - {name: days, script: ['{{day}}'], cases: days.csv, evaluators: [{type: greets-first}]}\n"
            "  - {name: hours, script: [hi], personas: [Ann], evaluators: [{type: json-schema}]}\n"
        ),
        "evals.yaml": (
            "evals:\n"
            "  - {name: on days, scenarios: [days], connectors: [web]}\n"
            "  - {name: on hours, scenarios: [hours], connectors: [function]}\n"
        ),
    }
    (folder / "defined").mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / "defined" / name).write_text(text)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    config = {"plugins": ["./greeting.py"], "pythonModules": ["shop.agent"]}
    (tmp_path / "evalstudio.config.json").write_text(json.dumps(config))
    (tmp_path / "shop").mkdir()
    for name in ("greeting.py", "shop/agent.py", "days.csv"):
        (tmp_path / name).touch()
    definitions(tmp_path)
    paths = [tmp_path / "defined"], tmp_path / "evalstudio.config.json", [tmp_path / "src"]
    return Watch(*paths, "eval")


@pytest.mark.parametrize(
    ("saved", "touched"),
    [
        ("days.csv", {"on days"}),
        ("greeting.py", {"on days"}),
        ("shop/agent.py", {"on hours"}),
        ("evalstudio.config.json", None),
        ("src/anything.py", None),
        ("defined/evals.yaml", set[str]()),
    ],
)
def test_code_and_cases_touch_what_uses_them(
    watch: Watch, tmp_path: Path, saved: str, touched: set[str] | None
) -> None:
    before = watch.read()
    assert watch.touched({(tmp_path / saved).resolve()}, before, watch.read()) == touched


@pytest.mark.parametrize(
    ("file", "old", "new", "touched"),
    [
        ("personas.yaml", "name: Ann", "name: Ann, wants: more", {"on hours"}),
        ("connectors.yaml", "127.0.0.1:1", "127.0.0.1:2", {"on days"}),
        ("scenarios.yaml", "[hi]", "[ho]", {"on hours"}),
        ("evals.yaml", "name: on days", "name: by day", {"by day"}),
        ("evals.yaml", "evals:", "# a word\nevals:", set[str]()),
        ("connectors.yaml", "  - {name: web, type: http, baseUrl: 'http://127.0.0.1:1'}\n", "", {"on days"}),
    ],
)
def test_a_definition_touches_the_evals_that_use_it(
    watch: Watch, tmp_path: Path, file: str, old: str, new: str, touched: set[str]
) -> None:
    before, path = watch.read(), tmp_path / "defined" / file
    path.write_text(path.read_text().replace(old, new))
    assert watch.touched({path.resolve()}, before, watch.read()) == touched


def test_a_file_that_is_half_written_is_a_problem_and_no_end(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "defined" / "evals.yaml").write_text("evals: [{name: half")
    assert "evals.yaml" in (watch.read().problem or "")
    (tmp_path / "defined" / "evals.yaml").write_bytes(b"\xff\xfe\x00")
    assert "evals.yaml" in (watch.read().problem or "")
