"""Agents with instrumentations nobody here wrote, exporting to a running server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import Api, serving
from tests.support.intake import intake_project, produce
from tests.support.model_server import ModelServer, Recorded, Reply


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Api]:
    folder: Path = tmp_path_factory.mktemp("intake")
    async with serving(intake_project(folder, redact={"patterns": []}), web=False) as running:
        yield running


async def conversation(api: Api, name: str, *, named: bool = False) -> Any:
    """A conversation with all that was said, once it is complete.

    The span that has the agent's name ends last, and may come after the others were taken to be all.
    """
    async with asyncio.timeout(30):
        while True:
            page = await api.found(f"/api/conversations?text={name}&status=complete")
            if page["items"]:
                whole = await api.found(f"/api/conversations/{page['items'][0]['id']}")
                if whole["agent"] or not named:
                    return whole
            await asyncio.sleep(0.1)


def shown(turn: Any) -> list[str]:
    """A turn in short: who said or called what."""
    lines = [f"user: {turn['userMessage']['content']}"]
    for message in turn["messages"]:
        for call in message.get("tool_calls", ()):
            arguments = json.dumps(json.loads(call["function"]["arguments"]))
            lines.append(f"call: {call['function']['name']} {arguments}")
        if message.get("content"):
            lines.append(f"{message['role']}: {message['content']}")
    return lines


PARIS = ['call: get_weather {"city": "Paris"}', "tool: sunny"]
ROME = ['call: get_weather {"city": "Rome"}', "tool: raining"]


@pytest.mark.parametrize("version", ["5", "6"])
async def test_a_pydantic_ai_agent_with_its_own_instrumentation(api: Api, version: str) -> None:
    await asyncio.to_thread(produce, api.url, "pydantic_agent.py", version)
    whole = await conversation(api, f"conv-{version}", named=True)
    assert whole["error"] is None
    assert [shown(turn) for turn in whole["turns"]] == [
        ["user: How is the weather in Paris", *PARIS, "assistant: It is sunny there."],
        ["user: And in Rome", *ROME, "assistant: It is raining there."],
    ]
    assert [message["content"] for message in whole["seeds"]] == ["Be brief."]
    assert [tool["name"] for tool in whole["tools"]] == ["get_weather"]
    assert all(turn["latencyMs"] > 0 and turn["tokensUsage"]["total_tokens"] > 0 for turn in whole["turns"])
    assert whole["agent"] == "weather"
    assert whole["attributes"]["service.name"] == "weather"

    broken = await conversation(api, f"broken-{version}")
    assert broken["error"] == "RuntimeError: the model is down"
    assert [shown(turn) for turn in broken["turns"]] == [["user: Please fail"]]


async def test_a_langgraph_agent_with_openinference(api: Api) -> None:
    await asyncio.to_thread(produce, api.url, "langgraph_agent.py")
    whole = await conversation(api, "thread-7")
    assert whole["error"] is None
    assert [shown(turn) for turn in whole["turns"]] == [
        ["user: How is the weather in Paris?", *PARIS, "assistant: It is sunny."],
        ["user: And in Rome?", *ROME, "assistant: It is raining."],
    ]
    assert [message["content"] for message in whole["seeds"]] == ["Be brief."]
    # Of the models' spans alone: chains repeat what is in them.
    assert [turn["tokensUsage"]["total_tokens"] for turn in whole["turns"]] == [42, 42]
    assert len(whole["traces"]) == 2


def _weather(request: Recorded) -> Reply:
    asked = str(request.body["messages"][-1]["content"])
    return Reply(tool={"city": "Paris"}) if "Paris" in asked else Reply(text=f"It is fine ({asked}).")


@pytest.mark.parametrize(("capture", "spans"), [("SPAN_ONLY", 3), ("EVENT_ONLY", 6)])
async def test_an_openai_client_with_the_official_instrumentation(api: Api, capture: str, spans: int) -> None:
    """It sends no id of the conversation: each call is a trace that goes on with the history of another."""
    service = f"client-{capture}"
    environment = {
        "OTEL_SERVICE_NAME": service,
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": capture,
    }
    async with ModelServer(_weather) as model:
        await asyncio.to_thread(
            produce, api.url, "openai_client.py", OPENAI_BASE_URL=model.url, **environment
        )
    async with asyncio.timeout(30):
        while True:
            page = await api.found(f"/api/conversations?agent={service}&status=complete")
            if [item["spans"] for item in page["items"]] == [spans]:
                break
            await asyncio.sleep(0.1)
    whole = await api.found(f"/api/conversations/{page['items'][0]['id']}")
    assert whole["error"] is None
    assert [shown(turn) for turn in whole["turns"]] == [
        ["user: How is the weather in Paris?", *PARIS, "assistant: It is fine (sunny)."],
        ["user: And in Rome?", "assistant: It is fine (And in Rome?)."],
    ]
    assert [message["content"] for message in whole["seeds"]] == ["Be brief."]
    assert [turn["tokensUsage"]["total_tokens"] for turn in whole["turns"]] == [30, 15]
    assert [tool["name"] for tool in whole["tools"]] == ["get_weather"]


async def test_a_monitor_judges_what_a_producer_sent(api: Api) -> None:
    """From the exporter of an agent to the verdicts on its page; the one that broke off cannot pass."""
    rule = {"tool": "get_weather", "required": True}
    body = {
        "name": "Weather",
        "filter": [{"attribute": "service.name", "equals": "weather"}],
        "evaluators": [{"type": "tool-usage", "config": {"rules": [rule]}}],
    }
    made = await api.made("/api/monitors", body)
    await asyncio.to_thread(produce, api.url, "pydantic_agent.py", "5", "judged")
    runs: list[Any] = []
    async with asyncio.timeout(60):
        while len(runs) < 2:
            await asyncio.sleep(0.1)
            page = await api.found("/api/executions?source=production")
            for execution in page["items"]:
                runs = (await api.found(f"/api/runs?executionId={execution['id']}"))["items"]
    assert sorted(run["result"]["outcome"] for run in runs) == ["error", "pass"]
    whole = await api.found(f"/api/runs/{next(r['id'] for r in runs if r['result']['success'])}")
    assert any(message.get("tool_calls") for message in whole["messages"])
    series = await api.found(f"/api/monitors/{made['id']}/series?days=1&bucket=hour")
    assert [
        (point["rate"]["passed"], point["rate"]["of"], point["errored"]) for point in series["points"]
    ] == [(1, 1, 1)]
