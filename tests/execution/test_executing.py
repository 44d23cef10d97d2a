"""Executions from start to end, on a real SQLite file and a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.projects import calls, make_project, scripted

from evalstudio.base.problems import InvalidInput
from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import Processor, work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workers import has_died, new_worker_id
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.project.entities import Execution, RunSummary, StoredEval
from evalstudio.storage.contract import Filters, all_runs

Storage = Callable[[], dict[str, Any]]


async def start(workspace: Workspace, folder: Path, **narrowed: Any) -> Execution:
    await apply_files(workspace, [folder / "evals.json"])
    wanted = await workspace.store.find("eval", "all")
    assert isinstance(wanted, StoredEval)
    return await start_execution(workspace, await request_for(workspace, wanted, **narrowed))


async def runs_of(workspace: Workspace, execution: Execution) -> list[RunSummary]:
    return [run async for run in all_runs(workspace.store, Filters(execution_id=execution.id))]


async def test_an_eval_runs_to_its_end_and_everything_is_kept(tmp_path: Path, storage: Storage) -> None:
    scenarios = [
        scripted("passes", "one", "two"),
        scripted("fails", "one", pattern="nowhere"),
        scripted("breaks", "one", "break now"),
        scripted("cases", "hello {{name}}", cases=[{"name": n, "vars": {"name": n}} for n in ("Ada", "Bob")]),
    ]
    config = make_project(tmp_path, scenarios, repetitions=2, storage=storage())
    async with open_workspace(config) as workspace:
        execution = await start(workspace, tmp_path)
        assert execution.counts.total == 10
        done = await work_off(workspace, execution, stop=asyncio.Event())
        assert done.status == "completed"
        assert (done.counts.passed, done.counts.failed, done.counts.errored) == (6, 2, 2)
        runs = await runs_of(workspace, done)
        broken = next(run for run in runs if run.scenario_name == "breaks")
        assert broken.status == "error"
        assert broken.result is not None
        assert (broken.result.outcome, broken.result.fault) == ("error", "agent")
        whole = await workspace.store.run(broken.id)
        assert [m.text for m in whole.messages] == ["one", "echo: one", "break now"]
        assert "the agent broke" in (whole.error or "")
        passed = await workspace.store.run(next(r.id for r in runs if r.scenario_name == "passes"))
        assert [m.text for m in passed.messages] == ["one", "echo: one", "two", "echo: two"]
        assert [turn.number for turn in passed.turns] == [1, 2]
        assert passed.output is not None
        assert passed.output["messageCount"] == 4
        assert {r.name for r in passed.output["evaluatorResults"]} >= {"regex", "latency"}


async def test_a_finished_turn_is_kept_before_the_next_begins(tmp_path: Path, storage: Storage) -> None:
    config = make_project(tmp_path, [scripted("slow", "first", "wait=30 second")], storage=storage())
    async with open_workspace(config) as workspace:
        execution = await start(workspace, tmp_path)
        stop = asyncio.Event()
        work = asyncio.create_task(work_off(workspace, execution, stop=stop))
        (run,) = await runs_of(workspace, execution)
        for _ in range(100):
            if len(calls(tmp_path)) == 2:
                break
            await asyncio.sleep(0.05)
        kept = await workspace.store.run(run.id)
        assert [m.text for m in kept.messages] == ["first", "echo: first"]
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_cancelling_an_execution_stops_its_runs(tmp_path: Path, storage: Storage) -> None:
    config = make_project(tmp_path, [scripted("slow", "wait=30 x")], repetitions=5, storage=storage())
    async with open_workspace(config) as workspace:
        execution = await start(workspace, tmp_path)
        processor = Processor(workspace, concurrency=2, execution_id=execution.id, lease_seconds=0.6)

        async def over() -> bool:
            return (await workspace.store.execution(execution.id)).status in ("completed", "cancelled")

        work = asyncio.create_task(processor.run(stop=asyncio.Event(), until=over))
        while len(calls(tmp_path)) < 2:
            await asyncio.sleep(0.05)
        await workspace.store.cancel(execution_id=execution.id)
        await asyncio.wait_for(work, 15)
        done = await workspace.store.execution(execution.id)
        assert done.status == "cancelled"
        assert done.counts.cancelled == 5
        assert all(run.result is None for run in await runs_of(workspace, done))


async def test_stopping_finishes_or_releases_and_another_goes_on(tmp_path: Path, storage: Storage) -> None:
    config = make_project(tmp_path, [scripted("s", "until=go-on x")], repetitions=3, storage=storage())
    async with open_workspace(config) as workspace:
        execution = await start(workspace, tmp_path)
        stop = asyncio.Event()
        processor = Processor(workspace, concurrency=3, grace_seconds=0.1)
        work = asyncio.create_task(processor.run(stop=stop))
        while len(calls(tmp_path)) < 3:
            await asyncio.sleep(0.05)
        stop.set()
        await asyncio.wait_for(work, 10)
        runs = await runs_of(workspace, execution)
        assert {run.status for run in runs} == {"queued"}
        (tmp_path / "go-on").touch()
        done = await work_off(workspace, execution, stop=asyncio.Event())
        assert done.counts.passed == 3


async def test_retry_takes_errored_runs_only(tmp_path: Path, storage: Storage) -> None:
    config = make_project(tmp_path, [scripted("ok", "fine"), scripted("bad", "break")], storage=storage())
    async with open_workspace(config) as workspace:
        execution = await start(workspace, tmp_path)
        await work_off(workspace, execution, stop=asyncio.Event())
        assert await workspace.store.retry(execution_id=execution.id) == 1
        done = await work_off(workspace, execution, stop=asyncio.Event())
        runs = {run.scenario_name: run for run in await runs_of(workspace, done)}
        assert (runs["ok"].attempt, runs["bad"].attempt) == (1, 2)
        assert len([call for call in calls(tmp_path) if call["text"] == "fine"]) == 1


async def test_a_connector_takes_no_more_runs_at_once_than_allowed(tmp_path: Path, storage: Storage) -> None:
    config = make_project(
        tmp_path, [scripted("s", "wait=0.2 x")], repetitions=6, maxPerConnector=2, storage=storage()
    )
    async with open_workspace(config) as workspace:
        execution = await start(workspace, tmp_path)
        started = asyncio.get_running_loop().time()
        done = await work_off(workspace, execution, stop=asyncio.Event(), concurrency=6)
        assert done.counts.passed == 6
        assert asyncio.get_running_loop().time() - started >= 0.6


async def test_nothing_is_queued_unless_everything_is_valid(tmp_path: Path, storage: Storage) -> None:
    config = make_project(tmp_path, [scripted("s", "x")], storage=storage())
    async with open_workspace(config) as workspace:
        await apply_files(workspace, [tmp_path / "evals.json"])
        with pytest.raises(InvalidInput, match='no connector called "nobody"'):
            await start(workspace, tmp_path, connectors=["nobody"])
        with pytest.raises(InvalidInput, match='called "t"; there are s'):
            await start(workspace, tmp_path, only=["t"])
        assert (await workspace.store.executions()).items == []


def test_a_living_worker_is_not_taken_for_dead() -> None:
    assert not has_died(new_worker_id())
    assert not has_died("another-machine:1:abc")
    assert not has_died("nonsense")
    host = new_worker_id().partition(":")[0]
    assert has_died(f"{host}:999999999:abc")


DEFAULTS = {"repetitions": 3, "maxMessages": 4}
LONG = [f"message {number}" for number in range(1, 6)]


async def turn_counts(
    folder: Path, scenario: dict[str, Any], storage: Storage, **eval_fields: Any
) -> list[int]:
    config = make_project(folder, [scenario], defaults=DEFAULTS, storage=storage(), **eval_fields)
    async with open_workspace(config) as workspace:
        execution = await start(workspace, folder)
        done = await work_off(workspace, execution, stop=asyncio.Event())
        return [run.turn_count for run in await runs_of(workspace, done)]


async def test_a_project_has_its_own_defaults(tmp_path: Path, storage: Storage) -> None:
    assert await turn_counts(tmp_path, scripted("s", "one"), storage, repetitions=None) == [1, 1, 1]


async def test_an_explicit_value_stands_whatever_the_defaults_say(tmp_path: Path, storage: Storage) -> None:
    scenario = scripted("s", *LONG, maxMessages=10)
    assert await turn_counts(tmp_path, scenario, storage, repetitions=1) == [5]


async def test_a_default_never_cuts_a_script_short(tmp_path: Path, storage: Storage) -> None:
    assert await turn_counts(tmp_path, scripted("s", *LONG), storage, repetitions=1) == [5]


async def test_a_limit_shorter_than_the_script_is_refused(tmp_path: Path, storage: Storage) -> None:
    with pytest.raises(InvalidInput, match="maxMessages: is 8, but the script needs 10"):
        await turn_counts(tmp_path, scripted("s", *LONG, maxMessages=8), storage)


VALUES_AGENT = """
from evalstudio import ConnectorContext, define_connector


@define_connector(type="test-agent")
def test_agent(ctx: ConnectorContext) -> str:
    return f"sold {ctx.run.case_values['drink']}"


@test_agent.state
def test_state(ctx: ConnectorContext) -> dict:
    return {"sold": ctx.run.case_values["drink"]}
"""


async def test_the_agent_and_its_hooks_have_the_values_of_the_case(tmp_path: Path) -> None:
    expected = {"type": "state-match", "config": {"expected": {"sold": "{{drink}}"}}}
    cases = [{"name": name, "vars": {"drink": name}} for name in ("tea", "milk")]
    scenario = {"name": "drinks", "script": ["A drink"], "evaluators": [expected], "cases": cases}
    config = make_project(tmp_path, [scenario])
    (tmp_path / "agent.py").write_text(VALUES_AGENT)
    async with open_workspace(config) as workspace:
        execution = await start(workspace, tmp_path)
        done = await work_off(workspace, execution, stop=asyncio.Event())
        assert done.counts.passed == 2
        runs = [await workspace.store.run(run.id) for run in await runs_of(workspace, done)]
        assert {run.messages[-1].text for run in runs} == {"sold tea", "sold milk"}
