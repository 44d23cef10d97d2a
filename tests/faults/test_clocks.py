"""Clocks that are set while runs are under way: nobody's lease is taken, and no agent is blamed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.faults.ledger import compare
from tests.faults.trial import Trial, begin
from tests.support.projects import calls

Storage = Callable[[], dict[str, Any]]


def library() -> str:
    """libfaketime, which lets a process see another time. ``make soak`` installs it."""
    places = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not places and (command := shutil.which("faketime")):
        places = sorted(Path(command).resolve().parents[1].glob("lib*/**/libfaketimeMT.so.1"))
    assert places, "libfaketime is needed; install it with scripts/test-parts faketime"
    return str(places[0])


class SetClock:
    """A wall clock that can be set while processes read it. The time that only counts on stays true."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"{name}.clock"
        self.set("+0")

    def set(self, offset: str) -> None:
        self._file.write_text(f"{offset}\n")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


async def asked_again(trial: Trial, more: int) -> None:
    """Wait until the agent was called so many times more."""
    asked = len(calls(trial.folder))
    while len(calls(trial.folder)) < asked + more and any(one.poll() is None for one in trial.workers):
        await asyncio.sleep(0.02)


async def step(folder: Path, storage: dict[str, Any], runs: int, steps: list[str]) -> None:
    """Two workers with a clock each; one is set, then the other, while runs are under way."""
    trial = await begin(folder, runs, 0.5, storage)
    with trial.cleaned_up():
        clocks = [SetClock(folder, name) for name in ("first", "second")]
        for clock in clocks:
            trial.worker(env=clock.environment)
        for number, offset in enumerate(steps):
            await asked_again(trial, 8)
            clocks[number % 2].set(offset)
        assert await trial.end() == [0, 0], trial.log[-2000:]
        ledger = await compare(trial.config, runs)
        ledger.check(f"{len(steps)} steps of clocks on {storage['type']}")
        assert ledger.attempts == runs, "a lease was taken from a worker that was alive"


@pytest.mark.soak
async def test_clocks_that_are_set_forth_and_back(tmp_path: Path, storage: Storage) -> None:
    steps = ["+1h", "-1h", "+1d", "-1d", "+10s", "-10s", "+45s", "-45s", "+2h", "+0"]
    await step(tmp_path, storage(), 120, steps)
