"""Attempts, metadata and the time to the first token are stored with the turn and there when rescoring."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.agent_server import AgentServer, Answer, sse

from evalstudio.cli.output import plain
from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.rescoring import rescore
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import Run, StoredEval
from evalstudio.storage.contract import Filters, all_runs

Storage = Callable[[], dict[str, Any]]
BUSY = Answer(status=429, headers={"Retry-After": "0"}, json={})
STREAM = sse({"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}, "data: [DONE]")
PLUGIN = """
from evalstudio import EvaluatorContext, define_evaluator


@define_evaluator(type="finished")
def finished(ctx: EvaluatorContext) -> bool:
    invocation = ctx.last_invocation
    return invocation.metadata["finishReason"] == "stop" and invocation.first_token_ms is not None
"""


async def one_run(folder: Path, url: str, storage: dict[str, Any], *script: str) -> tuple[Run, Any]:
    (folder / "plugin.py").write_text(PLUGIN)
    config = folder / "evalstudio.config.json"
    config.write_text(json.dumps({"name": "t", "plugins": ["./plugin.py"], "storage": storage}))
    scenario = {"name": "s", "script": list(script), "evaluators": [{"type": "finished"}]}
    definitions = {
        "connectors": [{"name": "agent", "type": "http", "baseUrl": url}],
        "scenarios": [scenario],
        "evals": [{"name": "all", "scenarios": ["s"], "connectors": ["agent"]}],
    }
    (folder / "evals.json").write_text(json.dumps(definitions))
    async with open_workspace(config) as workspace:
        await apply_files(workspace, [folder / "evals.json"])
        chosen = await workspace.store.find("eval", "all")
        assert isinstance(chosen, StoredEval)
        execution = await start_execution(workspace, await request_for(workspace, chosen))
        await work_off(workspace, execution, stop=asyncio.Event())
        runs = [run async for run in all_runs(workspace.store, Filters(execution_id=execution.id))]
        run = await workspace.store.run(runs[0].id)
        return run, await rescore(workspace, run)


async def test_what_was_measured_is_stored_and_there_when_rescoring(tmp_path: Path, storage: Storage) -> None:
    async with AgentServer([BUSY, STREAM, STREAM]) as agent:
        run, rescored = await one_run(tmp_path, agent.url, storage(), "one", "two")
    assert run.result is not None
    assert (run.result.outcome, rescored.outcome) == ("pass", "pass")
    first, second = (plain(turn) for turn in run.turns)
    assert [attempt["number"] for attempt in first["attempts"]] == [1, 2]
    assert "attempts" not in second
    assert first["metadata"] == second["metadata"] == {"finishReason": "stop"}
    assert first["firstTokenMs"] <= first["latencyMs"]


async def test_the_attempts_of_a_call_that_was_given_up_are_stored(tmp_path: Path, storage: Storage) -> None:
    async with AgentServer([STREAM, BUSY]) as agent:
        run, _ = await one_run(tmp_path, agent.url, storage(), "one", "two")
    assert run.result is not None
    assert run.result.fault == "agent"
    assert [attempt.number for attempt in run.turns[-1].attempts or ()] == [1, 2, 3]
