"""Workers in namespaces of their own, as in containers with one host name: none takes the other for dead."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.faults.ledger import compare
from tests.faults.test_clocks import asked_again
from tests.faults.trial import begin

# The worker is the first process of its namespace, and dies with what started it.
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def may_make_namespaces() -> bool:
    return os.getuid() == 0 and subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0


@pytest.mark.soak
async def test_two_namespaces_of_processes(tmp_path: Path) -> None:
    prefix = NAMESPACE
    if not may_make_namespaces():
        print("\nnamespaces: only root can make them here; both workers are in this one")
        prefix = []
    trial = await begin(tmp_path, 80, 0.5, {"type": "sqlite"})
    with trial.cleaned_up():
        first, _ = trial.worker(prefix), trial.worker(prefix)
        await asked_again(trial, 40)
        # Longer than the dead are looked for.
        await asyncio.sleep(7)
        before = await compare(trial.config, 80)
        assert before.attempts == 80, "a worker was taken for dead"
        trial.kill(first)
        trial.worker(prefix)
        await trial.end()
        ledger = await compare(trial.config, 80)
        where = "two namespaces" if prefix else "one namespace"
        ledger.check(f"1 kill among workers in {where}")
