"""Latency is the agent's own: no import, no wait for a thread, however many runs go on at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.project.entities import Execution, Run, StoredEval
from evalstudio.storage.contract import Filters, all_runs


def project(folder: Path, agent: str, *evaluators: Any, repetitions: int = 1, **connector: Any) -> Path:
    """A project with one scenario for the function ``answer`` of a module."""
    module = f"agent_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(agent)
    config = folder / "evalstudio.config.json"
    config.write_text(json.dumps({"name": "t", "pythonModules": [module]}))
    function = {"name": "agent", "type": "python", "config": {"function": f"{module}:answer"}}
    definitions = {
        "connectors": [function | connector],
        "scenarios": [{"name": "s", "script": ["Hi"], "evaluators": list(evaluators)}],
        "evals": [{"name": "all", "scenarios": ["s"], "connectors": ["agent"], "repetitions": repetitions}],
    }
    (folder / "evals.json").write_text(json.dumps(definitions))
    return config


async def executed(workspace: Workspace, folder: Path, concurrency: int = 8) -> tuple[Execution, list[Run]]:
    await apply_files(workspace, [folder / "evals.json"])
    chosen = await workspace.store.find("eval", "all")
    assert isinstance(chosen, StoredEval)
    execution = await start_execution(workspace, await request_for(workspace, chosen))
    done = await work_off(workspace, execution, stop=asyncio.Event(), concurrency=concurrency)
    summaries = [run async for run in all_runs(workspace.store, Filters(execution_id=done.id))]
    return done, [await workspace.store.run(run.id) for run in summaries]


BUDGET = {"type": "latency-budget", "config": {"maxMs": 300}}
SLEEPS = """
import time


def answer(messages):
    start = time.perf_counter()
    time.sleep(0.1)
    return str((time.perf_counter() - start) * 1000)
"""
SLOW_TO_IMPORT = """
import time

time.sleep(1.0)


def answer(messages):
    return "done"
"""


async def test_a_blocking_agent_keeps_its_budget_however_many_run_at_once(tmp_path: Path) -> None:
    config = project(tmp_path, SLEEPS, BUDGET, repetitions=300)
    async with open_workspace(config) as workspace:
        _, runs = await executed(workspace, tmp_path, concurrency=200)
    # A machine that is busy elsewhere makes the sleep itself longer, which only the agent can know.
    own = [float(run.messages[-1].text) for run in runs]
    over = [ms for run, ms in zip(runs, own, strict=True) if run.result and run.result.outcome != "pass"]
    assert len(runs) == 300
    # A thread that is not given a core between its return and our clock is rare, and nobody's to prevent.
    assert len([ms for ms in over if ms < 250]) <= 3
    assert sum(run.latency_ms or 0 for run in runs) < sum(own) + 300 * 20


@pytest.mark.parametrize("limit", [{}, {"timeoutSeconds": 0.5}])
async def test_importing_the_agent_is_neither_in_its_latency_nor_in_its_timeout(
    tmp_path: Path, limit: dict[str, Any]
) -> None:
    config = project(tmp_path, SLOW_TO_IMPORT, BUDGET, repetitions=3)
    definitions = json.loads((tmp_path / "evals.json").read_text())
    definitions["connectors"][0]["config"] |= limit
    (tmp_path / "evals.json").write_text(json.dumps(definitions))
    async with open_workspace(config) as workspace:
        done, runs = await executed(workspace, tmp_path)
    assert done.counts.passed == 3
    assert max(run.latency_ms or 0 for run in runs) < 300


PRINTS = """
import os
import sys

print("imported")


def answer(ctx):
    print("hello from", ctx.run.id)
    print("key", os.environ["MY_API_KEY"], file=sys.stderr)
    return "done"
"""


async def test_what_an_agent_prints_is_the_log_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_API_KEY", "very-secret-key")
    config = project(tmp_path, PRINTS, BUDGET, repetitions=20)
    async with open_workspace(config) as workspace:
        _, runs = await executed(workspace, tmp_path)
    logs = [str((run.output or {}).get("log")) for run in runs]
    assert all(log.endswith(f"hello from {run.id}\nkey ***\n") for run, log in zip(runs, logs, strict=True))
    assert sum("imported" in log for log in logs) == 1
    printed = capsys.readouterr()
    assert "hello" not in printed.out + printed.err


async def test_a_run_that_printed_nothing_has_no_log(tmp_path: Path) -> None:
    async with open_workspace(project(tmp_path, SLEEPS, BUDGET)) as workspace:
        _, (run,) = await executed(workspace, tmp_path)
    assert run.output is not None
    assert "log" not in run.output


async def test_a_second_attempt_at_a_run_has_a_session_of_its_own(tmp_path: Path) -> None:
    agent = "def answer(ctx):\n    print(ctx.run.session_id)\n    raise ValueError('no')\n"
    async with open_workspace(project(tmp_path, agent, BUDGET)) as workspace:
        done, (run,) = await executed(workspace, tmp_path)
        await workspace.store.retry(run_ids=[run.id])
        await work_off(workspace, done, stop=asyncio.Event())
        logs = [((await workspace.store.run(run.id, attempt=n)).output or {}).get("log") for n in (1, 2)]
    assert all(logs)
    assert len(set(logs)) == 2
