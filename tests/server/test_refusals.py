"""What the API refuses is told with places in the request and in words that need no knowledge of its code."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.support.api_server import Api

REGEX = {"type": "regex", "config": {"pattern": "a"}}
# Words of the libraries that check requests, which nobody who sends one has heard of.
JARGON = re.compile(
    r"function-|is-instance|lax-or-strict|Input |String |List |Dictionary |after validation|Value error|tag "
    r"|discriminator|pydantic|model_type|Entry\b|EvaluatorUse"
)
PLACE = re.compile(r"(?:[A-Za-z_][\w-]*|\[\d+\]|\.)*")

BODIES: dict[str, list[tuple[Any, list[str]]]] = {
    "/api/scenarios": [
        ([], [""]),
        ({"name": 3, "script": "x"}, ["name", "script"]),
        ({"name": "a", "script": [1, None, " "]}, ["script[0]", "script[1]", "script[2]"]),
        (
            {"name": "a", "evaluators": [3, None, {"typ": "regex"}, {"type": "regex", "gate": "never"}]},
            [f"evaluators{part}" for part in ("[0]", "[1]", "[2].type", "[2].typ", "[3].gate")],
        ),
        (
            {"name": "a", "evaluators": [{"type": "regex", "config": [], "naem": "x"}]},
            ["evaluators[0].config", "evaluators[0].naem"],
        ),
        ({"name": "a", "cases": 3, "evaluators": [REGEX]}, ["cases"]),
        ({"name": "a", "cases": [{"vars": []}], "evaluators": [REGEX]}, ["cases[0].vars"]),
        (
            {"name": "a", "messages": [{"role": 1}, {"content": [{"type": 3}]}]},
            ["messages[0].role", "messages[1].role", "messages[1].content[0].type"],
        ),
        (
            {"name": "a", "tags": [""], "maxMessages": "ten", "stopOnFailure": "maybe"},
            ["maxMessages", "stopOnFailure", "tags[0]"],
        ),
        (
            {
                "name": "a",
                "script": ["x"],
                "evaluators": [
                    {
                        "type": "rule-based",
                        "config": {"rules": [{"type": "regx"}, {}, {"type": "length", "min": "a"}]},
                    },
                    {"type": "tool-usage", "config": {"rules": [{"tool": 1, "minCalls": -1}]}},
                ],
            },
            [
                "evaluators[0].config.rules[0].type",
                "evaluators[0].config.rules[1].type",
                "evaluators[0].config.rules[2].min",
                "evaluators[1].config.rules[0].tool",
                "evaluators[1].config.rules[0].minCalls",
            ],
        ),
    ],
    "/api/personas": [({"name": "a", "headers": {"x": 1}, "knowz": ""}, ["headers.x", "knowz"])],
    "/api/connectors": [
        (
            {"name": "a", "type": "http", "baseUrl": "http://x", "config": {"method": "FETCH", "path": 3}},
            ["config.method", "config.path"],
        ),
    ],
    "/api/evals": [
        (
            {"name": "a", "scenarioIds": [], "connectorIds": "x", "repetitions": 0},
            ["scenarioIds", "connectorIds", "repetitions"],
        ),
    ],
    "/api/executions": [({"evalId": "no!", "labels": []}, ["evalId", "labels"])],
    "/api/runs": [({"scenarioId": 1, "caseName": ""}, ["scenarioId", "connectorId", "caseName"])],
    "/api/evaluations": [
        (
            {"input": {"response": {"role": 3}, "latencyMs": -1}, "config": {"evaluatorConfigs": []}},
            ["input.response", "input.latencyMs", "config.evaluatorConfigs"],
        ),
        (
            {
                "input": {"response": "x"},
                "config": {"evaluatorConfigs": [{"type": "regx"}, {**REGEX, "gate": "x"}]},
            },
            ["config.evaluatorConfigs[0].type", "config.evaluatorConfigs[1].gate"],
        ),
    ],
    "/api/evaluations/batch": [
        (
            {"inputs": [{"response": "x"}, 3, {"respons": "x"}], "config": {"evaluatorConfigs": [REGEX]}},
            ["inputs[1]", "inputs[2].response", "inputs[2].respons"],
        )
    ],
    "/api/feedback": [({"runId": "x", "score": [], "comment": ""}, ["score", "comment"])],
    "/api/evaluator-types/gates": [({"evaluators": [{"type": 3}]}, ["evaluators[0].type"])],
}
CASES = [(path, body, places) for path, bodies in BODIES.items() for body, places in bodies]


@pytest.mark.parametrize(("path", "body", "places"), CASES)
async def test_everything_wrong_is_told_where_it_is(
    api: Api, path: str, body: Any, places: list[str]
) -> None:
    answer = await api("POST", path, body)
    assert answer.status == 422
    assert sorted(one["path"] for one in answer.error["details"]) == sorted(places)
    for one in answer.error["details"]:
        assert PLACE.fullmatch(one["path"])
        assert not JARGON.search(one["message"] + one["hint"]), one


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("runs?limit=0", "query.limit"),
        ("runs?status=x", "query.status"),
        ("runs?since=yesterday", "query.since"),
        ("runs/!!", "path.id"),
        ("events?after=x", "query.after"),
        ("scenarios?tag=", "query.tag[0]"),
    ],
)
async def test_queries_too(api: Api, query: str, place: str) -> None:
    answer = await api("GET", f"/api/{query}")
    (one,) = answer.error["details"]
    assert one["path"] == place
    assert not JARGON.search(one["message"])


async def test_a_value_that_may_be_several_things_is_told_all_of_them(api: Api) -> None:
    answer = await api("POST", "/api/feedback", {"runId": "x", "score": []})
    assert answer.error["details"][0]["message"] == "expected true or false, a number or text"


async def test_a_choice_of_shapes_is_told_by_its_names(api: Api) -> None:
    rules = {"type": "rule-based", "config": {"rules": [{"type": "regx"}]}}
    answer = await api("POST", "/api/scenarios", {"name": "a", "script": ["x"], "evaluators": [rules]})
    (one,) = answer.error["details"]
    assert one["message"].startswith('"regx" is not one of regex, length')
    assert one["hint"] == "did you mean regex?"


class TestGates:
    async def test_are_those_the_configs_yield(self, api: Api) -> None:
        entries = [
            REGEX,
            {"type": "regex", "config": {"pattern": "a", "mustMatch": False}},
            {"type": "json-schema", "config": {"schema": {}, "onlyFinal": True}},
            {"type": "regex", "config": {"pattern": "a", "mustMatch": False}, "gate": "finally"},
            {"type": "regex", "config": {"pattern": "["}},
            {"type": "nobody-knows-it"},
            {"type": "latency-budget", "config": {"maxMs": "{{most}}"}},
        ]
        answer = await api("POST", "/api/evaluator-types/gates", {"evaluators": entries})
        expected = ["eventually", "always", "finally", "finally", None, None, "always"]
        assert answer.json == {"gates": expected}

    async def test_a_type_says_whether_its_gate_depends_on_its_config(self, api: Api) -> None:
        types = {one["type"]: one["gateByConfig"] for one in await api.found("/api/evaluator-types")}
        assert types["regex"]
        assert not types["latency-budget"]
