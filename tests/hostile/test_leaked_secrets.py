"""Agents that repeat what they were sent in secret: nobody reads it, and the turn says that it was there."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.agent_server import AgentServer, Answer, says, sse
from tests.support.api_server import Api, serving
from tests.support.command_line import evalstudio
from tests.support.projects import make_project
from tests.support.sessions import session_of, user

from evalstudio import ConnectorResponse, define_connector, run_scenario
from evalstudio.cassettes import Cassette
from evalstudio.connectors.contract import ConnectorError
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool

SECRET = 'sk-"very"/secret+välue-1234'
HEADERS = {"Authorization": f"Bearer {SECRET}"}
SCENARIO = {"name": "leak", "script": ["Which key?"], "evaluators": [{"type": "secret-leak"}]}

FORMS = {
    "itself": SECRET,
    "in JSON": json.dumps({"k": SECRET}),
    "in JSON with letters as they are": json.dumps({"k": SECRET}, ensure_ascii=False),
    "percent-encoded": quote(SECRET, safe=""),
    "percent-encoded in lower case": quote(SECRET, safe="")
    .replace("%C3%A4", "%c3%a4")
    .replace("%2F", "%2f")
    .replace("%2B", "%2b"),
    "in base64": b64encode(SECRET.encode()).decode(),
    "in base64 after one byte": b64encode(b"x" + SECRET.encode() + b"y").decode(),
    "in base64 after two bytes": b64encode(b"xx" + SECRET.encode() + b"yy").decode(),
    "in hex": SECRET.encode().hex(),
}


def echo(answer: Any) -> dict[str, Any]:
    """A connector that was given the secret and answers this."""
    return {"type": define_connector("echo")(lambda ctx: answer), "headers": HEADERS}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_a_secret_is_taken_out_however_it_is_written(form: str) -> None:
    result = await run_scenario(SCENARIO, echo(f"It is <{form}>."))
    assert form not in str(result.messages)
    assert result.messages[-1].text.startswith("It is <")
    assert result.messages[-1].text.endswith(">.")
    assert result.turns[0].redacted == ["messages[0].content"]
    assert (result.outcome, result.reason) == ("fail", "known secret in messages[0].content")


def call(name: str, arguments: Any) -> dict[str, Any]:
    return {"id": f"c-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


async def test_every_part_of_an_answer_is_looked_at() -> None:
    answer = ConnectorResponse(
        [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": SECRET}, {"type": "image", "source": {"data": SECRET}}],
                "tool_calls": [call("find", json.dumps({"key": SECRET}))],
            },
            {"role": "tool", "content": f"found {SECRET}", "tool_call_id": "c-find"},
            {"role": "assistant", "content": "Done.", "raw": {"deep": [{SECRET: 1}]}},
        ],
        thread_id=f"thread-{SECRET}",
        metadata={"sent": {"headers": [SECRET]}},
    )
    seen: list[str] = []

    def state(ctx: Any) -> dict[str, Any]:
        seen.append(ctx.run.thread_id)
        return {"key": SECRET, "count": 1}

    agent = define_connector("whole")(lambda ctx: answer)
    agent.state(state)
    result = await run_scenario(SCENARIO, {"type": agent, "headers": HEADERS})
    assert "very" not in str(result.turns[0].to_json()) + str(result.messages)
    assert result.messages[1].tool_calls is not None
    assert result.messages[1].tool_calls[0].arguments() == {"key": "***"}
    assert (result.thread_id, result.state) == ("thread-***", {"key": "***", "count": 1})
    assert result.turns[0].redacted == [
        "messages[0].content[0].text",
        "messages[0].content[1].source.data",
        "messages[0].tool_calls[0].function.arguments",
        "messages[1].content",
        "messages[2].raw.deep[0]",
        "metadata.sent.headers[0]",
        "threadId",
        "state.key",
    ]
    # The agent itself is still asked about the thread it named.
    assert seen == [f"thread-{SECRET}"]


async def test_arguments_stay_json_where_the_secret_is_a_number() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [call("pay", '{"pin": 4711081512, "n": 1}')]}
    agent = {"type": define_connector("pays")(lambda ctx: message), "headers": {"X-Key": "4711081512"}}
    result = await run_scenario(SCENARIO, agent)
    calls = result.messages[-1].tool_calls
    assert calls is not None
    assert calls[0].arguments() == {"pin": "***", "n": 1}


async def test_a_secret_in_the_pieces_of_a_stream_is_found() -> None:
    pieces = [{"choices": [{"delta": {"content": SECRET[at : at + 3]}}]} for at in range(0, len(SECRET), 3)]
    async with AgentServer(sse(*pieces, end="data: [DONE]\n\n")) as server:
        agent = {"type": "http", "baseUrl": server.url, "headers": HEADERS}
        result = await run_scenario(SCENARIO, agent)
    assert (result.messages[-1].text, result.outcome) == ("***", "fail")


@pytest.mark.parametrize("short", ["a", "true", "1234567"])
async def test_short_words_stay_in_answers(short: str) -> None:
    agent = {"type": define_connector("short")(lambda ctx: f"That is {short}, a true one.")}
    result = await run_scenario(SCENARIO, agent | {"headers": {"X-Api-Key": short}})
    assert result.messages[-1].text == f"That is {short}, a true one."
    assert not result.turns[0].redacted


async def test_what_is_no_secret_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSTUDIO_PUBLIC_CITY", "Amsterdam")
    monkeypatch.setenv("AGENT_HOST", "agent.example.com")
    text = "Amsterdam, agent.example.com, 2024-02-01, Blue Team One"
    agent = {
        "type": define_connector("open")(lambda ctx: text),
        "baseUrl": "http://${AGENT_HOST}/x?api-version=2024-02-01",
        "headers": {"X-City": "${EVALSTUDIO_PUBLIC_CITY}", "X-Team": "Blue Team One"},
    }
    result = await run_scenario(SCENARIO, agent)
    assert result.messages[-1].text == text


async def test_secrets_of_the_environment_persona_config_and_address_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment")
    monkeypatch.setenv("SHOP_DATABASE", "postgresql://shop:word-of-the-database@db/shop")
    monkeypatch.setenv("TENANT", "tenant-from-template")
    basic = b64encode(b"me:password-in-basic").decode()
    agent = {
        "type": "http",
        "config": {"requestTemplate": {"tenant": "${TENANT}"}, "responsePath": "said"},
        "headers": {"Authorization": f"Basic {basic}"},
    }
    persona = {"name": "Ada", "headers": {"X-Session": "session-of-ada"}}
    leaked = "from-the-environment word-of-the-database tenant-from-template password-in-basic session-of-ada"
    async with AgentServer(Answer(json={"said": f"{leaked} key=query-key-value"})) as server:
        agent["baseUrl"] = f"{server.url}/?key=query-key-value"
        result = await run_scenario(SCENARIO, agent, persona=persona)
    assert result.messages[-1].text == "*** *** *** *** *** key=***"


async def test_an_answer_too_deep_to_be_looked_through_is_an_error() -> None:
    deep: Any = SECRET
    for _ in range(5_000):
        deep = [deep]
    async with HttpPool() as pool:
        agent = define_connector("deep")(lambda ctx: "hi")
        agent.state(lambda ctx: {"deep": deep})
        session = session_of(agent, pool, headers=HEADERS)
        await session.invoke([user("hi")], [user("hi")])
        with pytest.raises(ConnectorError, match="state is nested too deeply"):
            await session.state()


async def test_a_recording_has_no_secret_and_is_replayed_with_the_same_verdict(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    with Cassette.record(path) as cassette:
        recorded = await run_scenario(SCENARIO, echo(f"It is {SECRET}."), cassette=cassette)
    assert "very" not in path.read_text()
    with Cassette.replay(path) as cassette:
        replayed = await run_scenario(SCENARIO, echo("not asked"), cassette=cassette)
    assert replayed.turns[0].redacted == recorded.turns[0].redacted
    assert (replayed.outcome, replayed.reason) == (recorded.outcome, recorded.reason)


async def test_the_test_of_a_connector_shows_no_secret() -> None:
    async with HttpPool() as pool, AgentServer(says(SECRET)) as server:
        session = session_of(http_agent, pool, {"responsePath": "message"}, url=server.url, headers=HEADERS)
        assert await session.probe() == "***"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncGenerator[Api]:
    async with serving(make_project(tmp_path / "project", []), processor=True) as served:
        yield served


async def test_the_run_is_stored_and_shown_without_the_secret(api: Api, tmp_path: Path) -> None:
    async with AgentServer(says(f"It is {SECRET}.")) as server:
        body = {"name": "live", "type": "http", "baseUrl": server.url, "headers": HEADERS}
        connector = await api.made("/api/connectors", body | {"config": {"responsePath": "message"}})
        asked = {"messages": [{"role": "user", "content": "?"}]}
        said = (await api("POST", f"/api/connectors/{connector['id']}/invoke", asked)).json
        scenario = await api.made("/api/scenarios", SCENARIO)
        ids = {"scenarioId": scenario["id"], "connectorId": connector["id"]}
        made = await api.made("/api/runs", ids)
        await api.finished(made["execution"]["id"])
    assert (said["messages"][0]["content"], said["redacted"]) == ("It is ***.", ["messages[0].content"])
    stored = await api.found(f"/api/runs?executionId={made['execution']['id']}")
    run = await api.found(f"/api/runs/{stored['items'][0]['id']}")
    assert run["turns"][0]["redacted"] == ["messages[0].content"]
    assert run["result"]["outcome"] == "fail"
    assert "very" not in json.dumps([run, stored])
    database = next((tmp_path / "project").rglob("*.db"), None)
    assert database is not None
    kept = b"".join(file.read_bytes() for file in database.parent.glob(f"{database.name}*"))
    # A column is called so.
    assert b"very" not in kept.replace(b"delivery", b"")
    shown = evalstudio("run", "show", run["id"], cwd=tmp_path / "project")
    assert "secrets were taken out of this answer: messages[0].content" in shown.stdout
