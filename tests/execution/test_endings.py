"""Every way a conversation can end, kept by both databases, with personas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conversation.talking import by_model, verdict
from tests.support.model_server import ModelServer, refusal
from tests.support.projects import make_project

from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import Run, StoredEval
from evalstudio.storage.contract import Filters, all_runs

Storage = Callable[[], dict[str, Any]]

PERSONAS = [{"name": "Ada"}, {"name": "Bo"}]
LEAVES = {"stop": True, "stop_reason": "I have what I wanted."}
LATER = {"type": "regex", "config": {"pattern": "nothing like it"}, "gate": "finally", "name": "at the end"}
HARMLESS = {"type": "regex", "config": {"pattern": "x{9}", "mustMatch": False}}

AGENT = """
from evalstudio import ConnectorError, define_connector, define_evaluator

WITHOUT_STATE = set()

@define_connector(type="test-agent")
async def test_agent(ctx) -> str:
    text = ctx.messages[-1].text
    if "no state" in text:
        WITHOUT_STATE.add(ctx.run.id)
    if "break" in text:
        raise ConnectorError("the agent broke")
    return f"echo: {text}"

@test_agent.state
async def state(ctx):
    if ctx.run.id in WITHOUT_STATE:
        raise ConnectorError("the state is out of reach")
    return {}

@define_evaluator(gate="always")
def raises(ctx) -> bool:
    raise RuntimeError("the evaluator broke")

@define_evaluator(gate="always")
def farewell(ctx) -> bool:
    return not ctx.is_final
