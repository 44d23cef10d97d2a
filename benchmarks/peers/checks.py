"""The work that all of them do: four checks of a record, as plain functions, and a timer.

Standard library only: every contender runs in an environment of its own.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable

TERM = "booking"
_PATTERN = re.compile(r"\bready\b")


def contains(response: str) -> bool:
    return TERM in response.casefold()


def matches(response: str) -> bool:
    return _PATTERN.search(response) is not None


def timed(work: Callable[[], object]) -> None:
    """Do the work and print what it took, without the imports before it."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    json.dump(took, sys.stdout)
