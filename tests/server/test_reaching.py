"""Where a server for others may be made to go: nowhere inside its own network, and into no code or file."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer, says
from tests.support.api_server import Api, serving
from tests.support.projects import make_project, scripted

from evalstudio.base.networks import ForbiddenAddress, public_only
from evalstudio.server.policy import ServerPolicy

TOKEN = "a-token-nobody-guesses-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
GUARDED = ServerPolicy(token=TOKEN)


async def checked(api: Api, body: dict[str, Any]) -> Any:
    made = await api("POST", "/api/connectors", body, headers=BEARER)
    assert made.status == 201, made.text
    return (await api("POST", f"/api/connectors/{made.json['id']}/test", headers=BEARER)).json


def http(url: str, **config: Any) -> dict[str, Any]:
    return {"name": url, "type": "http", "baseUrl": url, "config": {"responsePath": "message", **config}}


class TestAddresses:
    @pytest.mark.parametrize(
        "address",
        [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2002:c0a8:1::",
            "64:ff9b::7f00:1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::a00:1",
            "2001:0:7f00:1::",
        ],
    )
    def test_private_ones_are_refused_however_they_are_written(self, address: str) -> None:
        with pytest.raises(ForbiddenAddress, match="allowedAddresses"):
            public_only()(address)

    @pytest.mark.parametrize(
        "address",
        [
            "8.8.8.8",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::",
        ],
    )
    def test_public_ones_are_not(self, address: str) -> None:
        public_only()(address)

    def test_listed_ones_are_allowed_in_every_writing(self) -> None:
        check = public_only(["127.0.0.1", "10.0.0.0/8", "fd00::/8"])
        for address in ("127.0.0.1", "::ffff:127.0.0.1", "10.9.9.9", "fd00::5", "64:ff9b::a00:1"):
            check(address)
        for address in ("127.0.0.2", "192.168.0.1", "fe80::1"):
            with pytest.raises(ForbiddenAddress):
                check(address)


class TestInTokenMode:
    async def test_an_agent_on_this_machine_is_not_called(self, project: Path) -> None:
        async with AgentServer(says("inside")) as agent, serving(project, policy=GUARDED) as api:
            for url in (
                agent.url,
                agent.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
                agent.url.replace("127.0.0.1", "2130706433"),
            ):
                found = await checked(api, http(url))
                assert found["success"] is False
            assert agent.requests == []
            assert "may not be called" in (await checked(api, http(agent.url + "/again")))["error"]

    async def test_a_name_that_resolves_to_this_machine_is_not_called(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The attack: a public name whose address is ours by the time it is looked up."""
        real = socket.getaddrinfo

        def poisoned(host: Any, *args: Any, **more: Any) -> Any:
            name = host.decode() if isinstance(host, bytes) else host
            return real("127.0.0.1" if name == "agent.example.com" else host, *args, **more)

        monkeypatch.setattr(socket, "getaddrinfo", poisoned)
        async with AgentServer(says("inside")) as agent, serving(project, policy=GUARDED) as api:
            port = agent.url.rpartition(":")[2]
            found = await checked(api, http(f"http://agent.example.com:{port}"))
            assert found["success"] is False
            assert "private or local address" in found["error"]
            assert agent.requests == []

    async def test_what_the_config_allows_is_called(self, tmp_path: Path) -> None:
        project = make_project(tmp_path, [], allowedAddresses=["127.0.0.1"])
        async with AgentServer(says("inside")) as agent, serving(project, policy=GUARDED) as api:
            assert (await checked(api, http(agent.url)))["success"] is True

    async def test_a_redirect_to_a_link_local_address_is_not_followed(self, tmp_path: Path) -> None:
        """The attack: an allowed agent sends us on to the cloud's metadata service."""
        away = Answer(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data"}, body=b"")
        project = make_project(tmp_path, [], allowedAddresses=["127.0.0.1"])
        async with AgentServer(away) as agent, serving(project, policy=GUARDED) as api:
            found = await checked(api, http(agent.url))
            assert found["success"] is False
            assert "redirect" in found["error"]
            assert len(agent.requests) == 1

    async def test_runs_are_held_to_it_too(self, project: Path) -> None:
        async with (
            AgentServer(says("inside")) as agent,
            serving(project, policy=GUARDED, processor=True) as api,
        ):
            made = await api("POST", "/api/connectors", http(agent.url), headers=BEARER)
            scenario = await api("POST", "/api/scenarios", scripted("talks", "hi"), headers=BEARER)
            body = {"scenarioId": scenario.json["id"], "connectorId": made.json["id"]}
            started = await api("POST", "/api/runs", body, headers=BEARER)
            api.http.headers.update(BEARER)
            done = await api.finished(started.json["execution"]["id"])
            assert done["counts"]["errored"] == 1
            assert agent.requests == []


class TestNothingExecutableComesIn:
    @pytest.mark.parametrize(
        "function", ["os:system", "subprocess:run", "builtins:eval", "evalstudio.cli:main"]
    )
    async def test_a_python_connector_calls_only_listed_modules(self, api: Api, function: str) -> None:
        made = await api(
            "POST", "/api/connectors", {"name": "x", "type": "python", "config": {"function": function}}
        )
        if made.status == 201:
            found = (await api("POST", f"/api/connectors/{made.json['id']}/test")).json
            assert found["success"] is False
            assert "not allowed" in found["error"]
        else:
            assert made.status == 422

    @pytest.mark.parametrize("path", ["../outside.jsonl", "/etc/passwd", "a/../../outside.jsonl"])
    async def test_a_replay_outside_the_project_folder_is_not_read(
        self, api: Api, project: Path, path: str
    ) -> None:
        said = {"messages": [{"role": "assistant", "content": "leaked"}]}
        (project.parent.parent / "outside.jsonl").write_text(json.dumps(said) + "\n")
        body = {"name": "x", "type": "replay", "config": {"file": path}}
        made = await api.made("/api/connectors", body)
        found = (await api("POST", f"/api/connectors/{made['id']}/test")).json
        assert found["success"] is False
        assert "project folder" in found["error"]
        assert "leaked" not in found["error"]

    @pytest.mark.parametrize("path", ["../outside.csv", "/etc/passwd", "a/../../outside.csv"])
    async def test_a_case_file_outside_the_project_folder_is_not_read(
        self, api: Api, project: Path, path: str
    ) -> None:
        (project.parent.parent / "outside.csv").write_text("city\nleaked\n")
        answer = await api("POST", "/api/scenarios", scripted("x", "to {{city}}", cases=path))
        assert answer.status == 422
        assert "leads out of the project folder" in answer.error["message"]
        assert "leaked" not in answer.text

    async def test_a_link_out_of_the_project_folder_is_not_followed(self, api: Api, project: Path) -> None:
        (project.parent / "cases.csv").symlink_to("/etc/passwd")
        answer = await api("POST", "/api/scenarios", scripted("x", "to {{city}}", cases="cases.csv"))
        assert answer.status == 422
        assert "root:" not in answer.text

    async def test_a_json_schema_never_fetches(self, api: Api) -> None:
        async with AgentServer(says("{}")) as bait:
            evaluators = [{"type": "json-schema", "config": {"schema": {"$ref": f"{bait.url}/schema.json"}}}]
            await api("POST", "/api/scenarios", {"name": "x", "script": ["hi"], "evaluators": evaluators})
            assert bait.requests == []