"""


def says(text: str) -> dict[str, Any]:
    return {"message": text, "stop": False}


def scenario(**fields: Any) -> dict[str, Any]:
    return {"name": "s", "personas": ["Ada", "Bo"], "evaluators": [HARMLESS], **fields}


ENDINGS: dict[str, tuple[dict[str, Any], Any, Any, dict[str, Any]]] = {
    "success": (
        scenario(successCriteria="It answers.", maxMessages=8),
        [says("one"), says("two")],
        [verdict(success=False), verdict(success=True)],
        {"outcome": "pass", "endedBy": "success", "turns": 2},
    ),
    "failure": (
        scenario(evaluators=[{"type": "regex", "config": {"pattern": "two", "mustMatch": False}}]),
        [says("one"), says("two")],
        [],
        {"outcome": "fail", "endedBy": "failure", "turns": 2},
    ),
    "script": (
        scenario(script=["one", "two"], personas=[]),
        [],
        [],
        {"outcome": "pass", "endedBy": "script", "turns": 2},
    ),
    "user, after one turn": (
        scenario(evaluators=[HARMLESS, LATER]),
        [says("one"), LEAVES],
        [],
        {"outcome": "fail", "endedBy": "user", "turns": 1, "final": "at the end"},
    ),
    "user, after two turns": (
        scenario(evaluators=[HARMLESS, {**LATER, "config": {"pattern": "echo"}}]),
        [says("one"), says("two"), LEAVES],
        [],
        {"outcome": "pass", "endedBy": "user", "turns": 2, "final": "at the end"},
    ),
    "user, after a turn whose evaluator had asked whether it was the last": (
        scenario(evaluators=[{"type": "farewell"}, HARMLESS]),
        [says("one"), says("two"), LEAVES],
        [],
        {"outcome": "fail", "endedBy": "user", "turns": 2, "last": [("farewell", False), ("regex", True)]},
    ),
    "limit": (
        scenario(maxMessages=4),
        [says("one"), says("two")],
        [],
        {"outcome": "pass", "endedBy": "limit", "turns": 2},
    ),
    "the agent breaks at once": (
        scenario(),
        [says("break")],
        [],
        {"outcome": "error", "fault": "agent", "turns": 1},
    ),
    "the agent breaks later": (
        scenario(),
        [says("one"), says("break")],
        [],
        {"outcome": "error", "fault": "agent", "turns": 2},
    ),
    "the state is out of reach after the user left": (
        scenario(evaluators=[HARMLESS, LATER]),
        [says("no state"), LEAVES],
        [],
        {"outcome": "error", "fault": "agent", "endedBy": "user", "turns": 1},
    ),
    "the state is out of reach at the limit": (
        scenario(maxMessages=2),
        [says("no state")],
        [],
        {"outcome": "error", "fault": "agent", "endedBy": "limit", "turns": 1},
    ),
    "the simulator fails at once": (
        scenario(),
        lambda request: refusal(400, "no"),
        [],
        {"outcome": "error", "fault": "simulator", "turns": 0},
    ),
    "the simulator fails after a turn": (
        scenario(),
        [says("one"), refusal(400, "no")],
        [],
        {"outcome": "error", "fault": "simulator", "turns": 1},
    ),
    "the judge fails": (
        scenario(successCriteria="It answers.", maxMessages=2),
        [says("one")],
        lambda request: refusal(400, "no"),
        {"outcome": "error", "fault": "judge", "endedBy": "limit", "turns": 1},
    ),
    "an evaluator fails, then the user leaves": (
        scenario(evaluators=[{"type": "raises"}]),
        [says("one"), LEAVES],
        [],
        {"outcome": "error", "fault": "evaluator", "endedBy": "user", "turns": 1},
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_every_ending_is_kept_whole(name: str, tmp_path: Path, storage: Storage) -> None:
    wanted, user, judge, expected = ENDINGS[name]
    if isinstance(user, list):
        user = [reply for _ in PERSONAS for reply in user] if wanted["personas"] else user
    if isinstance(judge, list):
        judge = [reply for _ in PERSONAS for reply in judge]
    async with ModelServer(by_model(user=user, judge=judge)) as models:
        runs = await run_to_end(tmp_path, wanted, models, storage())
    assert len(runs) == max(1, len(wanted["personas"]))
    for run in runs:
        assert run.result is not None
        assert run.result.outcome == expected["outcome"], run.result.reason
        assert run.result.fault == expected.get("fault")
        assert run.output is not None
        assert run.output.get("endedBy") == expected.get("endedBy")
        assert [turn.number for turn in run.turns] == list(range(1, expected["turns"] + 1))
        assert run.turn_count == expected["turns"]
        assert "finalResults" not in run.output
        if "final" in expected:
            assert run.turns[-1].results[-1].name == expected["final"]
        if "last" in expected:
            last = [(one.name, one.success) for one in run.turns[-1].results if one.kind == "assertion"]
            assert last == expected["last"]
            assert all(one.success for one in run.turns[0].results)


async def test_a_cassette_without_the_answer_is_a_fault_of_the_system(
    tmp_path: Path, storage: Storage
) -> None:
    from evalstudio.execution.workspace import ModelOptions

    script = ["one", "two"]
    tape = tmp_path / "tape.jsonl"
    async with ModelServer(by_model(user=[], judge=[])) as models:
        await run_to_end(
            tmp_path / "a",
            scenario(script=["one"], maxMessages=2),
            models,
            storage(),
            ModelOptions(record=tape),
        )
        runs = await run_to_end(
            tmp_path / "b",
            scenario(script=script, maxMessages=4),
            models,
            storage(),
            ModelOptions(replay=tape),
        )
    for run in runs:
        assert run.result is not None
        assert (run.result.outcome, run.result.fault) == ("error", "system")
        assert [turn.number for turn in run.turns] == [1, 2]


async def run_to_end(
    folder: Path, wanted: dict[str, Any], models: ModelServer, storage: dict[str, Any], options: Any = None
) -> list[Run]:
    settings = {
        "provider": "local",
        "baseUrl": models.url,
        "models": {"evaluation": "judge", "persona": "user"},
        "maxRetries": 0,
    }
    path = make_project(folder, [wanted], personas=PERSONAS, llmSettings=settings, storage=storage)
    (folder / "agent.py").write_text(AGENT)
    async with open_workspace(path, options) as workspace:
        await apply_files(workspace, [folder / "evals.json"])
        chosen = await workspace.store.find("eval", "all")
        assert isinstance(chosen, StoredEval)
        execution = await start_execution(workspace, await request_for(workspace, chosen))
        # One at a time: the models' replies are used up in order.
        done = await work_off(workspace, execution, stop=asyncio.Event(), concurrency=1)
        assert done.status == "completed"
        found = [run async for run in all_runs(workspace.store, Filters(execution_id=execution.id))]
        return [await workspace.store.run(run.id) for run in found]
