"""Recorded conversations as runs, executions scored again, and scenarios drafted from runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.models import ScriptedLlm

from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.definitions import EvaluatorUse, Scenario
from evalstudio.execution.comparing import compare_executions
from evalstudio.execution.definitions import apply_files
from evalstudio.execution.drafting import draft_scenario
from evalstudio.execution.rescores import begin_rescore, rescore_execution, rescore_request
from evalstudio.execution.rescoring import Measure
from evalstudio.execution.review_request import request_by_plan, request_by_scenario
from evalstudio.execution.reviews import (
    Review,
    ReviewRequest,
    begin_review,
    resumed_review,
    review_conversations,
)
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.llm.settings import LlmSettings
from evalstudio.project.entities import Execution, Run
from evalstudio.recordings.reading import Read, conversations_in
from evalstudio.storage.contract import Filters

ASKED = {"role": "user", "content": "Book a table"}
BOOKED = {"role": "assistant", "content": "Booked."}
SORRY = {"role": "assistant", "content": "Sorry."}
BOOKING: dict[str, Any] = {
    "name": "booking",
    "script": ["Book a table"],
    "evaluators": [{"type": "regex", "config": {"pattern": "Booked"}}],
}
OTHER: dict[str, Any] = {**BOOKING, "name": "other", "tags": ["second"]}


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncGenerator[Workspace]:
    config = tmp_path / "evalstudio.config.json"
    config.write_text(json.dumps({"name": "t"}))
    (tmp_path / "scenarios.json").write_text(json.dumps({"scenarios": [BOOKING, OTHER]}))
    async with open_workspace(config) as opened:
        await apply_files(opened, [tmp_path / "scenarios.json"])
        yield opened


def told(answer: dict[str, Any] = BOOKED, **fields: Any) -> dict[str, Any]:
    return {"messages": [ASKED, answer], **fields}


def read(*documents: Any) -> Iterator[Read]:
    return conversations_in(documents, "chats.jsonl")


async def reviewed(
    workspace: Workspace, *documents: Any, request: ReviewRequest | None = None, **more: Any
) -> Review:
    request = request or await request_by_scenario(workspace, "booking")
    execution = await begin_review(workspace, request)
    return await review_conversations(workspace, request, execution, read(*documents), **more)


async def runs_of(workspace: Workspace, execution: Execution) -> list[Run]:
    page = await workspace.store.runs(Filters(execution_id=execution.id), limit=500)
    return [await workspace.store.run(run.id) for run in page.items]


async def test_recorded_conversations_become_runs_of_an_execution(workspace: Workspace) -> None:
    calls = [{"name": "book", "arguments": {"people": 2}}]
    done = await reviewed(
        workspace,
        told(id="a", groundTruth="Booked.", tags=["vip"], agent="bot"),
        told(SORRY, id="b"),
        told(id="c", expectedCalls=calls),
        {"messages": [ASKED], "id": "d"},
    )
    execution = await workspace.store.execution(done.execution.id)
    counts = execution.counts
    assert (execution.source, execution.status, execution.partial) == ("recorded", "completed", None)
    assert (counts.total, counts.passed, counts.failed, counts.errored) == (4, 1, 2, 1)
    runs = {run.case_name: run for run in await runs_of(workspace, execution)}
    assert [message.text for message in runs["a"].messages] == ["Book a table", "Booked."]
    assert runs["a"].case is not None
    assert runs["a"].case.ground_truth == "Booked."
    assert (runs["a"].latency_ms, runs["a"].connector_name) == (None, "bot")
    recording = (runs["a"].output or {}).get("recording") or {}
    assert (recording.get("origin"), recording.get("tags")) == ("chats.jsonl, line 1", ["vip"])
    assert runs["c"].result is not None
    assert "book" in runs["c"].result.reason
    assert runs["d"].result is not None
    assert (runs["d"].result.fault, runs["d"].turn_count) == ("agent", 1)


async def test_trials_of_a_task_are_repetitions_of_one_subject(workspace: Workspace) -> None:
    documents = [told(id=f"{task}{trial}", taskId=task, trial=trial) for trial in (0, 1, 2) for task in "xy"]
    done = await reviewed(workspace, *documents)
    runs = await runs_of(workspace, done.execution)
    assert sorted((run.case_name, run.repetition) for run in runs) == [
        (task, repetition) for task in "xy" for repetition in (1, 2, 3)
    ]


async def test_recorded_and_rescored_executions_are_in_no_trend_of_live_ones(workspace: Workspace) -> None:
    done = await reviewed(workspace, told(id="a"))
    assert (await workspace.store.executions(Filters(whole=True))).items == []
    listed = (await workspace.store.executions(Filters(source="recorded"))).items
    assert [one.id for one in listed] == [done.execution.id]
    assert await workspace.store.retry(execution_id=done.execution.id) == 0


async def test_what_cannot_be_read_is_told_and_makes_it_partial(workspace: Workspace) -> None:
    done = await reviewed(
        workspace, told(id="a"), {"nothing": 1}, told(id="a"), told(id="z", expectedCalls=[{}])
    )
    assert (done.read, done.reviewed, done.bad) == (4, 1, 3)
    places = [str(problem) for problem in done.unreadable]
    assert "chats.jsonl:2: is in no known format" in places[0]
    assert "has the id" in places[1]
    assert "expectedCalls[0]" in places[2]
    assert (await workspace.store.execution(done.execution.id)).partial == "unreadable"


async def test_a_review_that_was_stopped_goes_on_and_judges_nothing_twice(workspace: Workspace) -> None:
    stop = asyncio.Event()
    documents = [told(id=f"c{number}", taskId="t") for number in range(150)]
    done = await reviewed(workspace, *documents, stop=stop, follow=lambda review: stop.set())
    assert done.stopped
    assert 0 < done.reviewed < 150
    kept = await workspace.store.execution(done.execution.id)
    assert kept.is_unfinished
    request = await request_by_scenario(workspace, "booking")
    execution = await resumed_review(workspace, kept.id)
    again = await review_conversations(workspace, request, execution, read(*documents))
    assert (again.known, again.known + again.reviewed) == (done.reviewed, 150)
    whole = await workspace.store.execution(kept.id)
    assert (whole.counts.total, whole.counts.passed, whole.partial) == (150, 150, None)
    repetitions = [run.repetition for run in await runs_of(workspace, whole)]
    assert sorted(repetitions) == list(range(1, 151))


async def test_only_a_review_can_be_resumed(workspace: Workspace) -> None:
    live = await workspace.store.record(Execution(), [])
    with pytest.raises(InvalidInput, match="not a review"):
        await resumed_review(workspace, live.id)


async def test_each_conversation_is_judged_by_the_scenario_it_fits(workspace: Workspace) -> None:
    scenarios: list[Scenario] = []
    for name in ("booking", "other"):
        scenario = await workspace.store.find("scenario", name)
        assert scenario is not None
        scenarios.append(scenario)
    request = ReviewRequest(scenarios)
    by_task, by_tag, by_name = (
        told(id="1", taskId="booking"),
        told(id="2", tags=["second"]),
        told(id="3", metadata={"scenario": "Other"}),
    )
    done = await reviewed(workspace, by_task, by_tag, by_name, told(id="4"), request=request)
    assert {run.case_name: run.scenario_name for run in await runs_of(workspace, done.execution)} == {
        "booking": "booking",
        "2": "other",
        "3": "other",
    }
    [problem] = done.unreadable
    assert "There are: booking, other" in problem.reason


async def test_a_plan_judges_with_gates_and_its_thresholds_are_required(
    workspace: Workspace, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "criteria: [{name: booked, scale: binary}]\nthresholds: {booked: 0.5}\n"
        "evaluators: [{type: regex, name: booked, config: {pattern: Booked}}]\n"
    )
    request = request_by_plan(workspace.registry, plan)
    assert [one.text for one in request.requirements] == ["criterion=booked,min>=0.5"]
    late = {"messages": [ASKED, SORRY, ASKED, BOOKED], "id": "late"}
    done = await reviewed(workspace, late, request=request)
    assert done.execution.counts.passed == 1
    plan.write_text("failUnder: 0.5\nevaluators: [{type: regex, config: {pattern: x}}]\n")
    with pytest.raises(InvalidInput, match="failUnder"):
        request_by_plan(workspace.registry, plan)


async def rescored(workspace: Workspace, original: Execution, measure: Measure) -> Execution:
    request = await rescore_request(workspace, original.id, measure)
    return await rescore_execution(workspace, request, await begin_rescore(workspace, request))


def evaluators(*uses: dict[str, Any]) -> Measure:
    return Measure(evaluators=Scenario.model_validate({"name": "e", "evaluators": list(uses)}))


async def test_an_execution_is_scored_again_beside_the_old_results_with_the_flips_shown(
    workspace: Workspace,
) -> None:
    done = await reviewed(
        workspace, told(id="a"), told(SORRY, id="b"), {"messages": [ASKED, BOOKED, ASKED], "id": "c"}
    )
    strict = evaluators({"type": "regex", "config": {"pattern": "Sorry"}})
    again = await rescored(workspace, done.execution, strict)
    assert (again.source, again.rescored_from, again.partial) == ("rescored", done.execution.id, None)
    outcomes = {run.case_name: run.result and run.result.outcome for run in await runs_of(workspace, again)}
    assert outcomes == {"a": "fail", "b": "pass", "c": "error"}, "what broke off stays an error"
    comparison = await compare_executions(workspace.store, done.execution, again)
    assert comparison.counts["changed"] == 0
    flips = {(one.subject.case_name, one.category) for one in comparison.subjects}
    assert flips >= {("a", "regressed"), ("c", "errored")}
    assert len(flips) == 3
    before = await workspace.store.execution(done.execution.id)
    assert (before.counts.passed, before.counts.failed) == (1, 1)


class CountingLlm(ScriptedLlm):
    """A judge that is asked, and says yes."""

    def __init__(self) -> None:
        answer = {"reasoning": "Booked.", "evidence": [], "success_met": True, "confidence": 0.9}
        super().__init__(judge=lambda messages: answer)
        self.settings = None

    @property
    def times(self) -> int:
        return len(self.asked["evaluation"])


async def test_models_are_asked_again_only_where_something_changed_for_them(workspace: Workspace) -> None:
    llm = CountingLlm()
    settings = LlmSettings.model_validate(
        {"provider": "local", "baseUrl": "http://127.0.0.1:1", "models": {"evaluation": "m"}}
    )
    workspace.config = workspace.config.model_copy(update={"llm_settings": settings})
    workspace.llm = llm  # pyright: ignore[reportAttributeAccessIssue]
    judge = {"type": "llm-judge", "config": {"successCriteria": "it is booked"}}
    request = ReviewRequest([Scenario.model_validate({"name": "judged", "evaluators": [judge]})])
    done = await reviewed(workspace, told(id="a"), told(id="b"), request=request)
    assert (done.execution.counts.passed, llm.times) == (2, 2)

    stricter = evaluators(judge, {"type": "regex", "config": {"pattern": "Booked", "mustMatch": False}})
    again = await rescored(workspace, done.execution, stricter)
    assert (again.counts.failed, llm.times) == (2, 2), "the judge was not asked again"
    same = await rescored(workspace, done.execution, evaluators(judge))
    assert (same.counts.passed, llm.times) == (2, 2)
    [run, _] = await runs_of(workspace, same)
    [found] = [one for one in run.turns[-1].results if one.type == "llm-judge"]
    assert found.metadata["reused"] is True
    assert "modelUsage" not in found.metadata

    other = {"type": "llm-judge", "config": {"successCriteria": "it is booked for two"}}
    await rescored(workspace, done.execution, evaluators(other))
    assert llm.times == 4
    await rescored(workspace, done.execution, Measure(ask_again=True))
    assert llm.times == 6


async def test_a_run_becomes_a_scenario_that_asks_the_same(workspace: Workspace) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    said: Sequence[dict[str, Any]] = [
        {"role": "system", "content": "You book {{tables}}."},
        {"role": "user", "content": "Book {{a}} table"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        BOOKED,
    ]
    done = await reviewed(workspace, {"messages": said, "id": "a", "groundTruth": "Booked."})
    [run] = await runs_of(workspace, done.execution)
    draft = await draft_scenario(workspace, run, name="regression")
    assert draft.ground_truth == "Booked."
    assert [use.type for use in draft.evaluators if isinstance(use, EvaluatorUse)] == ["regex", "tool-usage"]
    from evalstudio import run_scenario

    heard: list[str] = []

    def agent(messages: Any) -> list[dict[str, Any]]:
        heard.extend(message.text for message in messages)
        return [dict(one) for one in said[2:]]

    result = await run_scenario(draft, agent)
    assert result.passed, result.reason
    assert heard == ["You book {{tables}}.", "Book {{a}} table"]
