"""A plugin's judge may ask a model of its own: what it used is unknown, live, reviewed or rescored."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.rescores import begin_rescore, rescore_execution, rescore_request
from evalstudio.execution.rescoring import Measure
from evalstudio.execution.review_request import request_by_scenario
from evalstudio.execution.reviews import begin_review, review_conversations
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.project.entities import Execution
from evalstudio.recordings.reading import conversations_in
from evalstudio.storage.contract import Filters

PLUGIN = """
from evalstudio import define_connector, define_evaluator

@define_connector(type="parrot")
def parrot(ctx):
    return "hello"

@define_evaluator(cost="llm", gate="always")
async def own_judge(ctx) -> bool:
    return True

@define_evaluator(cost="llm", kind="metric")
async def our_judge(ctx) -> float:
    return 1.0 if ctx.embedder is None else 0.0

@define_evaluator
async def no_judge(ctx) -> bool:
    return True
"""
CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}


async def judged(workspace: Workspace, execution: Execution) -> list[tuple[int | None, float | None]]:
    page = await workspace.store.runs(Filters(execution_id=execution.id))
    return [(run.judge_tokens, run.judge_cost) for run in page.items]


@pytest.mark.parametrize(
    ("evaluators", "known"), [(["own-judge", "our-judge"], False), (["our-judge", "no-judge"], True)]
)
async def test_what_nobody_counted_is_unknown_and_never_0(
    tmp_path: Path, evaluators: list[str], known: bool
) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    # No evaluator here calls it.
    model = {"provider": "openai", "apiKey": "k", "baseUrl": "http://127.0.0.1:9/v1"}
    config = {
        "name": "t",
        "plugins": ["./plugin.py"],
        "llmSettings": {**model, "models": {"evaluation": "m"}},
    }
    (tmp_path / "evalstudio.config.json").write_text(json.dumps(config))
    definitions = {
        "connectors": [{"name": "parrot", "type": "parrot"}],
        "scenarios": [
            {"name": "greets", "script": ["hi", "again"], "evaluators": [{"type": one} for one in evaluators]}
        ],
        "evals": [{"name": "all", "scenarios": ["greets"], "connectors": ["parrot"]}],
    }
    (tmp_path / "all.json").write_text(json.dumps(definitions))
    expected = [(0, 0.0)] if known else [(None, None)]
    async with open_workspace(tmp_path / "evalstudio.config.json") as workspace:
        await apply_files(workspace, [tmp_path / "all.json"])
        chosen = await workspace.store.find("eval", "all")
        assert chosen is not None
        live = await start_execution(workspace, await request_for(workspace, chosen))
        await work_off(workspace, live, stop=asyncio.Event())
        assert await judged(workspace, live) == expected

        request = await request_by_scenario(workspace, "greets")
        reviewed = await begin_review(workspace, request)
        await review_conversations(workspace, request, reviewed, conversations_in([CHAT], "x"))
        assert await judged(workspace, reviewed) == expected

        for ask_again in (False, True):
            again = await rescore_request(workspace, live.id, Measure(ask_again=ask_again))
            rescored = await begin_rescore(workspace, again)
            await rescore_execution(workspace, again, rescored)
            # What was said then is not asked for again, and costs nothing.
            assert await judged(workspace, rescored) == (expected if ask_again else [(0, 0.0)])
