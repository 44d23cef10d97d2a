"""Personas, scenarios, connectors and evals over the API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import Api

PERSONA = {"name": "Ada", "description": "a patient person", "wants": "a table for two"}
SCENARIO = {
    "name": "Book a table",
    "script": ["A table for two, please"],
    "evaluators": [{"type": "regex", "config": {"pattern": "table"}}],
    "tags": ["booking"],
}
WRONG_SCENARIO = {
    "name": "Wrong",
    "script": ["{{city}} and {{country}}"],
    "cases": [{"name": "rome", "vars": {"town": "Rome"}}],
    "evaluators": [
        {"type": "regex", "config": {"patern": "x"}},
        {"type": "latancy"},
        {"type": "latency-budget", "config": {"maxMs": "fast"}},
    ],
}
CONNECTOR = {"name": "Agent", "type": "http", "baseUrl": "http://127.0.0.1:9"}


class TestTheWayOfADefinition:
    @pytest.mark.parametrize(
        ("path", "body", "change"),
        [
            ("/api/personas", PERSONA, {"description": "an impatient person"}),
            ("/api/scenarios", SCENARIO, {"maxMessages": 4}),
            ("/api/connectors", CONNECTOR, {"config": {"path": "/chat"}}),
        ],
    )
    async def test_made_read_changed_and_deleted(
        self, api: Api, path: str, body: dict[str, Any], change: dict[str, Any]
    ) -> None:
        made = await api.made(path, body)
        assert body.items() <= {key: made[key] for key in body}.items() or made["name"] == body["name"]
        assert made["version"] == 1
        where = f"{path}/{made['id']}"
        assert await api.found(where) == made

        changed = await api("PUT", where, {**body, **change})
        assert changed.status == 200, changed.text
        assert changed.json["version"] == 2
        assert changed.headers["ETag"] == '"v2"'
        assert changed.json["createdAt"] == made["createdAt"]

        assert (await api("DELETE", where)).status == 204
        assert (await api("GET", where)).status == 404
        assert (await api("DELETE", where)).status == 404
        assert (await api("PUT", where, body)).status == 404

    async def test_an_eval_names_what_exists(self, api: Api) -> None:
        scenario = await api.made("/api/scenarios", SCENARIO)
        connector = await api.made("/api/connectors", CONNECTOR)
        made = await api.made(
            "/api/evals",
            {"name": "Nightly", "scenarioIds": [scenario["id"]], "connectorId": connector["id"]},
        )
        assert made["connectorIds"] == [connector["id"]]

        wrong = await api(
            "POST", "/api/evals", {"name": "x", "scenarioIds": ["nope"], "connectorIds": [connector["id"]]}
        )
        assert wrong.status == 422
        assert wrong.error["message"] == 'scenarioIds: there is no scenario "nope"'

        used = await api("DELETE", f"/api/scenarios/{scenario['id']}")
        assert used.status == 409
        assert "Nightly" in used.error["message"]

    async def test_names_are_unique_whatever_their_case(self, api: Api) -> None:
        await api.made("/api/personas", PERSONA)
        again = await api("POST", "/api/personas", {"name": "aDA"})
        assert again.status == 409
        assert again.error["code"] == "conflict"

    async def test_unicode_survives(self, api: Api) -> None:
        made = await api.made("/api/personas", {"name": "Zoë 🦊", "description": "مرحبا\n\u2028"})
        assert (await api.found(f"/api/personas/{made['id']}"))["description"] == "مرحبا\n\u2028"


class TestValidation:
    async def test_names_the_entry_and_the_path_inside_its_config(self, api: Api) -> None:
        body = {
            **SCENARIO,
            "evaluators": [SCENARIO["evaluators"][0], {"type": "regex", "config": {"pattern": 7}}],
        }
        answer = await api("POST", "/api/scenarios", body)
        assert answer.status == 422
        assert answer.error["code"] == "invalid"
        assert answer.error["details"][0]["path"] == "evaluators[1].config.pattern"
        assert answer.error["message"].startswith("evaluators[1].config.pattern: ")

    async def test_tells_everything_that_is_wrong_at_once_and_each_with_its_path(self, api: Api) -> None:
        answer = await api("POST", "/api/scenarios", WRONG_SCENARIO)
        assert (answer.status, answer.error["code"]) == (422, "invalid")
        assert [(one["path"], one["hint"]) for one in answer.error["details"]] == [
            ("evaluators[0].config.pattern", ""),
            ("evaluators[0].config.patern", "did you mean pattern?"),
            ("evaluators[1].type", "did you mean latency or latency-budget?"),
            ("evaluators[2].config.maxMs", ""),
            ("script[0]", "its values are: town"),
            ("script[0]", "its values are: town"),
        ]
        assert answer.error["details"][4]["message"] == 'case "rome": {{city}} has no value in this case'
        assert answer.error["message"] == "evaluators[0].config.pattern: is missing (and 5 more)"

    async def test_tells_every_wrong_key_of_a_connector(self, api: Api) -> None:
        config = {"paht": "/x", "method": "BREW", "timeoutt": 1}
        body = {"name": "x", "type": "http", "config": config, "headers": {"X-A": "${EVALSTUDIO_TOKEN}"}}
        answer = await api("POST", "/api/connectors", {**body, "headers": {}})
        paths = [one["path"] for one in answer.error["details"]]
        assert sorted(paths) == ["baseUrl", "config.method", "config.paht", "config.timeoutt"]
        refused = await api("POST", "/api/connectors", {**CONNECTOR, "headers": body["headers"]})
        assert [one["path"] for one in refused.error["details"]] == ["headers.X-A"]

    async def test_a_body_of_the_wrong_shape_is_told_with_hints_and_without_what_was_sent(
        self, api: Api
    ) -> None:
        body = {**SCENARIO, "maxMesages": 3, "script": ["hi", 5], "cases": [{"vars": "s3cret"}]}
        answer = await api("POST", "/api/scenarios", body)
        details = {one["path"]: one for one in answer.error["details"]}
        assert details["maxMesages"]["hint"].startswith("did you mean maxMessages")
        assert details["script[1]"]["message"] == "expected text"
        assert details["cases[0].vars"]["message"] == "expected named settings"
        assert "s3cret" not in answer.text

    async def test_knows_no_unknown_evaluator_and_guesses_what_was_meant(self, api: Api) -> None:
        body = {**SCENARIO, "evaluators": [{"type": "regexp"}]}
        answer = await api("POST", "/api/scenarios", body)
        assert answer.status == 422
        assert answer.error["details"][0]["path"] == "evaluators[0].type"
        assert "regex" in answer.error["message"]

    async def test_refuses_a_scenario_that_nothing_judges(self, api: Api) -> None:
        answer = await api("POST", "/api/scenarios", {"name": "x", "script": ["hi"]})
        assert answer.status == 422
        assert "nothing judges" in answer.error["message"]

    async def test_refuses_an_unknown_connector_type_and_a_wrong_config(self, api: Api) -> None:
        unknown = await api("POST", "/api/connectors", {"name": "x", "type": "htp"})
        assert unknown.status == 422
        assert "http" in unknown.error["message"]
        wrong = await api("POST", "/api/connectors", {**CONNECTOR, "config": {"method": "BREW"}})
        assert wrong.status == 422
        assert wrong.error["details"][0]["path"] == "config.method"

    async def test_refuses_an_unknown_persona(self, api: Api) -> None:
        answer = await api("POST", "/api/scenarios", {**SCENARIO, "personaIds": ["nobody"]})
        assert answer.status == 422
        assert answer.error["message"] == 'personaIds: there is no persona "nobody"'
        assert answer.error["details"][0]["path"] == "personaIds"

    async def test_what_is_not_json_is_a_bad_request(self, api: Api) -> None:
        halves = [b'"\\ud800"', b'{"name": "\\ud800"}']
        for raw in [b"{", b"[1,2", b'{"name": NaN}', b"\xff\xfe", *halves]:
            answer = await api("POST", "/api/personas", raw=raw, headers={"Content-Type": "application/json"})
            assert (answer.status, answer.error["code"]) == (400, "bad_request"), raw[:20]
        empty = await api("POST", "/api/personas", raw=b"", headers={"Content-Type": "application/json"})
        assert empty.status == 422

    async def test_a_body_that_says_something_twice_is_refused(self, api: Api) -> None:
        raw, kind = b'{"name": "Eve", "name": "Ada"}', {"Content-Type": "application/json"}
        answer = await api("POST", "/api/personas", raw=raw, headers=kind)
        assert (answer.status, answer.error["code"]) == (422, "invalid")
        assert '"name" is there twice' in answer.error["message"]

    async def test_what_has_the_wrong_shape_is_invalid(self, api: Api) -> None:
        for body in (
            [],
            "text",
            7,
            {"name": ""},
            {"name": " "},
            {"nome": "x"},
            {"name": "x", "headers": {"a": 1}},
        ):
            answer = await api("POST", "/api/personas", body)
            assert (answer.status, answer.error["code"]) == (422, "invalid"), body

    async def test_an_unknown_address_and_a_wrong_method_have_the_same_shape(self, api: Api) -> None:
        missing = await api("GET", "/api/nope")
        assert (missing.status, missing.error["code"]) == (404, "not_found")
        wrong = await api("PATCH", "/api/personas", {})
        assert (wrong.status, wrong.error["code"]) == (405, "method_not_allowed")


class TestEditingTogether:
    async def test_a_change_of_an_old_version_is_refused(self, api: Api) -> None:
        made = await api.made("/api/personas", PERSONA)
        where = f"/api/personas/{made['id']}"
        first = await api("PUT", where, {**PERSONA, "knows": "a"}, headers={"If-Match": '"v1"'})
        assert first.status == 200
        second = await api("PUT", where, {**PERSONA, "knows": "b"}, headers={"If-Match": '"v1"'})
        assert second.status == 412
        assert second.error["code"] == "changed_meanwhile"
        assert (await api("DELETE", where, headers={"If-Match": '"v1"'})).status == 412
        assert (await api("PUT", where, PERSONA, headers={"If-Match": "nonsense"})).status == 412
        assert (await api("PUT", where, PERSONA, headers={"If-Match": "*"})).status == 200
        assert (await api("DELETE", where, headers={"If-Match": '"v3"'})).status == 204

    async def test_without_if_match_the_last_one_wins_and_none_is_lost_by_an_error(self, api: Api) -> None:
        made = await api.made("/api/personas", PERSONA)
        where = f"/api/personas/{made['id']}"
        changes = [api("PUT", where, {**PERSONA, "knows": str(number)}) for number in range(4)]
        assert {answer.status for answer in await asyncio.gather(*changes)} == {200}
        assert (await api.found(where))["version"] == 5


class TestIdempotencyKeys:
    async def test_a_repeated_create_makes_one(self, api: Api) -> None:
        key = {"Idempotency-Key": "abc"}
        answers = await asyncio.gather(
            *(api("POST", "/api/personas", PERSONA, headers=key) for _ in range(5))
        )
        assert {answer.status for answer in answers} == {201}
        assert len({answer.json["id"] for answer in answers}) == 1
        assert len((await api.found("/api/personas"))["items"]) == 1

    async def test_the_same_key_for_something_else_is_refused(self, api: Api) -> None:
        key = {"Idempotency-Key": "abc"}
        await api("POST", "/api/personas", PERSONA, headers=key)
        other = await api("POST", "/api/personas", {"name": "Bo"}, headers=key)
        assert other.status == 422
        assert "another request" in other.error["message"]

    async def test_a_key_whose_thing_is_gone_says_so(self, api: Api) -> None:
        key = {"Idempotency-Key": "abc"}
        made = await api("POST", "/api/personas", PERSONA, headers=key)
        await api("DELETE", f"/api/personas/{made.json['id']}")
        again = await api("POST", "/api/personas", PERSONA, headers=key)
        assert again.status == 409
        assert "deleted" in again.error["message"]


class TestLists:
    async def test_are_paged_by_cursor_newest_first(self, api: Api) -> None:
        names = [f"p{number}" for number in range(7)]
        for name in names:
            await api.made("/api/personas", {"name": name})
        seen: list[str] = []
        cursor = ""
        while True:
            page = await api.found(f"/api/personas?limit=3{cursor}")
            seen += [item["name"] for item in page["items"]]
            if page["cursor"] is None:
                break
            cursor = f"&cursor={page['cursor']}"
        assert seen == names[::-1]

    async def test_are_narrowed_by_text_and_tags(self, api: Api) -> None:
        await api.made("/api/scenarios", SCENARIO)
        await api.made("/api/scenarios", {**SCENARIO, "name": "Cancel it", "tags": ["booking", "slow"]})
        assert len((await api.found("/api/scenarios?text=cancel"))["items"]) == 1
        assert len((await api.found("/api/scenarios?tag=booking"))["items"]) == 2
        assert len((await api.found("/api/scenarios?tag=booking&tag=slow"))["items"]) == 1
        assert len((await api.found("/api/scenarios?since=2099-01-01T00:00:00Z"))["items"]) == 0

    async def test_refuse_nonsense(self, api: Api) -> None:
        far = "since=0001-01-01T00:00:00%2B14:00"
        for query in ("limit=0", "limit=100000", "limit=x", "since=yesterday", far):
            assert (await api("GET", f"/api/personas?{query}")).status == 422, query

    async def test_refuse_a_cursor_they_did_not_hand_out(self, api: Api) -> None:
        answer = await api("GET", "/api/personas?cursor=%00%F0")
        assert answer.status == 400
        assert "cursor" in answer.error["message"]


class TestTypes:
    async def test_evaluator_types_have_schema_kind_and_origin(self, api: Api) -> None:
        types = {item["type"]: item for item in await api.found("/api/evaluator-types")}
        assert types["tool-call-count"]["kind"] == "metric"
        assert types["tool-call-count"]["builtin"] is True
        assert "pattern" in types["regex"]["configSchema"]["properties"]

    async def test_connector_types_hold_those_of_plugins(self, api: Api) -> None:
        types = {item["type"]: item for item in await api.found("/api/connectors/types")}
        assert types["test-agent"]["builtin"] is False
        assert types["http"]["builtin"] is True
        plugins = await api.found("/api/plugins")
        assert plugins[0]["name"] == "./agent.py"
        assert plugins[0]["connectors"] == ["test-agent"]

    async def test_providers_are_listed_without_keys(self, tmp_path: Path) -> None:
        from tests.support.api_server import serving
        from tests.support.projects import make_project

        settings = {"provider": "mine", "apiKey": "sk-secret", "baseUrl": "http://u:pw@127.0.0.1:1/v1"}
        async with serving(make_project(tmp_path, [], llmSettings=settings)) as api:
            answer = await api("GET", "/api/llm/providers")
            assert answer.json["items"][0]["name"] == "mine"
            assert answer.json["items"][0]["hasKey"] is True
            assert "sk-secret" not in answer.text
            assert "pw" not in answer.text

    async def test_the_prompt_of_the_simulated_user_can_be_read(self, api: Api) -> None:
        persona = await api.made("/api/personas", PERSONA)
        scenario = await api.made("/api/scenarios", {**SCENARIO, "instructions": "You are hungry"})
        found = await api.found(f"/api/scenarios/{scenario['id']}/prompt?personaId={persona['id']}")
        assert "You are Ada" in found["prompt"]
        assert "You are hungry" in found["prompt"]


async def test_cases_are_read_from_the_text_of_a_file_and_not_stored(api: Api) -> None:
    read = await api("POST", "/api/cases", {"name": "x.csv", "text": "name,city\na,Rome\n,Bern\n"})
    assert read.status == 200, read.text
    assert [(one["name"], one["vars"]) for one in read.json] == [
        ("a", {"city": "Rome"}),
        (None, {"city": "Bern"}),
    ]
    lines = '{"city": 3, "groundTruth": "x"}\n'
    (only,) = (await api("POST", "/api/cases", {"name": "x.jsonl", "text": lines})).json
    assert (only["vars"], only["groundTruth"]) == ({"city": 3}, "x")
    for name, text, message in (
        ("x.csv", "a,b\n1\n", "x.csv:2"),
        ("x.jsonl", "{", "x.jsonl:1"),
        ("/etc/passwd", "a", "cases are read from"),
        ("x.csv", "name\na\na\n", 'two cases are called "a"'),
        ("x.csv", "", "has no cases"),
    ):
        refused = await api("POST", "/api/cases", {"name": name, "text": text})
        assert refused.status == 422, refused.text
        assert message in refused.text.replace("\\", ""), refused.text
