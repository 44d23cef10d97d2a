"""How fast commands start: ``--help`` beside a bare Typer program, others on a small project."""

from __future__ import annotations

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


# Seconds from the prompt, of commands on a small project.
LONGEST = 0.5
COMMANDS = (["status"], ["run", "list"], ["eval", "run"])


def measure() -> list[BenchmarkLine]:
    return [_help(), *(_command(words) for words in COMMANDS)]


def _command(words: list[str]) -> BenchmarkLine:
    """How long a command takes, beside how much of that is imports (``-X importtime``)."""
    with tempfile.TemporaryDirectory() as folder:
        evalstudio = [sys.executable, "-m", "evalstudio"]
        for prepare in (["init", "."], ["eval", "run"]):
            subprocess.run([*evalstudio, *prepare], cwd=folder, check=True, capture_output=True)
        command = [*evalstudio, *words]
        seconds = statistics.median(_seconds(command, folder) for _ in range(ROUNDS * 2))
        timed = [sys.executable, "-X", "importtime", *command[1:]]
        trace = subprocess.run(timed, cwd=folder, check=True, capture_output=True, text=True).stderr
    rows = [line.removeprefix("import time:").split("|") for line in trace.splitlines() if "|" in line]
    imports = sum(int(own) for own, *_ in rows if own.strip().isdigit()) / 1e6
    return BenchmarkLine(
        f"evalstudio {' '.join(words)}, a small project",
        f"{seconds * 1000:.0f} ms",
        f"{imports * 1000:.0f} ms of imports, traced",
        f"≤ {LONGEST * 1000:.0f} ms",
        seconds <= LONGEST,
    )


def _seconds(command: list[str], folder: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


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
