"""Secrets: never read back, never sent elsewhere, never on the disk as they are."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_server import AgentServer, says
from tests.support.api_server import Api, serving
from tests.support.projects import make_project, scripted

SECRET = "sk-very-secret-value-1234"
MASK = "********"


def connector(url: str, **more: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {SECRET}", "X-Trace": "on"}
    return {
        "name": "live",
        "type": "http",
        "baseUrl": url,
        "headers": headers,
        "config": {"responsePath": "message"},
        **more,
    }


class TestReadingASecretBack:
    async def test_no_answer_holds_it(self, api: Api) -> None:
        answer = await api("POST", "/api/connectors", connector("http://127.0.0.1:9"))
        made = answer.json
        assert made["headers"] == {"Authorization": MASK, "X-Trace": "on"}
        answers = [
            answer,
            await api("GET", "/api/connectors"),
            await api("GET", f"/api/connectors/{made['id']}"),
            await api("PUT", f"/api/connectors/{made['id']}", connector("http://127.0.0.1:9")),
            await api("POST", f"/api/connectors/{made['id']}/test"),
        ]
        persona = await api("POST", "/api/personas", {"name": "Ada", "headers": {"X-Api-Key": SECRET}})
        answers += [persona, await api("GET", "/api/personas")]
        assert all(SECRET not in one.text for one in answers)

    async def test_no_error_echoes_it(self, api: Api) -> None:
        bad = [
            connector("http://127.0.0.1:9", type="htp"),
            connector("http://127.0.0.1:9", nonsense=1),
            connector("http://127.0.0.1:9", headers={"Authorization": [SECRET]}),
            connector("http://127.0.0.1:9", config={"apiKey": SECRET}),
            connector(f"http://user:{SECRET}@127.0.0.1:9"),
            connector(f"http://127.0.0.1:9/?api_key={SECRET}"),
        ]
        for body in bad:
            answer = await api("POST", "/api/connectors", body)
            assert answer.status == 422, body
            assert SECRET not in answer.text

    async def test_a_run_does_not_show_what_its_connector_sent(self, tmp_path: Path) -> None:
        async with (
            AgentServer(says("echo")) as agent,
            serving(make_project(tmp_path, []), processor=True) as api,
        ):
            made = await api.made("/api/connectors", connector(agent.url))
            ada = {"name": "Ada", "headers": {"X-Api-Key": SECRET}, "connectorIds": [made["id"]]}
            persona = await api.made("/api/personas", ada)
            scenario = await api.made("/api/scenarios", scripted("talks", "hi"))
            body = {"scenarioId": scenario["id"], "connectorId": made["id"], "personaId": persona["id"]}
            started = await api.made("/api/runs", body)
            await api.finished(started["execution"]["id"])
            run = f"/api/runs/{started['runs'][0]['id']}"
            for path in (run, f"{run}/definitions", "/api/runs"):
                assert SECRET not in (await api("GET", path)).text
            assert (await api.found(run))["result"]["outcome"] == "pass"
            # The agent did get them.
            assert agent.last.headers["authorization"] == f"Bearer {SECRET}"
            assert agent.last.headers["x-api-key"] == SECRET


class TestOnTheDisk:
    async def test_secrets_are_sealed_with_a_key_of_their_own(self, project: Path) -> None:
        async with serving(project) as api:
            made = await api.made("/api/connectors", connector("http://127.0.0.1:9"))
            await api.made("/api/personas", {"name": "Ada", "headers": {"Cookie": SECRET}})
            scenario = await api.made("/api/scenarios", scripted("talks", "hi"))
            await api.made("/api/runs", {"scenarioId": scenario["id"], "connectorId": made["id"]})
        for file in project.parent.rglob("*"):
            if file.is_file():
                assert SECRET.encode() not in file.read_bytes(), file
        key = project.parent / "data" / "secret.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600

    async def test_with_another_key_they_cannot_be_used_and_the_error_says_what_to_do(
        self, project: Path
    ) -> None:
        async with serving(project) as api:
            made = await api.made("/api/connectors", connector("http://127.0.0.1:9"))
        (project.parent / "data" / "secret.key").unlink()
        async with serving(project) as api:
            answer = await api("POST", f"/api/connectors/{made['id']}/test")
            assert answer.status == 422
            assert "sealed with another key" in answer.error["message"]

    async def test_a_value_that_pretends_to_be_sealed_is_refused(self, api: Api) -> None:
        body = connector("http://127.0.0.1:9", headers={"Authorization": "sealed:v1:gAAAA"})
        assert (await api("POST", "/api/connectors", body)).status == 422


class TestSendingTheMaskBack:
    async def test_keeps_the_secret(self, api: Api) -> None:
        async with AgentServer(says("hi")) as agent:
            made = await api.made("/api/connectors", connector(agent.url))
            edited = {**connector(agent.url), "name": "renamed", "headers": made["headers"]}
            assert (await api("PUT", f"/api/connectors/{made['id']}", edited)).status == 200
            await api("POST", f"/api/connectors/{made['id']}/test")
            assert agent.last.headers["authorization"] == f"Bearer {SECRET}"

    @pytest.mark.parametrize("change", ["port", "scheme", "host", "type"])
    async def test_to_a_changed_address_drops_it(self, api: Api, change: str) -> None:
        """The attack: point a connector with a secret at a server of one's own, and test it."""
        async with AgentServer(says("hi")) as agent, AgentServer(says("mine now")) as thief:
            made = await api.made("/api/connectors", connector(agent.url))
            places = {
                "port": thief.url,
                "scheme": agent.url.replace("http://", "https://"),
                "host": agent.url.replace("127.0.0.1", "localhost"),
                "type": agent.url,
            }
            edited = {**connector(places[change]), "headers": made["headers"]}
            if change == "type":
                edited |= {"type": "openai", "config": {"model": "m"}}
            answer = await api("PUT", f"/api/connectors/{made['id']}", edited)
            assert answer.status == 200, answer.text
            assert answer.json["headers"] == {"X-Trace": "on"}
            await api("POST", f"/api/connectors/{made['id']}/test")
            sent = json.dumps([request.headers for request in [*thief.requests, *agent.requests]])
            assert SECRET not in sent

    async def test_the_same_address_written_otherwise_is_the_same(self, api: Api) -> None:
        made = await api.made("/api/connectors", connector("http://127.0.0.1:80/a"))
        edited = {**connector("HTTP://127.0.0.1/b"), "headers": made["headers"]}
        answer = await api("PUT", f"/api/connectors/{made['id']}", edited)
        assert answer.json["headers"]["Authorization"] == MASK

    async def test_a_new_secret_goes_with_the_new_address(self, api: Api) -> None:
        made = await api.made("/api/connectors", connector("http://127.0.0.1:9"))
        edited = connector("http://127.0.0.1:10", headers={"Authorization": "Bearer other-secret"})
        answer = await api("PUT", f"/api/connectors/{made['id']}", edited)
        assert answer.json["headers"] == {"Authorization": MASK}

    async def test_where_nothing_is_kept_is_refused(self, api: Api) -> None:
        body = connector("http://127.0.0.1:9", headers={"Authorization": MASK})
        answer = await api("POST", "/api/connectors", body)
        assert answer.status == 422
        assert answer.error["details"][0]["path"] == "headers.Authorization"


class TestReferences:
    async def test_are_shown_and_resolved_only_when_an_agent_is_called(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AGENT_KEY", SECRET)
        project = make_project(tmp_path / "keys", [], allowedVariables=["AGENT_KEY"])
        async with AgentServer(says("hi")) as agent, serving(project) as api:
            made = await api.made(
                "/api/connectors", connector(agent.url, headers={"Authorization": "Bearer ${AGENT_KEY}"})
            )
            assert made["headers"]["Authorization"] == "Bearer ${AGENT_KEY}"
            await api("POST", f"/api/connectors/{made['id']}/test")
            assert agent.last.headers["authorization"] == f"Bearer {SECRET}"

    async def test_the_servers_own_secrets_cannot_be_referred_to(self, api: Api) -> None:
        for header in ("${EVALSTUDIO_TOKEN}", "x ${ EVALSTUDIO_SECRET_KEY}"):
            answer = await api(
                "POST", "/api/connectors", connector("http://127.0.0.1:9", headers={"X-A": header})
            )
            assert answer.status == 422
            answer = await api("POST", "/api/personas", {"name": "Eve", "headers": {"X-A": header}})
            assert answer.status == 422
