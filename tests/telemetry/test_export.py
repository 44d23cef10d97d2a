"""What an eval sends to a receiver of OpenTelemetry, decoded with OpenTelemetry's own protocol library."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from tests.support.agent_server import AgentServer, Answer, Recorded, says
from tests.support.command_line import evalstudio
from tests.support.intake import chat_span, request_of
from tests.support.model_server import ModelServer
from tests.support.otlp_receiver import OtlpReceiver, SentSpan

from evalstudio import run_scenario
from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.definitions import Scenario
from evalstudio.execution.definitions import apply_files
from evalstudio.execution.processor import Processor, work_off
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.rescores import begin_rescore, rescore_execution, rescore_request
from evalstudio.execution.rescoring import rescore
from evalstudio.execution.reviews import ReviewRequest, begin_review, review_conversations
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import Execution, Run, StoredEval
from evalstudio.recordings.reading import read_conversations
from evalstudio.server.policy import policy_for
from evalstudio.server.serving import open_studio
from evalstudio.storage.contract import Filters, all_runs
from evalstudio.telemetry.opening import TelemetrySource
from evalstudio.telemetry.trace_context import execution_ids

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OTEL_", "EVALSTUDIO_TELEMETRY"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def receiver() -> Generator[OtlpReceiver]:
    with OtlpReceiver() as started:
        yield started


def project(folder: Path, agent_url: str, scenario: dict[str, Any], **config: Any) -> Path:
    path = folder / "evalstudio.config.json"
    path.write_text(json.dumps({"name": "shop", **config}))
    connector = {
        "name": "shop agent",
        "type": "http",
        "baseUrl": agent_url,
        "headers": {"Authorization": "Bearer ${AGENT_TOKEN}"},
    }
    scenario = {"name": "refund", "script": ["I want my money back", "Thanks"], **scenario}
    definitions = {
        "connectors": [connector],
        "scenarios": [scenario],
        "evals": [{"name": "nightly", "scenarios": ["refund"], "connectors": ["shop agent"]}],
    }
    (folder / "evals.json").write_text(json.dumps(definitions))
    return path


async def run_eval(config: Path) -> tuple[Execution, Run]:
    async with open_workspace(config) as workspace:
        await apply_files(workspace, [config.parent / "evals.json"])
        nightly = await workspace.store.find("eval", "nightly")
        assert isinstance(nightly, StoredEval)
        execution = await start_execution(workspace, await request_for(workspace, nightly))
        done = await work_off(workspace, execution, stop=asyncio.Event())
        (summary,) = [run async for run in all_runs(workspace.store, Filters(execution_id=done.id))]
        return done, await workspace.store.run(summary.id)


def sending_to(receiver: OtlpReceiver, **settings: Any) -> dict[str, Any]:
    return {"enabled": True, "endpoint": receiver.url, **settings}


def tree(spans: list[SentSpan]) -> dict[str, list[str]]:
    """The names of the children of every span, in the order they began."""
    names = {span.span_id: span.name for span in spans}
    children: dict[str, list[str]] = {}
    for span in sorted(spans, key=lambda one: one.start):
        children.setdefault(names.get(span.parent_id, ""), []).append(span.name)
    return children


AGENT_SPAN = "00000000000000a1"


def continues(request: Recorded) -> Answer:
    """An agent with telemetry of its own: it continues the trace and says which span is its own."""
    _, trace_id, _, _ = request.headers["traceparent"].split("-")
    reply = says("The refund is on its way.", usage={"prompt_tokens": 7, "completion_tokens": 3})
    reply.headers = {"traceresponse": f"00-{trace_id}-{AGENT_SPAN}-01"}
    return reply


CHECKS = {
    "evaluators": [{"type": "regex", "name": "promises", "config": {"pattern": "refund", "scope": "last"}}],
    "successCriteria": "The agent promises a refund.",
}
VERDICT = {
    "reasoning": "Not yet.",
    "evidence": [],
    "success_met": False,
    "confidence": 0.9,
}


async def test_an_eval_is_a_tree_of_spans_with_results_on_the_spans_of_the_agent(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    async with AgentServer(continues) as agent, ModelServer(json.dumps(VERDICT)) as judge:
        llm = {
            "provider": "openai",
            "baseUrl": judge.url,
            "apiKey": "none-needed",
            "models": {"evaluation": "judge-1"},
        }
        config = project(tmp_path, agent.url, CHECKS, llmSettings=llm, telemetry=sending_to(receiver))
        execution, run = await run_eval(config)
    spans = receiver.spans
    ids = execution_ids(execution.id)
    assert {span.trace_id for span in spans} == {f"{ids.trace_id:032x}"}
    children = tree(spans)
    assert children[""] == ["execution nightly"]
    assert children["execution nightly"] == ["run refund"]
    assert children["run refund"][:2] == ["turn 1", "turn 2"]
    assert children["turn 1"][0] == "invoke_agent shop agent"
    assert {"evaluate promises", "evaluate criteria"} <= set(children["turn 1"])
    assert set(children["evaluate criteria"]) == {"chat judge-1"}
    assert receiver.resource["service.name"] == "evalstudio"

    calls = [span for span in spans if span.name == "invoke_agent shop agent"]
    assert [request.headers["traceparent"] for request in agent.requests] == [
        f"00-{call.trace_id}-{call.span_id}-01" for call in sorted(calls, key=lambda one: one.start)
    ]
    assert calls[0].kind == 3
    assert calls[0].attributes["gen_ai.operation.name"] == "invoke_agent"
    assert calls[0].attributes["gen_ai.usage.input_tokens"] == 7
    assert calls[0].attributes["server.address"] == "127.0.0.1"
    root = next(span for span in spans if span.name == "execution nightly")
    assert root.attributes["evalstudio.execution.runs.total"] == 1
    held = next(span for span in spans if span.name == "run refund")
    assert held.attributes["evalstudio.run.id"] == run.id
    assert held.attributes["evalstudio.run.outcome"] == "fail"
    judge_call = next(span for span in spans if span.name == "chat judge-1")
    assert judge_call.attributes["evalstudio.model.role"] == "evaluation"
    assert judge_call.attributes["gen_ai.provider.name"] == "openai"
    assert judge_call.attributes["gen_ai.usage.output_tokens"] == 5

    events = receiver.events
    assert {event.name for event in events} == {"gen_ai.evaluation.result"}
    assert {(event.trace_id, event.span_id) for event in events} == {(calls[0].trace_id, AGENT_SPAN)}
    told = next(
        event.attributes for event in events if event.attributes["gen_ai.evaluation.name"] == "promises"
    )
    assert told["gen_ai.evaluation.score.label"] == "pass"
    assert told["gen_ai.evaluation.explanation"]
    assert told["evalstudio.run.id"] == run.id
    judged = [e.attributes for e in events if e.attributes["gen_ai.evaluation.name"] == "criteria"]
    assert {one["gen_ai.evaluation.score.value"] for one in judged} == {0.0}
    assert run.turns[0].metadata == {"traceparent": f"00-{calls[0].trace_id}-{AGENT_SPAN}-01"}

    metrics = receiver.metrics
    assert metrics["evalstudio.runs"] == [
        ({"evalstudio.run.outcome": "fail", "evalstudio.connector.name": "shop agent"}, 1)
    ]
    assert sum(count for _, count in metrics["evalstudio.turn.duration"]) == 2
    operations = Counter(
        point["gen_ai.operation.name"] for point, _ in metrics["gen_ai.client.operation.duration"]
    )
    assert set(operations) == {"invoke_agent", "chat"}
    assert {"evalstudio.evaluator.duration", "evalstudio.evaluations", "gen_ai.client.token.usage"} <= set(
        metrics
    )
    # Nothing secret, and nothing that was said.
    assert SECRET.encode() not in receiver.raw
    assert b"on its way" not in receiver.raw.replace(told["gen_ai.evaluation.explanation"].encode(), b"")
    assert b"my money back" not in receiver.raw


async def test_results_are_told_of_our_call_where_the_agent_names_no_span_of_our_trace(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    other = "ab" * 16
    answers = [
        Answer(json={"message": "a refund"}, headers={"traceparent": f"00-{other}-{AGENT_SPAN}-01"}),
        Answer(
            json={"message": "a refund"}, headers={"traceresponse": "00-zz-\xe9-01", "traceparent": "-" * 90}
        ),
    ]
    checks: dict[str, Any] = {"evaluators": []}
    checks["evaluators"] = [
        {"type": "regex", "name": "promises", "gate": "always", "config": {"pattern": "refund"}}
    ]
    async with AgentServer(answers) as agent:
        config = project(tmp_path, agent.url, checks, telemetry=sending_to(receiver))
        await run_eval(config)
    calls = sorted(
        (s for s in receiver.spans if s.name.startswith("invoke_agent")), key=lambda one: one.start
    )
    told = [e for e in receiver.events if e.attributes["gen_ai.evaluation.name"] == "promises"]
    assert [event.span_id for event in told] == [call.span_id for call in calls]
    assert [call.links for call in calls] == [[other], []]


async def test_rescoring_tells_its_results_of_the_spans_of_then(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    checks = {"evaluators": CHECKS["evaluators"], "script": ["Hello"]}
    async with AgentServer(continues) as agent:
        config = project(tmp_path, agent.url, checks, telemetry=sending_to(receiver))
        execution, run = await run_eval(config)
    receiver.requests.clear()
    async with open_workspace(config) as workspace:
        await rescore(workspace, run)
    (judged,) = [span for span in receiver.spans if span.name == "rescore refund"]
    assert judged.parent_id == f"{execution_ids(execution.id).span_id:016x}"
    assert {event.span_id for event in receiver.events} == {AGENT_SPAN}
    assert "evalstudio.runs" not in receiver.metrics


async def test_a_review_tells_its_results_of_the_spans_that_were_recorded(
    tmp_path: Path, receiver: OtlpReceiver
) -> None:
    config = project(tmp_path, "http://127.0.0.1:9", CHECKS, telemetry=sending_to(receiver))
    history = [("user", "Money back"), ("assistant", "A refund."), ("user", "Thanks")]
    spans = [
        chat_span(7, 1, said=history[:1], answer="A refund."),
        chat_span(8, 2, said=history, answer="Bye."),
    ]
    (tmp_path / "spans.jsonl").write_text(json.dumps(request_of(*spans)))
    scenario = Scenario.model_validate({"name": "refund", "evaluators": CHECKS["evaluators"]})
    async with open_workspace(config) as workspace:
        request = ReviewRequest([scenario])
        begun = await begin_review(workspace, request)
        read = read_conversations(tmp_path / "spans.jsonl")
        await review_conversations(workspace, request, begun, read)
    reviewed = tree_and_subjects(receiver)
    receiver.requests.clear()
    async with open_workspace(config) as workspace:
        same = await rescore_request(workspace, begun.id)
        again = await begin_rescore(workspace, same)
        await rescore_execution(workspace, same, again)
    rescored = tree_and_subjects(receiver)
    agent_spans = [(f"{7:032x}", f"{1:016x}"), (f"{8:032x}", f"{2:016x}")]
    for (children, about), run_name in ((reviewed, "run refund"), (rescored, "rescore refund")):
        assert (children[""], children["execution"]) == (["execution"], [run_name])
        assert children[run_name] == ["turn 1", "turn 2"]
        assert "evaluate promises" in children["turn 1"]
        assert about == agent_spans
    spans_of_rescoring = {span.trace_id for span in receiver.spans}
    assert spans_of_rescoring == {f"{execution_ids(again.id).trace_id:032x}"}


def tree_and_subjects(receiver: OtlpReceiver) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """The tree of spans that arrived, and the spans that the results are about."""
    about = [(event.trace_id, event.span_id) for event in receiver.events]
    return tree(receiver.spans), list(dict.fromkeys(about))


@pytest.mark.parametrize("asked", ["SPAN_ONLY", "EVENT_ONLY"])
async def test_texts_are_sent_only_where_the_environment_asks_for_them(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    monkeypatch.setenv("ANY_API_KEY", SECRET + "-of-the-environment")
    monkeypatch.setenv(CONTENT, asked)
    said = f"refund \u0000 {SECRET}-of-the-environment " + "x" * 50_000
    reply = Answer(body=json.dumps({"message": said}).encode())
    checks = {"evaluators": CHECKS["evaluators"], "script": ["Money \U0001f4b6 back"]}
    async with AgentServer(reply) as agent:
        config = project(tmp_path, agent.url, checks, telemetry=sending_to(receiver))
        await run_eval(config)
    call = next(span for span in receiver.spans if span.name.startswith("invoke_agent"))
    details = [e.attributes for e in receiver.events if e.name == "gen_ai.client.inference.operation.details"]
    holder = call.attributes if asked == "SPAN_ONLY" else details[0]
    assert json.loads(holder["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Money \U0001f4b6 back"}]}
    ]
    (answer,) = json.loads(holder["gen_ai.output.messages"])
    assert answer["parts"][0]["content"].startswith("refund ")
    assert len(answer["parts"][0]["content"]) == 16_000
    assert ("gen_ai.input.messages" in call.attributes) == (asked == "SPAN_ONLY")
    assert SECRET.encode() not in receiver.raw


async def test_an_agent_that_fails_is_an_error_of_its_spans(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    async with AgentServer(Answer(status=500, body=f"no {SECRET}".encode())) as agent:
        config = project(
            tmp_path, agent.url, {"evaluators": CHECKS["evaluators"]}, telemetry=sending_to(receiver)
        )
        await run_eval(config)
    by_name = {span.name: span for span in receiver.spans}
    call, run = by_name["invoke_agent shop agent"], by_name["run refund"]
    assert (call.status, call.attributes["error.type"]) == (2, "500")
    assert "failed (500)" in call.status_message
    assert (run.status, run.attributes["evalstudio.run.outcome"]) == (2, "error")
    assert run.attributes["error.type"] == "agent_error"
    assert by_name["turn 1"].status == 2
    assert SECRET.encode() not in receiver.raw


async def test_an_evaluator_that_breaks_has_an_error_and_no_score(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    plugin = tmp_path / "checks.py"
    plugin.write_text(
        "from evalstudio import define_evaluator\n"
        "@define_evaluator(type='breaks')\n"
        "async def breaks(ctx):\n"
        "    '''Breaks.'''\n"
        "    raise RuntimeError('\\ud800 boom ' + 'y' * 9000)\n"
    )
    checks = {"evaluators": [{"type": "breaks"}], "script": ["Hello"]}
    async with AgentServer() as agent:
        config = project(
            tmp_path,
            agent.url,
            checks,
            plugins=["./checks.py"],
            telemetry=sending_to(receiver, explanations=True),
        )
        await run_eval(config)
    event = next(e for e in receiver.events if e.attributes["gen_ai.evaluation.name"] == "breaks").attributes
    assert event["error.type"] == "evaluator_error"
    assert event["gen_ai.evaluation.score.label"] == "error"
    assert "gen_ai.evaluation.score.value" not in event
    assert "boom" in event["gen_ai.evaluation.explanation"]
    assert len(event["gen_ai.evaluation.explanation"]) == 2_000
    span = next(span for span in receiver.spans if span.name == "evaluate breaks")
    assert (span.status, span.attributes["error.type"]) == (2, "evaluator_error")


async def test_reasons_stay_here_where_the_project_says_so(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop-evals")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=shop")
    checks = {"evaluators": CHECKS["evaluators"], "script": ["Hello"]}
    async with AgentServer() as agent:
        config = project(tmp_path, agent.url, checks, telemetry=sending_to(receiver, explanations=False))
        await run_eval(config)
    assert receiver.events
    assert not any("gen_ai.evaluation.explanation" in event.attributes for event in receiver.events)
    assert receiver.spans
    assert receiver.resource["service.name"] == "shop-evals"
    assert not receiver.metrics
    assert {headers["x-team"] for headers in receiver.headers} == {"shop"}


async def test_a_sampler_that_drops_a_trace_drops_all_of_it(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    checks = {"evaluators": CHECKS["evaluators"], "script": ["Hello"]}
    async with AgentServer() as agent:
        config = project(tmp_path, agent.url, checks, telemetry=sending_to(receiver))
        await run_eval(config)
    assert receiver.spans == []
    assert receiver.events
    assert agent.last.headers["traceparent"].endswith("-00")


@pytest.mark.parametrize("status", [None, 503, 400])
async def test_a_receiver_that_is_down_costs_one_warning_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int | None
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    checks = {"evaluators": CHECKS["evaluators"], "script": ["Hello"]}
    with OtlpReceiver(status or 200) as receiver:
        url = receiver.url if status else "http://127.0.0.1:9"
        async with AgentServer(says("a refund")) as agent:
            settings = {"enabled": True, "endpoint": url, "flushSeconds": 0.2}
            config = project(tmp_path, agent.url, checks, telemetry=settings)
            with caplog.at_level(logging.WARNING):
                _, run = await run_eval(config)
    assert run.result is not None
    assert run.result.outcome == "pass"
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1, warnings
    assert "Not all telemetry reaches http://127.0.0.1:" in warnings[0]


async def test_what_cannot_be_set_up_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = project(tmp_path, "http://127.0.0.1:9", CHECKS, telemetry={"enabled": True})
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "jaeger")
    with pytest.raises(InvalidInput, match=r'no exporter of traces .* "jaeger" \(OTEL_TRACES_EXPORTER\)'):
        async with open_workspace(config) as workspace:
            Processor(workspace)
    with pytest.raises(InvalidInput, match=r"telemetry\.endpoint refers to the environment variable NOWHERE"):
        _ = TelemetrySource(enabled=True, endpoint="${NOWHERE}").opened
    monkeypatch.setenv("EVALSTUDIO_TELEMETRY", "perhaps")
    with pytest.raises(InvalidInput, match='EVALSTUDIO_TELEMETRY is "perhaps"'):
        async with open_workspace(config):
            pass
    for variable, value in (("EVALSTUDIO_TELEMETRY", "0"), ("OTEL_SDK_DISABLED", "true")):
        monkeypatch.setenv(variable, value)
        async with open_workspace(config) as workspace:
            assert workspace.telemetry is None
    config.write_text(json.dumps({"telemetry": {"enabled": True, "endpoint": "collector:4318"}}))
    with pytest.raises(InvalidInput, match="address such as"):
        async with open_workspace(config):
            pass


async def test_a_scenario_run_from_python_is_a_trace_of_its_own(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTUDIO_TELEMETRY", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    scenario = {"name": "refund", "script": ["Hello"], "evaluators": CHECKS["evaluators"]}
    seen: list[int] = []

    def agent(messages: Any) -> str:
        # An agent in this process that has telemetry of its own continues the trace.
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "a refund"

    assert (await run_scenario(scenario, agent)).passed
    by_name = {span.name: span for span in receiver.spans}
    assert by_name["run refund"].parent_id == ""
    call = next(span for name, span in by_name.items() if name.startswith("invoke_agent"))
    assert seen == [int(call.span_id, 16)]
    assert {event.span_id for event in receiver.events} == {call.span_id}


def graph(request: Recorded) -> Answer:
    """A LangGraph server with one thread."""
    if request.path == "/threads":
        return Answer(json={"thread_id": "t-1"})
    return Answer(json={"messages": [{"type": "ai", "id": "a1", "content": "a refund"}]})


OPENAI = Answer(json={"id": "r-1", "choices": [{"message": {"role": "assistant", "content": "a refund"}}]})


@pytest.mark.parametrize(
    ("kind", "answers", "config"), [("openai", OPENAI, {"model": "m"}), ("langgraph", graph, {})]
)
async def test_other_connectors_send_the_traceparent_too(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, kind: str, answers: Any, config: dict[str, Any]
) -> None:
    monkeypatch.setenv("EVALSTUDIO_TELEMETRY", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    scenario = {"name": "refund", "script": ["Hello"], "evaluators": CHECKS["evaluators"]}
    async with AgentServer(answers) as agent:
        connector = {"type": kind, "baseUrl": agent.url, "config": config}
        assert (await run_scenario(scenario, connector)).passed
        mine = f"00-{'cd' * 16}-{'ef' * 8}-01"
        await run_scenario(scenario, {**connector, "headers": {"Traceparent": mine}})
    first, own = agent.requests[len(agent.requests) // 2 - 1], agent.last
    call = next(span for span in receiver.spans if span.name.startswith("invoke_agent"))
    assert first.headers["traceparent"] == f"00-{call.trace_id}-{call.span_id}-01"
    assert own.headers["traceparent"] == mine
    if kind == "openai":
        assert call.attributes["gen_ai.response.id"] == "r-1"
        assert call.attributes["gen_ai.operation.name"] == "invoke_agent"


async def test_a_server_tells_of_what_it_ran_before_it_stops(
    tmp_path: Path, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", SECRET)
    checks = {"evaluators": CHECKS["evaluators"], "script": ["Hello"]}
    async with AgentServer() as agent:
        config = project(tmp_path, agent.url, checks, telemetry=sending_to(receiver))
        async with open_studio(config, policy_for("127.0.0.1", None, (), ()), processor=True) as studio:
            workspace = studio.workspace
            await apply_files(workspace, [tmp_path / "evals.json"])
            nightly = await workspace.store.find("eval", "nightly")
            assert isinstance(nightly, StoredEval)
            execution = await start_execution(workspace, await request_for(workspace, nightly))
            studio.processing.start()
            while (await workspace.store.execution(execution.id)).status != "completed":
                await asyncio.sleep(0.02)
            await studio.processing.stop()
    assert tree(receiver.spans)[""] == ["execution nightly"]
    assert len([span for span in receiver.spans if span.name == "execution nightly"]) == 1


_COMMAND = """
import sys
from evalstudio.cli import main
try:
    main()
