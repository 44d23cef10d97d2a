"""The server as a process and a site: starting, stopping, being scaled apart, serving the UI."""

from __future__ import annotations

import gzip
import json
import stat
import urllib.request
from pathlib import Path

import pytest
from starlette.requests import Request
from tests.support.api_server import ServerProcess, serving
from tests.support.projects import make_project, scripted

from evalstudio.server.static import Site


def request_for(path: str, method: str = "GET") -> Request:
    return Request(
        {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [],
            "query_string": b"",
            "server": ("x", 1),
        }
    )


class TestServe:
    def test_starts_answers_and_stops_cleanly(self, tmp_path: Path) -> None:
        server = ServerProcess(make_project(tmp_path / "project", []))
        server.wait_ready()
        with urllib.request.urlopen(f"{server.url}/api/status") as answer:
            status = json.load(answer)
        assert status["processor"] == {"enabled": True, "running": True, "problem": None}
        assert server.stop() == 0, server.log
        assert "EvalStudio is at http://127.0.0.1" in server.log
        assert "Traceback" not in server.log

    def test_refuses_other_addresses_with_a_short_token_and_makes_one_itself(self, tmp_path: Path) -> None:
        project = make_project(tmp_path / "project", [])
        refused = ServerProcess(project, "--host", "0.0.0.0", env={"EVALSTUDIO_TOKEN": "short"})
        assert refused.process.wait(60) == 2
        assert "too short" in refused.log

        server = ServerProcess(project, "--host", "0.0.0.0")
        server.wait_ready()
        assert server.stop() == 0
        kept = project.parent / "data" / "server.token"
        token = kept.read_text()
        assert f"Token: {token}" in server.log
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600

        again = ServerProcess(project, "--host", "0.0.0.0")
        again.wait_ready()
        request = urllib.request.Request(
            f"{again.url}/api/personas", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200
        assert again.stop() == 0
        assert again.log.count(token) == 1

    async def test_without_a_processor_runs_wait(self, tmp_path: Path) -> None:
        project = make_project(tmp_path / "project", [])
        async with serving(project, processor=False) as api:
            connector = await api.made("/api/connectors", {"name": "agent", "type": "test-agent"})
            scenario = await api.made("/api/scenarios", scripted("talks", "hi"))
            started = await api.made(
                "/api/runs", {"scenarioId": scenario["id"], "connectorId": connector["id"]}
            )
            status = await api.found("/api/status")
            assert status["queued"] is True
            assert status["processor"]["enabled"] is False
            # A worker, or another server, does the work.
            async with serving(project, processor=True):
                done = await api.finished(started["execution"]["id"])
            assert done["counts"]["passed"] == 1

    async def test_long_answers_are_compressed(self, tmp_path: Path) -> None:
        async with serving(make_project(tmp_path, [])) as api:
            url = f"{api.url}/api/evaluator-types"
            async with api.http.get(
                url, headers={"Accept-Encoding": "gzip"}, auto_decompress=False
            ) as answer:
                assert answer.headers["Content-Encoding"] == "gzip"
                body = await answer.read()
            assert len(body) < len(gzip.decompress(body)) / 3


class TestTheSite:
    @pytest.fixture
    def site(self, tmp_path: Path) -> Site:
        (tmp_path / "assets").mkdir()
        (tmp_path / "index.html").write_text("<html>the app</html>")
        (tmp_path / "favicon.svg").write_text("<svg/>")
        (tmp_path / "assets" / "index-B4x9_kQz.js").write_text("app()")
        (tmp_path / "secret-link").symlink_to("/etc/passwd")
        return Site(tmp_path)

    @pytest.mark.parametrize("path", ["/", "/index.html", "/executions/01k", "/scenarios/new"])
    async def test_pages_of_the_app_are_the_index_and_never_stale(self, site: Site, path: str) -> None:
        answer = await site.answer(request_for(path))
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "no-cache"
        assert "text/html" in answer.headers["Content-Type"]

    async def test_hashed_files_are_kept_for_ever_and_others_are_not(self, site: Site) -> None:
        hashed = await site.answer(request_for("/assets/index-B4x9_kQz.js"))
        assert "immutable" in hashed.headers["Cache-Control"]
        assert "javascript" in hashed.headers["Content-Type"]
        plain = await site.answer(request_for("/favicon.svg"))
        assert plain.headers["Cache-Control"] == "no-cache"

    @pytest.mark.parametrize(
        "path", ["/assets/gone.js", "/../x.py", "/assets/../../x.txt", "/secret-link.txt"]
    )
    async def test_missing_files_are_not_found(self, site: Site, path: str) -> None:
        assert (await site.answer(request_for(path))).status_code == 404

    async def test_a_link_is_no_file_of_the_app(self, site: Site) -> None:
        answer = await site.answer(request_for("/secret-link"))
        assert "text/html" in answer.headers["Content-Type"]

    async def test_without_a_build_a_page_says_what_to_do(self, tmp_path: Path) -> None:
        answer = await Site(tmp_path / "nothing").answer(request_for("/"))
        assert answer.status_code == 200
        assert b"make setup" in bytes(answer.body)
