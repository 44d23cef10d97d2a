"""Secrets made to go where they were not given to: by another connector, a changed address, a new name."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_server import AgentServer, says
from tests.support.api_server import Api, serving
from tests.support.projects import make_project, scripted

from evalstudio.project.secrets import addressee

SECRET = "sk-very-secret-value-1234"
MASK = "********"


def http(name: str, url: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "http", "baseUrl": url, "config": {"responsePath": "message"}, **more}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncGenerator[Api]:
    async with serving(make_project(tmp_path / "project", []), processor=True) as served:
        yield served


@pytest.fixture
async def agent() -> AsyncGenerator[AgentServer]:
    async with AgentServer(says("hi")) as served:
        yield served


@pytest.fixture
async def thief() -> AsyncGenerator[AgentServer]:
    async with AgentServer(says("mine now")) as served:
        yield served


async def ran(api: Api, connector: Any, persona: Any) -> Any:
    """What became of a run of a persona against a connector."""
    scenario = await api("POST", "/api/scenarios", scripted("talks", "hi"))
    scenarios = (await api.found("/api/scenarios"))["items"]
    assert scenario.status in (201, 409)
    body = {"scenarioId": scenarios[0]["id"], "connectorId": connector["id"], "personaId": persona["id"]}
    answer = await api("POST", "/api/runs", body)
    if answer.status == 201:
        await api.finished(answer.json["execution"]["id"])
    return answer


def got(server: AgentServer) -> bool:
    return any(SECRET in str(request.headers) for request in server.requests)


class TestPersonas:
    async def test_a_persona_gives_its_secrets_to_the_connectors_it_names_only(
        self, api: Api, agent: AgentServer, thief: AgentServer
    ) -> None:
        live = await api.made("/api/connectors", http("live", agent.url))
        other = await api.made("/api/connectors", http("thief", thief.url))
        headers = {"X-Api-Key": SECRET, "X-Team": "blue"}
        body = {"name": "Ada", "headers": headers, "connectorIds": [live["id"]]}
        ada = await api.made("/api/personas", body)
        assert (await ran(api, live, ada)).status == 201
        assert got(agent)
        refused = await ran(api, other, ada)
        assert refused.status == 422
        assert 'persona "Ada" has secret headers (X-Api-Key)' in refused.error["message"]
        assert "connectorIds" in refused.error["message"]
        assert not got(thief)

    async def test_a_persona_that_names_none_gives_them_to_nobody(self, api: Api, agent: AgentServer) -> None:
        live = await api.made("/api/connectors", http("live", agent.url))
        ada = await api.made("/api/personas", {"name": "Ada", "headers": {"Authorization": SECRET}})
        assert (await ran(api, live, ada)).status == 422
        plain = await api.made("/api/personas", {"name": "Bo", "headers": {"X-Team": "blue"}})
        assert (await ran(api, live, plain)).status == 201
        assert agent.last.headers["x-team"] == "blue"

    async def test_naming_a_further_connector_drops_the_mask(
        self, api: Api, agent: AgentServer, thief: AgentServer
    ) -> None:
        live = await api.made("/api/connectors", http("live", agent.url))
        other = await api.made("/api/connectors", http("thief", thief.url))
        body = {"name": "Ada", "headers": {"X-Api-Key": SECRET}, "connectorIds": [live["id"]]}
        ada = await api.made("/api/personas", body)
        wider = {**body, "headers": {"X-Api-Key": MASK}, "connectorIds": [live["id"], other["id"]]}
        changed = await api("PUT", f"/api/personas/{ada['id']}", wider)
        assert changed.json["headers"] == {}
        await ran(api, other, ada)
        assert not got(thief)

    async def test_naming_fewer_keeps_it(self, api: Api, agent: AgentServer) -> None:
        live = await api.made("/api/connectors", http("live", agent.url))
        second = await api.made("/api/connectors", http("second", agent.url))
        body = {"name": "Ada", "headers": {"X-Api-Key": SECRET}, "connectorIds": [live["id"], second["id"]]}
        ada = await api.made("/api/personas", body)
        fewer = {**body, "headers": {"X-Api-Key": MASK}, "connectorIds": [live["id"]]}
        assert (await api("PUT", f"/api/personas/{ada['id']}", fewer)).json["headers"] == {"X-Api-Key": MASK}
        assert (await ran(api, live, ada)).status == 201
        assert got(agent)

    @pytest.mark.parametrize("name", ["live", "renamed"])
    async def test_turning_a_named_connector_elsewhere_takes_it_off_the_persona(
        self, api: Api, agent: AgentServer, thief: AgentServer, name: str
    ) -> None:
        live = await api.made("/api/connectors", http("live", agent.url))
        body = {"name": "Ada", "headers": {"X-Api-Key": SECRET}, "connectorIds": [live["id"]]}
        ada = await api.made("/api/personas", body)
        moved = await api("PUT", f"/api/connectors/{live['id']}", http(name, thief.url))
        assert moved.status == 200, moved.text
        assert moved.json["baseUrl"] == thief.url
        assert (await api.found(f"/api/personas/{ada['id']}"))["connectorIds"] == []
        assert (await ran(api, live, ada)).status == 422
        # Naming it again does not bring the secret back.
        again = {**body, "headers": {"X-Api-Key": MASK}}
        assert (await api("PUT", f"/api/personas/{ada['id']}", again)).json["headers"] == {}
        assert not got(thief)

    async def test_a_queued_run_is_checked_again_when_it_is_worked_on(
        self, api: Api, agent: AgentServer
    ) -> None:
        from tests.support.stored_runs import new_run

        from evalstudio.project.entities import Execution
        from evalstudio.storage.contract import Snapshot

        persona = Snapshot.of({"name": "Ada", "headers": {"Authorization": SECRET}})
        connector = Snapshot.of(http("live", agent.url))
        scenario = Snapshot.of(scripted("talks", "hi"))
        run = new_run(persona=persona, connector=connector, scenario=scenario, case=None)
        execution = await api.studio.store.enqueue(Execution(), [run])
        done = await api.finished(execution.id)
        assert done["counts"]["errored"] == 1
        assert not got(agent)

    async def test_a_connector_that_a_persona_names_is_not_deleted(
        self, api: Api, agent: AgentServer
    ) -> None:
        live = await api.made("/api/connectors", http("live", agent.url))
        await api.made("/api/personas", {"name": "Ada", "connectorIds": [live["id"]]})
        assert (await api("DELETE", f"/api/connectors/{live['id']}")).status == 409


class TestFiles:
    def test_files_name_connectors_and_come_back_the_same(self, tmp_path: Path) -> None:
        from tests.support.command_line import evalstudio

        folder = make_project(tmp_path / "project", []).parent
        definitions = {
            "personas": [{"name": "Ada", "headers": {"X-Api-Key": SECRET}, "connectors": ["Live"]}],
            "connectors": [http("live", "http://127.0.0.1:9")],
        }
        (folder / "more.json").write_text(json.dumps(definitions))
        assert evalstudio("apply", "more.json", cwd=folder).returncode == 0
        exported = evalstudio("export", "--format", "json", cwd=folder).stdout
        assert json.loads(exported)["personas"][0]["connectors"] == ["live"]
        (folder / "exported.json").write_text(exported)
        assert "Nothing to change" in evalstudio("apply", "exported.json", cwd=folder).stdout
        moved = json.loads(exported)
        moved["connectors"][0]["baseUrl"] = "http://127.0.0.1:10"
        (folder / "exported.json").write_text(json.dumps(moved))
        applied = evalstudio("apply", "exported.json", cwd=folder)
        assert "~ persona Ada (headers)" in applied.stdout, applied.stdout + applied.stderr


PLUGIN = '''
from pydantic import BaseModel
from evalstudio import ConnectorContext, define_connector

class Settings(BaseModel):
    endpoint: str
    apiKey: str = ""
    model: str = "small"

@define_connector(type="own-protocol")
async def own_protocol(ctx: ConnectorContext[Settings]) -> str:
    """Calls the endpoint of its config with the key of its config."""
    answer = await ctx.http.post(ctx.config.endpoint, json={}, headers={"X-Key": ctx.config.apiKey})
    return (await answer.json())["message"]
'''


class TestPluginConnectors:
    async def test_a_masked_key_does_not_follow_a_changed_endpoint(
        self, tmp_path: Path, agent: AgentServer, thief: AgentServer
    ) -> None:
        config = make_project(tmp_path / "project", [], plugins=["./own.py"])
        (config.parent / "own.py").write_text(PLUGIN)
        async with serving(config) as api:
            settings = {"endpoint": agent.url, "apiKey": SECRET}
            body = {"name": "own", "type": "own-protocol", "config": settings}
            made = await api.made("/api/connectors", body)
            where = f"/api/connectors/{made['id']}"
            kept = {**body, "config": {**settings, "apiKey": MASK, "model": "large.v2"}}
            assert (await api("PUT", where, kept)).json["config"]["apiKey"] == MASK
            await api("POST", f"{where}/test")
            assert got(agent)
            moved = {**body, "config": {**settings, "endpoint": thief.url, "apiKey": MASK}}
            assert "apiKey" not in (await api("PUT", where, moved)).json["config"]
            await api("POST", f"{where}/test")
            assert not got(thief)

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"endpoint": "a"}, {"endpoint": "b"}),
            ({"apiHost": "a"}, {"apiHost": "b"}),
            ({"server_url": "http://a"}, {"server_url": "http://a:81"}),
            ({"port": 1}, {"port": 2}),
            ({"target": "agent.example.com"}, {"target": "evil.example.com"}),
            ({"target": "https://a"}, {"target": "https://b"}),
            ({"to": ["10.0.0.1"]}, {"to": ["10.0.0.2"]}),
            ({"to": "agent:8080"}, {"to": "evil:8080"}),
            ({"to": "[fd00::1]"}, {"to": "[fd00::2]"}),
            ({"proxy": {"to": "a"}}, {"proxy": {"to": "b"}}),
            ({}, {"baseUrl": "http://evil"}),
            ({"region": "eu"}, {"region": "us"}),
        ],
    )
    def test_whatever_names_a_server_is_an_address(self, before: Any, after: Any) -> None:
        old, new = ({"type": "own", "config": config} for config in (before, after))
        assert addressee(old) != addressee(new)

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"model": "gpt-4.1"}, {"model": "gpt-5"}),
            ({"responsePath": "choices.message"}, {"responsePath": "data.text"}),
            ({"timeoutSeconds": 3}, {"timeoutSeconds": 30}),
            ({"stream": True}, {"stream": False}),
            ({"endpoint": "http://a/v1"}, {"endpoint": "http://a/v2"}),
            ({"proxy": {"password": MASK}}, {"proxy": {"password": "sealed:v1:x"}}),
        ],
    )
    def test_other_settings_are_not(self, before: Any, after: Any) -> None:
        old, new = ({"type": "own", "config": config} for config in (before, after))
        assert addressee(old) == addressee(new)