finally:
    print("LOADED", any(name.split(".")[0] == "opentelemetry" for name in sys.modules))
"""


async def test_nothing_is_imported_or_sent_unless_it_is_asked_for(
    tmp_path: Path, receiver: OtlpReceiver
) -> None:
    checks = {"evaluators": CHECKS["evaluators"], "script": ["Hello"]}
    variables = {"AGENT_TOKEN": SECRET, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    async with AgentServer(says("a refund")) as agent:
        project(tmp_path, agent.url, checks)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _COMMAND, "eval", "run", "-f", "evals.json"),
            cwd=tmp_path,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        out = (await process.communicate())[0].decode()
        assert (process.returncode, "LOADED False" in out) == (0, True), out
        assert receiver.requests == []
        assert "traceparent" not in agent.last.headers
        variables["EVALSTUDIO_TELEMETRY"] = "1"
        command = partial(evalstudio, "eval", "run", "-f", "evals.json", cwd=tmp_path, **variables)
        done = await asyncio.to_thread(command)
        assert done.returncode == 0, done.stderr
    assert {span.name for span in receiver.spans} >= {"execution nightly", "run refund", "turn 1"}
    assert receiver.events
    assert "evalstudio.runs" in receiver.metrics


async def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("evalstudio.telemetry.")]:
        if name.endswith((".export", ".recording", ".spans")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs", None)
    with pytest.raises(InvalidInput, match=r'pip install "evalstudio\[otel\]"'):
        _ = TelemetrySource(enabled=True).opened
