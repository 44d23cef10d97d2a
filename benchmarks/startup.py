"""How fast commands start: ``--help`` beside a bare Typer program, others on a small project."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .measuring import ROUNDS, BenchmarkLine

BARE = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str = "world") -> None:
    "Say hello."
    print(f"hello {name}")


app()
"""


# Seconds of CPU from the prompt, of commands on a small project. Running an eval imports what talks to the
# agent, judges and stores besides what the others do.
LONGEST = {"status": 0.5, "run list": 0.5, "eval run": 0.6}
_AGENT = """
from evalstudio import ConnectorContext, define_connector


@define_connector
def shop(ctx: ConnectorContext) -> str:
    return "We are open from 9 to 18."
"""
_SCENARIO = """
name: Question {number}
script: [When are you open?]
evaluators:
  - {{type: regex, config: {{pattern: "9 to 18"}}}}
"""
_EVAL = """
connectors:
  - {name: Shop, type: shop}
evals:
  - {name: Opening hours, scenarios: [Question 1, Question 2], connectors: [Shop]}
"""


def measure() -> list[BenchmarkLine]:
    return [_help(), *_commands()]


def _commands() -> list[BenchmarkLine]:
    """Commands on a project of two scenarios in files, beside a Python that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        _write_project(Path(folder))
        evalstudio = [sys.executable, "-m", "evalstudio"]
        for prepare in (["apply", "definitions"], ["eval", "run"]):
            _seconds([*evalstudio, *prepare], folder)
        return [_command([*evalstudio, *words.split()], words, folder) for words in LONGEST]


def _write_project(folder: Path) -> None:
    (folder / "definitions").mkdir()
    (folder / "evalstudio.config.json").write_text(json.dumps({"name": "small", "plugins": ["./agent.py"]}))
    (folder / "agent.py").write_text(_AGENT)
    scenarios = "".join(f"---\nkind: scenario{_SCENARIO.format(number=number)}" for number in (1, 2))
    (folder / "definitions" / "scenarios.yaml").write_text(scenarios)
    (folder / "definitions" / "evals.yaml").write_text(_EVAL)


def _command(command: list[str], words: str, folder: str) -> BenchmarkLine:
    """How long a command takes, beside a bare Python and how much of it is imports (``-X importtime``)."""
    times = [(_seconds(command, folder), _seconds([sys.executable, "-c", "pass"], folder)) for _ in range(10)]
    seconds, bare = (min(part) for part in zip(*times, strict=True))
    timed = [sys.executable, "-X", "importtime", *command[1:]]
    trace = subprocess.run(timed, cwd=folder, env=_WARM, check=True, capture_output=True, text=True).stderr
    rows = [line.removeprefix("import time:").split("|") for line in trace.splitlines() if "|" in line]
    imports = sum(int(own) for own, *_ in rows if own.strip().isdigit()) / 1e6
    return BenchmarkLine(
        f"evalstudio {words}, a small project",
        f"{seconds * 1000:.0f} ms of CPU",
        f"{bare * 1000:.0f} ms python -c pass; {imports * 1000:.0f} ms of imports, traced",
        f"≤ {LONGEST[words] * 1000:.0f} ms",
        seconds <= LONGEST[words],
    )


# Installed packages have their bytecode beside them, whatever the shell says.
_WARM = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _seconds(command: list[str], folder: str) -> float:
    """The CPU time of a process, which others on the machine disturb least."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=_WARM, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _help() -> BenchmarkLine:
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE)
        commands = ([sys.executable, "-m", "evalstudio", "--help"], [sys.executable, str(bare), "--help"])
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS * 2):
            for place, command in enumerate(commands):
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                times[place].append(time.perf_counter() - start)
    ours, floor = (statistics.median(part) for part in times)
    return BenchmarkLine(
        "evalstudio --help",
        f"{ours * 1000:.0f} ms",
        f"{floor * 1000:.0f} ms bare Typer",
        f"{ours / floor:.2f} × of at most 2 ×",
        ours <= 2 * floor,
    )
