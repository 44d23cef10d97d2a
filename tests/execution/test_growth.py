"""A project that has run for long costs no more per run than a new one."""

from __future__ import annotations

import asyncio
import resource
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.support.projects import make_project, scripted

from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.project.entities import StoredEval

ROUNDS = 4


async def execute(workspace: Workspace, runs: int) -> float:
    """CPU seconds per run of an execution."""
    wanted = await workspace.store.find("eval", "all")
    assert isinstance(wanted, StoredEval)
    order = await request_for(workspace, wanted, repetitions=runs)
    start = time.process_time()
    execution = await start_execution(workspace, order)
    done = await work_off(workspace, execution, stop=asyncio.Event(), concurrency=50)
    assert done.counts.passed == runs
    return (time.process_time() - start) / runs


async def grown(stack: AsyncExitStack, folder: Path, stored: int) -> Workspace:
    """A project with so many stored runs."""
    folder.mkdir()
    config = make_project(folder, [scripted("s", "hello")])
    workspace = await stack.enter_async_context(open_workspace(config))
    await apply_files(workspace, [folder / "evals.json"])
    for start in range(0, stored, 1000):
        await execute(workspace, min(1000, stored - start))
    return workspace


async def grow(folder: Path, sizes: tuple[int, int], batch: int) -> tuple[float, float, int]:
    """The best CPU per run at two sizes, and by how many kilobytes the process grew for the second.

    They take turns: what else the machine does meanwhile disturbs both.
    """
    async with AsyncExitStack() as stack:
        small = await grown(stack, folder / "small", sizes[0])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        large = await grown(stack, folder / "large", sizes[1])
        costs = [(await execute(small, batch), await execute(large, batch)) for _ in range(ROUNDS)]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    return min(one for one, _ in costs), min(other for _, other in costs), memory


async def test_two_thousand_stored_runs_cost_about_as_much_as_a_hundred(tmp_path: Path) -> None:
    small, large, _ = await grow(tmp_path, (100, 2_000), 100)
    assert large <= 1.5 * small


@pytest.mark.soak
async def test_ten_thousand_stored_runs_cost_as_much_as_a_hundred(tmp_path: Path) -> None:
    small, large, kilobytes = await grow(tmp_path, (100, 10_000), 400)
    print(f"\nCPU per run: {small * 1e3:.2f} ms at 100 stored, {large * 1e3:.2f} ms at 10,000", end="")
    print(f" ({large / small:.2f} ×), memory grew by {kilobytes / 1024:.0f} MB")
    assert large <= 1.2 * small
    assert kilobytes < 50_000
