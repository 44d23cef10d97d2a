"""A model that refuses the key is not asked for every run, and agents are not bothered for nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.execution.test_executing import runs_of, start
from tests.support.model_server import ModelServer, refusal
from tests.support.projects import calls, make_project, scripted

from evalstudio.execution.processor import work_off
from evalstudio.execution.workspace import open_workspace


async def test_an_execution_whose_judge_refuses_the_key_ends_early(tmp_path: Path) -> None:
    async with ModelServer(lambda _: refusal(401, "bad key")) as model:
        scenario = scripted("s", "hello") | {"successCriteria": "The agent greets."}
        settings = {"baseUrl": model.url, "apiKey": "k", "models": {"evaluation": "judge"}}
        config = make_project(tmp_path, [scenario], repetitions=40, llmSettings=settings, maxConcurrency=2)
        async with open_workspace(config) as workspace:
            execution = await start(workspace, tmp_path)
            done = await work_off(workspace, execution, stop=asyncio.Event())
            runs = await runs_of(workspace, done)
    assert done.counts.errored == 40
    assert {run.result.fault for run in runs if run.result} == {"judge"}
    assert any("not asked again for now" in run.result.reason for run in runs if run.result)
    assert len(model.requests) < 10
    assert len(calls(tmp_path)) < 10
