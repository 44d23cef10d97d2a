"""``/api/home``, ``/api/search``, the runs behind a comparison, histories of scenarios and evaluators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import Api, serving
from tests.support.projects import apply_project, make_project, scripted

from evalstudio.client import AsyncClient

# The agent answers as the file beside it says, so that a test can make it worse.
AGENT = """
from pathlib import Path

from evalstudio import ConnectorContext, ConnectorResponse, Message, define_connector

BROKEN = Path(__file__).parent / "broken.txt"


@define_connector(type="test-agent")
def test_agent(ctx: ConnectorContext) -> ConnectorResponse:
    text = ctx.messages[-1].text
    broken = BROKEN.exists() and BROKEN.read_text() in text
    return ConnectorResponse([Message(role="assistant", content="no idea" if broken else f"echo: {text}")])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    scenarios = [scripted("Opening hours", "when do you open"), scripted("Refund", "where is my refund")]
    config = make_project(tmp_path / "project", scenarios, agent=AGENT, repetitions=3)
    apply_project(config)
    return config


async def executed(client: AsyncClient, **more: Any) -> str:
    (chosen,) = await client.evals.list()
    execution = await client.start(chosen.id, **more)
    return (await client.wait(execution.id, timeout=60)).id


async def card(api: Api) -> Any:
    (only,) = (await api.found("/api/home"))["evals"]
    return only


