"""``/api/compare`` and ``/api/baselines``, labels and partial executions, over HTTP and by the client."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import serving
from tests.support.projects import apply_project, make_project, scripted

from evalstudio.client import AsyncClient, ServerError
from evalstudio.reporting.comparing import compare
from evalstudio.reporting.comparison import ComparisonResult


@pytest.fixture
def project(tmp_path: Path) -> Path:
    config = make_project(tmp_path / "project", [scripted(f"s{number}", "hi") for number in range(7)])
    apply_project(config)
    return config


async def executed(client: AsyncClient, **more: object) -> str:
    (chosen,) = await client.evals.list()
    execution = await client.start(chosen.id, **more)  # pyright: ignore[reportArgumentType]
    return (await client.wait(execution.id, timeout=60)).id


async def test_a_comparison_over_http_and_by_the_client(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        first = await executed(client, labels={"branch": "main"})
        second = await executed(client, labels={"branch": "other"})
        sent = await api.found(f"/api/compare?base=main&candidate={second}")
        assert (sent["base"]["id"], sent["decision"], sent["counts"]["unchanged"]) == (first, "none", 7)
        result = await client.compare("last~1", evalId=sent["base"]["evalId"], alpha=0.01, minEffect=0.2)
        assert (result.base.id, result.candidate.id, result.alpha) == (first, second, 0.01)
        with pytest.raises(ServerError, match="no execution"):
            await client.compare("nothing-like-it")
        assert (await api("GET", "/api/compare?base=last~1&baseConnector=agent")).status == 422


async def test_baselines_are_set_listed_kept_and_removed(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        first = await executed(client)
        baseline = await client.set_baseline("main")
        assert (baseline.name, baseline.execution_id) == ("main", first)
        assert await client.baselines() == await client.baselines(baseline.eval_id) == [baseline]
        assert (await api("DELETE", f"/api/executions/{first}")).status == 409
        await client.remove_baseline("main")
        assert await client.baselines() == []
        assert (await api("DELETE", "/api/baselines?name=main")).status == 404
        assert (await api("DELETE", f"/api/executions/{first}")).status == 204


async def test_partial_executions_say_so_and_stay_out_of_trends(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        whole = await executed(client, labels={"branch": "main", "n": "1"})
        (chosen,) = await client.evals.list()
        part = await executed(client, scenarioIds=chosen.scenario_ids[:1], labels={"branch": "main"})
        assert (await client.execution(part)).partial == "only"
        assert [one["id"] for one in await api.found("/api/stats/executions")] == [whole]
        everything = await api.found("/api/stats/executions?whole=false")
        assert [(one["id"], one["partial"]) for one in everything] == [(part, "only"), (whole, None)]
        matrix = f"/api/stats/matrix?evalId={chosen.id}"
        assert [one["id"] for one in (await api.found(matrix))["executions"]] == [whole]
        assert len((await api.found(f"{matrix}&whole=false"))["executions"]) == 2
        for query, runs in (("", 7), ("?whole=false", 8), (f"?executionId={part}", 1)):
            tallies = await api.found(f"/api/stats/scenario{query}")
            assert sum(one["counts"]["total"] for one in tallies) == runs
        assert await api.found("/api/stats/flaky?whole=false") == []
        listed = await client.executions(label=["branch=main", "n=1"])
        assert [one.id for one in listed] == [whole]
        assert len(await client.executions(whole="true")) == 1


async def test_figures_take_repetitions_of_a_subject_as_related(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        await executed(client, repetitions=4)
        (figures,) = await api.found("/api/stats/executions")
        once = figures["passRateOfScored"]
        assert (once["passed"], once["of"]) == (28, 28)
        # Seven subjects that all passed: Wilson's interval of 7 of 7, not of 28 of 28.
        assert once["low"] == pytest.approx(0.6457, abs=1e-4)
        by_connector = (await api.found("/api/stats/connector"))[0]["passRateOfScored"]
        assert by_connector["low"] == pytest.approx(once["low"])


async def test_what_is_required_goes_along_and_its_verdict_is_answered(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        required = [{"passRate": 0.9}, {"passRate": 1, "scenario": "nobody"}]
        done = await executed(client, requirements=required, budget={"maxTime": 3600})
        assert (await client.execution(done)).budget is not None
        answer = await client.conclusion(done)
        assert (answer.standing, answer.exit_code, answer.summary.counts.passed) == ("undecided", 3, 7)
        assert [(one.requirement, one.standing) for one in answer.requirements] == [
            ("passRate>=0.9", "met"),
            ("passRate>=1,scenario=nobody", "undecided"),
        ]
        assert "7 of 7 passed" in answer.requirements[0].evidence
        plain = await executed(client)
        assert ((await client.conclusion(plain)).standing, (await client.conclusion(plain)).requirements) == (
            "met",
            [],
        )
        sent = await api("POST", "/api/executions", {"evalId": "x", "requirements": [{"passRate": 7}]})
        assert sent.status == 422
        assert (await api("GET", "/api/executions/nowhere/conclusion")).status == 404


async def test_others_are_answered_while_a_comparison_is_computed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, others_answered = threading.Event(), threading.Event()

    def waiting(*arguments: Any, **more: Any) -> ComparisonResult:
        begun.set()
        assert others_answered.wait(30), "nobody else was answered"
        return compare(*arguments, **more)

    monkeypatch.setattr("evalstudio.execution.comparing.compare", waiting)
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        await executed(client)
        await executed(client)
        comparing = asyncio.create_task(client.compare("last~1"))
        await asyncio.to_thread(begun.wait, 30)
        assert len(await client.executions()) == 2
        others_answered.set()
        assert (await comparing).decision == "none"
