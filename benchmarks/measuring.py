"""Timing two things beside each other, so that a noisy machine disturbs both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 5


@dataclass(frozen=True)
class BenchmarkLine:
    """One line of the report: what was measured, against what, and whether it keeps its promise."""

    what: str
    ours: str
    floor: str
    promise: str
    kept: bool


def interleaved(
    ours: Callable[[], object], floor: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float]:
    """Median CPU seconds of each, taken in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for place, work in enumerate((ours, floor)):
            start = time.process_time()
            work()
            times[place].append(time.process_time() - start)
    return statistics.median(times[0]), statistics.median(times[1])