async def test_a_card_says_what_got_worse_since_the_baseline(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        never = await card(api)
        assert (never["evalName"], never["execution"], never["progress"], never["trend"]) == (
            "all",
            None,
            None,
            [],
        )
        (eval_,) = await client.evals.list()
        own = await api.found(f"/api/evals/{eval_.id}")
        fields = {key: own[key] for key in ("name", "scenarioIds", "connectorIds", "repetitions")}
        await api("PUT", f"/api/evals/{eval_.id}", {**fields, "requirements": [{"passRate": 0.9}]})

        first = await executed(client, labels={"branch": "main"})
        alone = await card(api)
        assert (alone["execution"]["id"], alone["progress"]) == (first, None)
        assert alone["note"] == "no earlier execution to compare with"
        assert alone["passRate"]["rate"] == 1

        (project.parent / "broken.txt").write_text("refund")
        second = await executed(client)
        worse = await card(api)
        assert worse["progress"]["reference"]["kind"] == "previous"
        await client.set_baseline("main", first)
        worse = await card(api)
        progress = worse["progress"]
        assert (progress["reference"]["name"], progress["reference"]["executionId"]) == ("main", first)
        assert worse["execution"]["id"] == second
        assert (progress["counts"]["regressed"], progress["counts"]["unchanged"]) == (1, 1)
        assert progress["overall"]["difference"] == -0.5
        (failure,) = progress["failures"]
        assert (failure["subject"]["label"], failure["candidate"]["failed"]) == ("Refund · agent", 3)
        failed = await api.found(f"/api/runs/{failure['runId']}")
        assert failed["executionId"] == second
        assert failure["reason"] == failed["result"]["reason"] != ""
        assert [one["standing"] for one in worse["requirements"]] == ["missed"]
        assert [point["executionId"] for point in worse["trend"]] == [first, second]

        (project.parent / "broken.txt").unlink()
        third = await executed(client)
        better = await card(api)
        assert (better["execution"]["id"], better["progress"]["counts"]["unchanged"]) == (third, 2)
        assert better["progress"]["failures"] == []


async def test_the_runs_behind_a_row_and_what_changed_in_their_definitions(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        base = await executed(client)
        scenario = next(one for one in await client.scenarios.list() if one.name == "Refund")
        kept = await api.found(f"/api/scenarios/{scenario.id}")
        own = {key: kept[key] for key in kept.keys() - {"id", "version", "createdAt", "updatedAt"}}
        await api("PUT", f"/api/scenarios/{scenario.id}", {**own, "script": ["my refund, please"]})
        candidate = await executed(client)
        compared = await api.found(
            f"/api/compare/runs?base={base}&candidate={candidate}&scenarioId={scenario.id}"
        )
        assert [len(compared[side]) for side in ("base", "candidate")] == [3, 3]
        assert {one["executionId"] for one in compared["candidate"]} == {candidate}
        assert compared["definitions"] == [
            {
                "definition": "scenario",
                "path": "script[0]",
                "base": "where is my refund",
                "candidate": "my refund, please",
            }
        ]
        missing = await api("GET", f"/api/compare/runs?base=none&candidate={candidate}&scenarioId=s")
        assert missing.status == 404


async def test_histories_of_a_scenario_and_of_an_evaluator(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        await executed(client)
        (project.parent / "broken.txt").write_text("refund")
        second = await executed(client)
        scenario = next(one for one in await client.scenarios.list() if one.name == "Refund")

        history = await api.found(f"/api/stats/scenarios/{scenario.id}")
        (connector,) = history["connectors"]
        assert (connector["connectorName"], history["executions"]) == ("agent", 2)
        assert [point["rate"]["passed"] for point in connector["points"]] == [3, 0]
        assert (connector["rate"]["passed"], connector["rate"]["of"]) == (3, 6)

        regex = await api.found("/api/stats/evaluators/regex")
        assert (regex["kind"], regex["runsRead"], regex["moreRuns"]) == ("assertion", 12, False)
        assert [(point["rate"]["passed"], point["rate"]["of"]) for point in regex["points"]] == [
            (6, 6),
            (3, 6),
        ]
        assert {one["executionId"] for one in regex["failures"]} == {second}
        assert [one["scenarioName"] for one in regex["uses"]] == ["Opening hours", "Refund"]
        unused = await api.found("/api/stats/evaluators/toxicity")
        assert (unused["kind"], unused["points"], unused["uses"]) == (None, [], [])
        assert (await api("GET", "/api/stats/evaluators/nothing")).status == 404

        (evaluation,) = await client.evals.list()
        matrix = await api.found(f"/api/stats/matrix?evalId={evaluation.id}")
        row = next(one for one in matrix["rows"] if one["scenarioName"] == "Refund")
        (on_agent,) = row["connectors"]
        assert on_agent["cells"] == row["cells"]
        assert [cell["counts"]["failed"] for cell in row["cells"]] == [3, 0]


async def test_search_finds_definitions_executions_and_runs(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        execution = await executed(client)
        hits = await api.found("/api/search?text=refund")
        assert [(one["kind"], one["name"]) for one in hits][:1] == [("scenario", "Refund")]
        assert {one["kind"] for one in hits} == {"scenario", "run"}
        assert [one["kind"] for one in await api.found("/api/search?text=ALL")] == ["eval", "execution"]
        (by_id,) = await api.found(f"/api/search?text={execution}")
        assert (by_id["kind"], by_id["id"]) == ("execution", execution)
        run = next(one for one in hits if one["kind"] == "run")
        assert [one["id"] for one in await api.found(f"/api/search?text={run['id']}")] == [run["id"]]
        assert await api.found("/api/search?text=nothing+like+it") == []
        assert (await api("GET", "/api/search?text=+")).status == 422


async def test_evaluators_of_an_execution_and_of_a_week_with_the_worst_first(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        (project.parent / "broken.txt").write_text("refund")
        execution = await executed(client)
        for query in (f"executionId={execution}", "since=2020-01-01T00:00:00Z"):
            figures = await api.found(f"/api/stats/evaluators?{query}")
            worst = figures["evaluators"][0]
            assert (worst["type"], worst["kind"], worst["failed"], worst["errored"]) == (
                "regex",
                "assertion",
                3,
                0,
            )
            assert (worst["rate"]["passed"], worst["rate"]["of"]) == (3, 6)
            assert (figures["runsRead"], figures["moreRuns"]) == (6, False)
        later = await api.found("/api/stats/evaluators?since=2999-01-01T00:00:00Z")
        assert later == {"evaluators": [], "runsRead": 0, "moreRuns": False}
        assert (await api("GET", "/api/stats/evaluators?executionId=nothing")).status == 404
        await _has_columns(api, execution)


async def _has_columns(api: Api, execution: str) -> None:
    """Columns of a table of runs: in the order they were asked for, page by page."""
    path = f"/api/stats/executions/{execution}/findings?limit=4"
    first = await api.found(f"{path}&evaluator=regex&evaluator=nobody")
    second = await api.found(f"{path}&evaluator=regex&evaluator=nobody&cursor={first['cursor']}")
    rows = [*first["items"], *second["items"]]
    names = {run["id"]: run["scenarioName"] for run in (await api.found("/api/runs"))["items"]}
    assert second["cursor"] is None
    assert {row["runId"] for row in rows} == names.keys()
    for row in rows:
        checked, unused = row["findings"]
        refund = names[row["runId"]] == "Refund"
        assert (checked["word"], checked["value"]) == (("fail", 0.0) if refund else ("pass", 1.0))
        assert "echo" in checked["reason"]
        assert unused is None
    assert (await api("GET", path)).status == 422
    assert (await api("GET", "/api/stats/executions/nothing/findings?evaluator=regex")).status == 404


async def test_the_runs_of_an_execution_are_spread_over_bins(project: Path) -> None:
    async with serving(project, processor=True) as api, AsyncClient(api.url) as client:
        (project.parent / "broken.txt").write_text("refund")
        execution = await executed(client)
        spread = await api.found(f"/api/stats/executions/{execution}/distributions")
        assert [one["runs"] for one in spread["scores"]] == [3, 0, 0, 0, 0, 0, 0, 0, 0, 3]
        assert sum(one["runs"] for one in spread["latencies"]) == 6
        assert 0 not in {spread["latencies"][place]["runs"] for place in (0, -1)}
        assert (await api("GET", "/api/stats/executions/nothing/distributions")).status == 404
