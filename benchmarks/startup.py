"""How fast ``evalstudio --help`` starts, beside a bare Typer program with one command."""

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


def measure() -> BenchmarkLine:
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
