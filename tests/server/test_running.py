"""Executions and runs over the API, with a processor at work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer, says
from tests.support.api_server import Api, serving
from tests.support.projects import make_project, scripted


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncGenerator[Api]:
    """A server that works on what is queued."""
    async with serving(make_project(tmp_path / "project", []), processor=True) as served:
        yield served


async def eval_of(api: Api, *scenarios: dict[str, Any], repetitions: int = 1) -> dict[str, Any]:
    connector = await api.made("/api/connectors", {"name": "agent", "type": "test-agent"})
    made = [await api.made("/api/scenarios", scenario) for scenario in scenarios]
    ids = [scenario["id"] for scenario in made]
    body = {"name": "all", "scenarioIds": ids, "connectorIds": [connector["id"]], "repetitions": repetitions}
    return await api.made("/api/evals", body)


class TestAnExecution:
    async def test_runs_an_eval_and_counts_its_outcomes(self, busy: Api) -> None:
        made = await eval_of(
            busy,
            scripted("passes", "hi"),
            scripted("fails", "hi", pattern="nothing like it"),
            scripted("breaks", "break it"),
        )
        started = await busy.made("/api/executions", {"evalId": made["id"], "labels": {"branch": "main"}})
        assert started["counts"]["total"] == 3
        done = await busy.finished(started["id"])
        assert done["labels"] == {"branch": "main"}
        counts = done["counts"]
        assert (counts["passed"], counts["failed"], counts["errored"]) == (1, 1, 1)

        runs = (await busy.found(f"/api/runs?executionId={started['id']}"))["items"]
        assert {run["result"]["outcome"] for run in runs} == {"pass", "fail", "error"}
        bad = (await busy.found("/api/runs?outcome=error"))["items"]
        assert [run["scenarioName"] for run in bad] == ["breaks"]
        held = (await busy.found("/api/runs?said=ECHO&evaluator=regex&verdict=fail&label=branch"))["items"]
        assert [run["scenarioName"] for run in held] == ["fails"]

        for kind, part in (("csv", "scenario"), ("junit", "<testsuite"), ("html", "<html"), ("json", "{")):
            report = await busy("GET", f"/api/executions/{started['id']}/report?format={kind}")
            assert part in report.text, kind
            assert "attachment" in report.headers["content-disposition"]
        assert (await busy("GET", "/api/executions/nowhere/report")).status == 404

        again = await busy.made("/api/executions", {"evalId": made["id"], "failedOf": started["id"]})
        assert again["counts"]["total"] == 2
        passed = next(run["id"] for run in runs if run["result"]["outcome"] == "pass")
        again = await busy.made("/api/executions", {"evalId": made["id"], "runIds": [passed]})
        assert again["counts"]["total"] == 1

    async def test_a_run_shows_all_that_was_said_and_its_whole_output(self, busy: Api) -> None:
        made = await eval_of(
            busy, scripted("talks", "one", "two", messages=[{"role": "system", "content": "s"}])
        )
        started = await busy.made("/api/executions", {"evalId": made["id"]})
        await busy.finished(started["id"])
        summary = (await busy.found(f"/api/runs?executionId={started['id']}"))["items"][0]
        run = await busy.found(f"/api/runs/{summary['id']}")
        said = [(message["role"], message["content"]) for message in run["messages"]]
        assert said[0] == ("system", "s")
        assert said[-1] == ("assistant", "echo: two")
        assert [(turn["turn"], turn["messageCount"]) for turn in run["turns"]] == [(0, 1), (1, 2), (2, 2)]
        assert run["output"]["messageCount"] == 4
        results = {result["type"]: result for result in run["output"]["evaluatorResults"]}
        assert results["regex"]["success"] is True
        assert results["regex"]["kind"] == "assertion"
        assert run["output"]["metrics"]["latency"] >= 0

        then = await busy.found(f"/api/runs/{run['id']}/definitions")
        assert then["scenario"]["name"] == "talks"
        assert then["connector"]["type"] == "test-agent"
        assert then["persona"] is None

    async def test_errored_runs_are_retried_and_no_others(self, busy: Api) -> None:
        made = await eval_of(busy, scripted("passes", "hi"), scripted("breaks", "break it"))
        started = await busy.made("/api/executions", {"evalId": made["id"]})
        await busy.finished(started["id"])
        runs = {run["scenarioName"]: run for run in (await busy.found("/api/runs"))["items"]}
        refused = await busy("POST", f"/api/runs/{runs['passes']['id']}/retry")
        assert refused.status == 409
        assert "Only a run that ended in an error" in refused.error["message"]
        again = await busy("POST", f"/api/runs/{runs['breaks']['id']}/retry")
        assert again.json == {"count": 1}
        await busy.finished(started["id"])
        assert (await busy.found(f"/api/runs/{runs['breaks']['id']}"))["attempt"] == 2
        first = await busy.found(f"/api/runs/{runs['breaks']['id']}?attempt=1")
        assert first["attempt"] == 1
        assert (await busy("POST", f"/api/executions/{started['id']}/retry")).json == {"count": 1}

    async def test_only_some_scenarios_and_another_connector(self, busy: Api) -> None:
        made = await eval_of(busy, scripted("a", "hi"), scripted("b", "hi"))
        other = await busy.made("/api/connectors", {"name": "other", "type": "test-agent"})
        body = {"evalId": made["id"], "scenarioIds": made["scenarioIds"][:1], "connectorIds": [other["id"]]}
        started = await busy.made("/api/executions", {**body, "repetitions": 2})
        assert started["counts"]["total"] == 2
        run = (await busy.found(f"/api/runs?executionId={started['id']}"))["items"][0]
        assert (run["scenarioName"], run["connectorName"]) == ("a", "other")
        wrong = await busy("POST", "/api/executions", {**body, "scenarioIds": ["nope"]})
        assert wrong.status == 422
        assert (await busy("POST", "/api/executions", {"evalId": "nope"})).status == 404

    async def test_is_started_once_per_key(self, busy: Api) -> None:
        made = await eval_of(busy, scripted("a", "hi"))
        key = {"Idempotency-Key": "k1"}
        answers = [
            await busy("POST", "/api/executions", {"evalId": made["id"]}, headers=key) for _ in range(3)
        ]
        assert len({answer.json["id"] for answer in answers}) == 1
        assert len((await busy.found("/api/executions"))["items"]) == 1


class TestABrokenPlugin:
    async def test_is_told_of_while_runs_wait(self, tmp_path: Path) -> None:
        config = make_project(tmp_path, [scripted("a", "hi")], plugins=["./agent.py", "./broken.py"])
        (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
        async with serving(config, processor=True) as api:
            loaded, broken = await api.found("/api/plugins")
            assert (loaded["name"], loaded["error"]) == ("./agent.py", None)
            assert (broken["name"], broken["evaluators"]) == ("./broken.py", [])
            assert "nothing_of_this_name" in broken["error"]
            assert (await api("GET", "/api/ready")).status == 503
            made = await eval_of(api, scripted("b", "hi"))
            started = await api.made("/api/executions", {"evalId": made["id"]})
            await asyncio.sleep(0.3)
            assert (await api.found(f"/api/executions/{started['id']}"))["status"] == "queued"
            assert "./broken.py" in (await api.found("/api/status"))["processor"]["problem"]


class TestCancelling:
    async def test_takes_a_run_out_and_leaves_it_without_an_outcome(self, api: Api) -> None:
        made = await eval_of(api, scripted("a", "hi"), repetitions=2)
        started = await api.made("/api/executions", {"evalId": made["id"]})
        runs = (await api.found("/api/runs"))["items"]
        assert (await api("POST", f"/api/runs/{runs[0]['id']}/cancel")).json == {"count": 1}
        assert (await api("POST", f"/api/runs/{runs[0]['id']}/cancel")).status == 409
        assert (await api("POST", f"/api/executions/{started['id']}/cancel")).json == {"count": 1}
        done = await api.found(f"/api/executions/{started['id']}")
        assert done["status"] == "cancelled"
        assert (await api.found(f"/api/runs/{runs[0]['id']}"))["result"] is None

    async def test_a_deleted_execution_is_gone_with_its_runs(self, api: Api) -> None:
        made = await eval_of(api, scripted("a", "hi"))
        started = await api.made("/api/executions", {"evalId": made["id"]})
        run = (await api.found("/api/runs"))["items"][0]
        assert (await api("DELETE", f"/api/executions/{started['id']}")).status == 204
        assert (await api("GET", f"/api/executions/{started['id']}")).status == 404
        assert (await api("GET", f"/api/runs/{run['id']}")).status == 404
        assert (await api("DELETE", f"/api/runs/{run['id']}")).status == 404


class TestThePlayground:
    async def test_runs_one_scenario_as_one_persona_with_one_case(self, busy: Api) -> None:
        connector = await busy.made("/api/connectors", {"name": "agent", "type": "test-agent"})
        persona = await busy.made("/api/personas", {"name": "Ada"})
        cases = [{"name": "rome", "vars": {"city": "Rome"}}, {"name": "oslo", "vars": {"city": "Oslo"}}]
        scenario = await busy.made("/api/scenarios", scripted("trip", "to {{city}}", cases=cases))
        body = {"scenarioId": scenario["id"], "connectorId": connector["id"]}
        started = await busy.made("/api/runs", {**body, "caseName": "oslo"})
        assert len(started["runs"]) == 1
        assert started["execution"]["trigger"] == "try"
        await busy.finished(started["execution"]["id"])
        run = await busy.found(f"/api/runs/{started['runs'][0]['id']}")
        assert run["messages"][-1]["content"] == "echo: to Oslo"
        assert run["caseName"] == "oslo"

        wrong = await busy("POST", "/api/runs", {**body, "caseName": "osla"})
        assert wrong.status == 422
        assert "oslo" in wrong.error["message"]
        assert persona["id"]
        nobody = await busy("POST", "/api/runs", {**body, "personaId": "nobody"})
        assert nobody.status == 422


class TestRescoring:
    async def test_judges_a_kept_conversation_with_todays_evaluators(self, busy: Api) -> None:
        made = await eval_of(busy, scripted("talks", "one", "two"))
        started = await busy.made("/api/executions", {"evalId": made["id"]})
        await busy.finished(started["id"])
        run = (await busy.found("/api/runs"))["items"][0]
        same = await busy("POST", f"/api/runs/{run['id']}/rescore")
        assert same.status == 200, same.text
        assert (same.json["result"]["outcome"], same.json["changed"]) == ("pass", False)
        assert same.json["output"]["messageCount"] == 4

        changed = scripted("talks", "one", "two", pattern="three")
        assert (await busy("PUT", f"/api/scenarios/{run['scenarioId']}", changed)).status == 200
        other = await busy("POST", f"/api/runs/{run['id']}/rescore")
        assert (other.json["result"]["outcome"], other.json["changed"]) == ("fail", True)
        assert (await busy.found(f"/api/runs/{run['id']}"))["result"]["outcome"] == "pass"

    async def test_needs_a_finished_run(self, api: Api) -> None:
        made = await eval_of(api, scripted("a", "hi"))
        await api.made("/api/executions", {"evalId": made["id"]})
        run = (await api.found("/api/runs"))["items"][0]
        assert (await api("POST", f"/api/runs/{run['id']}/rescore")).status == 409


class TestTalkingToAnAgent:
    async def test_a_connector_is_tested_and_invoked(self, api: Api) -> None:
        async with AgentServer(says("Hello to you")) as agent:
            made = await api.made(
                "/api/connectors",
                {"name": "live", "type": "http", "baseUrl": agent.url, "config": {"responsePath": "message"}},
            )
            tested = (await api("POST", f"/api/connectors/{made['id']}/test")).json
            assert tested["success"] is True
            assert tested["response"] == "Hello to you"
            assert tested["latencyMs"] > 0
            said = await api(
                "POST",
                f"/api/connectors/{made['id']}/invoke",
                {"messages": [{"role": "user", "content": "Hi"}]},
            )
            assert said.json["success"] is True
            assert said.json["messages"][0]["content"] == "Hello to you"
        gone = (await api("POST", f"/api/connectors/{made['id']}/test")).json
        assert gone["success"] is False
        assert "nothing listens there" in gone["error"]

    async def test_what_the_agent_hands_back_is_read_as_in_a_run(self, api: Api) -> None:
        answers = [
            Answer(json={"success": False, "error": "no beds left", "messages": ["Fine."]}),
            says(""),
            Answer(
                json={"message": {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}, "usage": {}}
            ),
        ]
        async with AgentServer(answers) as agent:
            made = await api.made("/api/connectors", {"name": "odd", "type": "http", "baseUrl": agent.url})
            failed = (await api("POST", f"/api/connectors/{made['id']}/test")).json
            assert (failed["success"], "no beds left" in failed["error"]) == (False, True)
            invoke = f"/api/connectors/{made['id']}/invoke"
            asked = {"messages": [{"role": "human", "parts": [{"text": "Hi"}]}]}
            empty = (await api("POST", invoke, asked)).json
            assert (empty["success"], "neither text nor a tool call" in empty["error"]) == (False, True)
            said = (await api("POST", invoke, asked)).json
            assert said["messages"][0]["tool_calls"][0]["function"]["name"] == "f"
            assert (said["tokensUsage"], said["usageMissing"]) == (
                None,
                "the token usage holds no count that is known: {}",
            )
            assert agent.last.body["messages"] == [
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
            ]
            refused = await api(
                "POST", invoke, {"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]}
            )
            assert (refused.status, "without the name of its tool" in refused.text) == (422, True)


class TestFigures:
    async def test_rates_have_intervals_and_leave_errors_out(self, busy: Api) -> None:
        made = await eval_of(
            busy,
            scripted("passes", "hi", tags=["Smoke", "quick"]),
            scripted("fails", "hi", pattern="nothing", tags=["smoke"]),
            scripted("breaks", "break"),
            repetitions=2,
        )
        started = await busy.made("/api/executions", {"evalId": made["id"]})
        await busy.finished(started["id"])
        [trend] = await busy.found(f"/api/stats/executions?evalId={made['id']}")
        assert trend["id"] == started["id"]
        scored, attempted = trend["passRateOfScored"], trend["passRateOfAttempted"]
        assert (scored["passed"], scored["of"], scored["rate"]) == (2, 4, 0.5)
        assert (attempted["passed"], attempted["of"]) == (2, 6)
        assert 0 < scored["low"] < 0.5 < scored["high"] < 1

        by_scenario = {item["name"]: item for item in await busy.found("/api/stats/scenario")}
        assert by_scenario["passes"]["passRateOfScored"]["rate"] == 1
        assert by_scenario["breaks"]["passRateOfScored"]["rate"] is None
        assert len(await busy.found("/api/stats/connector")) == 1
        quick, smoke, untagged = await busy.found("/api/stats/tag")
        assert (quick["name"], smoke["name"].casefold(), untagged["name"]) == ("quick", "smoke", None)
        assert [one["counts"]["total"] for one in (quick, smoke, untagged)] == [2, 4, 2]
        assert smoke["passRateOfScored"] == scored
        means = [by_scenario[name]["meanLatencyMs"] for name in ("passes", "fails")]
        assert smoke["meanLatencyMs"] == pytest.approx(sum(means) / 2)
        assert (smoke["meanScore"], untagged["counts"]["errored"]) == (0.5, 2)
        assert (await busy("GET", "/api/stats/nonsense")).status == 422
        slowest = await busy.found("/api/stats/scenario?slowest=2")
        assert len(slowest) == 2
        assert slowest[0]["meanLatencyMs"] >= slowest[1]["meanLatencyMs"]

        summary = await busy.found(f"/api/stats/executions/{started['id']}")
        assert summary["counts"] == (await busy.found(f"/api/executions/{started['id']}"))["counts"]
        assert summary["counts"]["standing"] == "fail"
        assert (summary["passRateOfScored"], summary["passRateOfAttempted"]) == (scored, attempted)
        assert summary["errorsByFault"] == {"agent": 2}
        assert (summary["flaky"], summary["flakyRuns"]) == ([], 0)
        assert await busy.found("/api/stats/flaky") == []
        assert (await busy("GET", "/api/stats/executions/nowhere")).status == 404

        matrix = await busy.found(f"/api/stats/matrix?evalId={made['id']}")
        assert [row["scenarioName"] for row in matrix["rows"]] == ["breaks", "fails", "passes"]
        assert matrix["rows"][2]["cells"][0]["counts"]["passed"] == 2


class TestRecordedScoring:
    async def test_one_response_is_scored_and_kept(self, api: Api) -> None:
        body = {
            "input": {"response": "The refund is on its way", "agentId": "a1", "groundTruth": "refund"},
            "config": {
                "evaluatorConfigs": [
                    {
                        "type": "KeywordCoverage",
                        "config": {"expectedKeywords": ["refund"], "criterionName": "kept"},
                    }
                ],
                "criteria": [{"name": "kept", "scale": "binary"}],
            },
        }
        made = await api.made("/api/evaluations", body)
        assert made["overallScore"] == 1
        assert made["results"][0]["evaluatorType"] == "KeywordCoverage"
        assert await api.found(f"/api/evaluations/{made['id']}") == made
        listed = (await api.found("/api/evaluations?agentId=a1"))["items"]
        assert [item["id"] for item in listed] == [made["id"]]
        assert (await api.found("/api/evaluations?agentId=other"))["items"] == []

    async def test_many_are_scored_in_order(self, api: Api) -> None:
        inputs = [{"response": f"answer {number}"} for number in range(20)]
        config = {"evaluatorConfigs": [{"type": "regex", "config": {"pattern": "answer 7$"}}]}
        made = await api.made("/api/evaluations/batch", {"inputs": inputs, "config": config})
        assert [item["success"] for item in made["items"]] == [number == 7 for number in range(20)]

    async def test_the_same_request_is_scored_once(self, api: Api) -> None:
        config = {"evaluatorConfigs": [{"type": "regex", "config": {"pattern": "x"}}]}
        one, key = {"input": {"response": "x"}, "config": config}, {"Idempotency-Key": "once"}
        answers = [await api("POST", "/api/evaluations", one, headers=key) for _ in range(2)]
        assert answers[0].json == answers[1].json
        other = {**one, "input": {"response": "y"}}
        assert (await api("POST", "/api/evaluations", other, headers=key)).status == 422
        many = {"inputs": [{"response": "x"}] * 3, "config": config}
        key = {"Idempotency-Key": "many"}
        answers = [await api("POST", "/api/evaluations/batch", many, headers=key) for _ in range(2)]
        assert answers[0].json == answers[1].json
        assert len({item["id"] for item in answers[0].json["items"]}) == 3
        assert len((await api.found("/api/evaluations"))["items"]) == 4

    async def test_a_wrong_config_names_its_place(self, api: Api) -> None:
        config = {"evaluatorConfigs": [{"type": "regex", "config": {"pattern": 7}}]}
        answer = await api("POST", "/api/evaluations", {"input": {"response": "x"}, "config": config})
        assert answer.status == 422
        assert "pattern" in answer.error["details"][0]["path"]

    async def test_nothing_asserted_is_unasserted_and_found_as_such(self, api: Api) -> None:
        config = {"evaluatorConfigs": [{"type": "response-length"}]}
        made = await api.made("/api/evaluations", {"input": {"response": "x"}, "config": config})
        assert (made["outcome"], made["success"]) == ("unasserted", False)
        assert made["evaluatorResults"] == [
            {
                "name": "response-length",
                "type": "response-length",
                "kind": "metric",
                "outcome": "measured",
                "success": None,
                "value": 1.0,
                "threshold": None,
            }
        ]
        listed = (await api.found("/api/evaluations?outcome=unasserted"))["items"]
        assert [item["id"] for item in listed] == [made["id"]]
        assert (await api.found("/api/evaluations?outcome=pass"))["items"] == []

    async def test_a_misspelled_criterion_is_refused_before_anything_is_kept(self, api: Api) -> None:
        entry = {"type": "regex", "config": {"pattern": "x", "criterionName": "tnoe"}}
        config = {"evaluatorConfigs": [entry], "criteria": [{"name": "tone"}]}
        own = {"response": "x", "criteria": [{"name": "tnoe"}]}
        one = {"input": {"response": "x"}, "config": config}
        many = {"inputs": [own, {"response": "x"}], "config": config}
        for path, body in (("/api/evaluations", one), ("/api/evaluations/batch", many)):
            answer = await api("POST", path, body)
            assert answer.status == 422
            assert "did you mean tone?" in json.dumps(answer.error)
        assert (await api.found("/api/evaluations"))["items"] == []


class TestFeedback:
    async def test_is_kept_with_a_run_or_an_evaluation(self, api: Api) -> None:
        config = {"evaluatorConfigs": [{"type": "regex", "config": {"pattern": "x"}}]}
        made = await api.made("/api/evaluations", {"input": {"response": "x"}, "config": config})
        said = {"evaluationId": made["id"], "score": True, "comment": "right", "author": "Bo"}
        kept = await api.made("/api/feedback", said)
        assert said.items() <= kept.items()
        assert (await api.found(f"/api/feedback?evaluationId={made['id']}"))["items"] == [kept]
        assert (await api.found("/api/feedback"))["items"] == [kept]
        assert (await api.found("/api/feedback?runId=other"))["items"] == []

    async def test_is_kept_once_per_key(self, api: Api) -> None:
        config = {"evaluatorConfigs": [{"type": "regex", "config": {"pattern": "x"}}]}
        made = await api.made("/api/evaluations", {"input": {"response": "x"}, "config": config})
        said, key = {"evaluationId": made["id"], "score": 1}, {"Idempotency-Key": "abc"}
        answers = [await api("POST", "/api/feedback", said, headers=key) for _ in range(3)]
        assert [answer.status for answer in answers] == [201] * 3
        assert answers[0].json == answers[2].json
        assert len((await api.found("/api/feedback"))["items"]) == 1
        assert (await api("POST", "/api/feedback", {**said, "score": 0}, headers=key)).status == 422

    async def test_is_about_one_thing_and_says_something(self, api: Api) -> None:
        both = {"runId": "x", "evaluationId": "y", "score": 1}
        for body in ({"score": 1}, both, {"runId": "x"}, {"runId": "../x", "score": 1}):
            assert (await api("POST", "/api/feedback", body)).status == 422, body

    async def test_on_nothing_is_not_found(self, api: Api) -> None:
        assert (await api("POST", "/api/feedback", {"runId": "nope", "score": 1})).status == 404
