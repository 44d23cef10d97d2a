"""The typed client, from plain code and from async code, against a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.api_server import ServerProcess, serving
from tests.support.projects import make_project, scripted

import evalstudio
from evalstudio.client import AsyncClient, Client, ServerError
from evalstudio.conversation.definitions import Scenario
from evalstudio.project.entities import Connector, Eval
from evalstudio.server.policy import ServerPolicy

TOKEN = "a-token-nobody-guesses-0123456789"


class TestFromAsyncCode:
    async def test_defines_runs_follows_and_reads(self, tmp_path: Path) -> None:
        async with serving(make_project(tmp_path, []), processor=True) as api, AsyncClient(api.url) as client:
            connector = await client.connectors.create(Connector(name="agent", type="test-agent"))
            scenario = await client.scenarios.create(scripted("talks", "hi"), key="once")
            assert (await client.scenarios.create(scripted("talks", "hi"), key="once")).id == scenario.id
            wanted = await client.evals.create(
                Eval(name="all", scenario_ids=[scenario.id], connector_ids=[connector.id], repetitions=3)
            )
            execution = await client.start(wanted.id, labels={"by": "test"})
            done = await client.wait(execution.id, timeout=30)
            assert done.counts.passed == 3
            runs = await client.runs(executionId=execution.id)
            assert len(runs) == 3
            run = await client.run(runs[0].id)
            assert run.messages[-1].text == "echo: hi"
            assert [one.id for one in await client.executions(evalId=wanted.id)] == [execution.id]
            repeated = await client.start(wanted.id, until_decided=True, repetitions=4)
            assert (repeated.counts.total, repeated.until_decided, repeated.partial) == (1, 4, "unfinished")
            done = await client.wait(repeated.id, timeout=30)
            assert (done.counts.passed, done.status, done.partial) == (4, "completed", None)
            assert (await client.status())["name"] == "test"

    async def test_reads_lists_of_any_length(self, tmp_path: Path) -> None:
        async with serving(make_project(tmp_path, [])) as api, AsyncClient(api.url) as client:
            for number in range(12):
                await client.personas.create({"name": f"p{number}"})
            found = await client.personas.list()
            assert len(found) == 12
            assert [one.name for one in await client.personas.list("p11")] == ["p11"]

    async def test_a_change_against_an_old_version_is_refused(self, tmp_path: Path) -> None:
        async with serving(make_project(tmp_path, [])) as api, AsyncClient(api.url) as client:
            made = await client.personas.create({"name": "Ada"})
            changed = await client.personas.update(made.id, {"name": "Ada", "knows": "x"}, version=1)
            assert changed.version == 2
            # What was read can be sent back as it is.
            await client.personas.update(made.id, changed, version=2)
            with pytest.raises(ServerError, match="changed in the meantime") as refused:
                await client.personas.update(made.id, {"name": "Ada"}, version=1)
            assert (refused.value.status, refused.value.code) == (412, "changed_meanwhile")
            await client.personas.delete(made.id)
            with pytest.raises(ServerError, match="There is no persona"):
                await client.personas.get(made.id)

    async def test_scores_a_recorded_response(self, tmp_path: Path) -> None:
        async with serving(make_project(tmp_path, [])) as api, AsyncClient(api.url) as client:
            config = {"evaluatorConfigs": [{"type": "regex", "config": {"pattern": "sun"}}]}
            assert (await client.score({"response": "sunny"}, config))["success"] is True
            assert "regex" in {one["type"] for one in await client.evaluator_types()}
            assert "http" in {one["type"] for one in await client.connector_types()}

    async def test_shows_its_token(self, project: Path) -> None:
        async with serving(project, policy=ServerPolicy(token=TOKEN)) as api:
            async with AsyncClient(api.url, TOKEN) as client:
                assert await client.personas.list() == []
            async with AsyncClient(api.url) as stranger:
                with pytest.raises(ServerError, match="token is needed") as refused:
                    await stranger.personas.list()
            assert refused.value.status == 401

    async def test_follows_on_after_the_server_was_gone(self, tmp_path: Path) -> None:
        project = make_project(tmp_path / "project", [])
        server = ServerProcess(project)
        try:
            await asyncio.to_thread(server.wait_ready)
            async with AsyncClient(server.url) as client:
                connector = await client.connectors.create({"name": "agent", "type": "test-agent"})
                scenario = await client.scenarios.create(scripted("talks", "wait=0.1 hi"))
                body = {"name": "all", "scenarioIds": [scenario.id], "connectorIds": [connector.id]}
                wanted = await client.evals.create({**body, "repetitions": 30})
                execution = await client.start(wanted.id)
                waiting = asyncio.create_task(client.wait(execution.id, timeout=60))
                await asyncio.sleep(0.3)
                server.kill()
                server = ServerProcess(project, port=server.port)
                assert (await waiting).counts.passed == 30
        finally:
            server.stop()


class TestFromPlainCode:
    def test_does_the_same_without_await(self, tmp_path: Path) -> None:
        server = ServerProcess(make_project(tmp_path / "project", []))
        try:
            server.wait_ready()
            with evalstudio.Client(server.url) as client:
                connector = client.connectors.create(Connector(name="agent", type="test-agent"))
                scenario = client.scenarios.create(Scenario.model_validate(scripted("talks", "hi")))
                runs = client.try_scenario(scenario.id, connector.id)
                done = client.wait(runs[0].execution_id, timeout=30)
                assert done.counts.passed == 1
                assert client.run(runs[0].id).messages[-1].text == "echo: hi"
                first = next(client.events(execution_id=done.id, after=0))
                assert first["kind"] == "execution.queued"
                assert client.test_connector(connector.id)["success"] is True
                assert client.retry(done.id) == 0
                assert client.cancel(done.id) == 0
                assert [one.name for one in client.scenarios.list()] == ["talks"]
                with pytest.raises(ServerError, match="There is no eval"):
                    client.start("nope")
        finally:
            server.stop()

    def test_says_so_when_nobody_is_there(self) -> None:
        with (
            Client("http://127.0.0.1:9") as client,
            pytest.raises(ServerError, match=r"127\.0\.0\.1:9 cannot be reached"),
        ):
            client.status()
