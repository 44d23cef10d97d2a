"""Definitions from elsewhere that refer to the environment of the server: only to what they were given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_server import AgentServer, says
from tests.support.api_server import Api, serving
from tests.support.command_line import evalstudio
from tests.support.projects import apply_project, make_project

VALUE = "value-of-a-variable-1234"


def connector(reference: str, **more: Any) -> dict[str, Any]:
    headers = {"X-Key": reference}
    return {"name": "web", "type": "http", "baseUrl": "http://127.0.0.1:9", "headers": headers, **more}


class TestOverTheApi:
    @pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "HOME", "PATH", "DATABASE_URL", "JUDGE_KEY_2"])
    async def test_other_variables_of_the_server_are_refused(self, tmp_path: Path, name: str) -> None:
        settings = {"provider": "openai", "apiKey": "${JUDGE_KEY}"}
        storage = {"type": "sqlite", "path": "data/${DATABASE_URL}.db"}
        project = make_project(tmp_path, [], llmSettings=settings, storage=storage)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DATABASE_URL", "here")
            async with serving(project) as api:
                answer = await api("POST", "/api/connectors", connector(f"${{{name}}}"))
                assert answer.status == 422
                assert answer.error["details"][0]["path"] == "headers.X-Key"
                assert f"environment variable {name}" in answer.error["message"]
                assert "allowedVariables" in answer.error["message"]
                address = {**connector("x"), "baseUrl": f"http://127.0.0.1/${{{name}}}"}
                assert (await api("POST", "/api/connectors", address)).status == 422
                persona = {"name": "Eve", "headers": {"X": f"a ${{{name}}}"}}
                assert (await api("POST", "/api/personas", persona)).status == 422

    async def test_allowed_are_those_of_the_config_the_listed_and_the_public(self, tmp_path: Path) -> None:
        settings = {"provider": "openai", "apiKey": "${JUDGE_KEY}"}
        project = make_project(tmp_path, [], llmSettings=settings, allowedVariables=["AGENT_KEY"])
        async with serving(project) as api:
            for name in ("JUDGE_KEY", "AGENT_KEY", "EVALSTUDIO_PUBLIC_TEAM"):
                made = await api("POST", "/api/connectors", connector(f"${{{name}}}", name=name))
                assert made.status == 201, made.text
            for name in ("EVALSTUDIO_TOKEN", "EVALSTUDIO_PUBLICITY"):
                body = connector(f"${{{name}}}", name=name)
                assert (await api("POST", "/api/connectors", body)).status == 422

    async def test_what_the_project_refers_to_itself_cannot_be_turned_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PROJECT_KEY", VALUE)
        config = make_project(tmp_path / "project", [])
        async with AgentServer(says("mine now")) as thief:
            (config.parent / "web.json").write_text(json.dumps({"connectors": [connector("${PROJECT_KEY}")]}))
            assert evalstudio("apply", "web.json", cwd=config.parent).returncode == 0
            async with serving(config) as api:
                [known] = (await api.found("/api/connectors"))["items"]
                where = f"/api/connectors/{known['id']}"
                # What stays where it is may stay as it is.
                renamed = connector("${PROJECT_KEY}", name="renamed")
                assert (await api("PUT", where, renamed)).status == 200
                moved = connector("${PROJECT_KEY}", baseUrl=thief.url)
                assert (await api("PUT", where, moved)).status == 422
                await api("POST", f"{where}/test")
                assert VALUE not in str([request.headers for request in thief.requests])


class TestFiles:
    def test_a_file_of_another_folder_is_held_to_the_same_list(self, tmp_path: Path) -> None:
        folder = make_project(tmp_path / "project", []).parent
        elsewhere = tmp_path / "downloads" / "evals.json"
        elsewhere.parent.mkdir()
        elsewhere.write_text(json.dumps({"connectors": [connector("${AWS_SECRET_ACCESS_KEY}")]}))
        refused = evalstudio("apply", str(elsewhere), cwd=folder)
        assert refused.returncode == 2
        assert "AWS_SECRET_ACCESS_KEY" in refused.stderr
        assert "evals.json" in refused.stderr
        linked = folder / "linked.json"
        linked.symlink_to(elsewhere)
        assert evalstudio("apply", "linked.json", cwd=folder).returncode == 2
        (folder / "own.json").write_text(elsewhere.read_text())
        assert evalstudio("apply", "own.json", cwd=folder).returncode == 0

    async def test_the_owner_may_refer_to_anything_by_command(self, api: Api, project: Path) -> None:
        apply_project(project)
        options = ("--type", "http", "--base-url", "http://127.0.0.1:9", "--header", "X-Key: ${ANY_KEY}")
        made = evalstudio("connector", "create", "--name", "Web", *options, cwd=project.parent)
        assert made.returncode == 0, made.stderr
        assert (await api.found("/api/connectors"))["items"]
