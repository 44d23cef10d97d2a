"""The examples of the paper on custom connectors and plugins, as a Python user writes them."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.spec_examples.project import CONFIG, FOLDER, booking_agent, registry
from tests.support.api_server import serving
from tests.support.models import ScriptedLlm
from tests.support.plugin_files import write_distribution, write_project
from tests.support.projects import make_project

import evalstudio
from evalstudio import ConnectorContext, EvaluatorContext, define_connector, define_evaluator, load_plugins
from evalstudio import run_scenario as run
from evalstudio.base.problems import InvalidInput
from evalstudio.project.config import read_config

CHECK = {"type": "availability-check", "config": {"apiUrl": "https://slots.example"}}


async def asked(text: str, *evaluators: Any, agent: Any = None, **fields: Any) -> Any:
    scenario = {"name": "Slots", "script": [text], "evaluators": list(evaluators), **fields}
    return await run(scenario, agent or booking_agent(), registry=registry())


class TestTheProject:
    def test_its_config_names_plugins_and_models(self) -> None:
        config = read_config(CONFIG)
        assert config.name == "booking-agent-evals"
        assert config.llm_settings is not None
        assert config.llm_settings.models.evaluation == "gpt-4o"
        assert config.llm_settings.models.persona == "gpt-4o-mini"

    def test_its_plugins_are_there(self) -> None:
        known = registry()
        assert known.get_connector("booking-agent") is not None
        assert known.get_evaluator("availability-check") is not None


class TestTheConnector:
    async def test_it_carries_the_conversation_to_the_agent(self) -> None:
        result = await asked("Who are you?", {"type": "regex", "config": {"pattern": "Welcome"}})
        assert (result.outcome, result.messages[-1].text) == ("pass", "Welcome to staging in eu-west-1.")
        assert result.turns[0].latency_ms is not None

    async def test_its_config_has_defaults_and_is_checked(self) -> None:
        match_all = {"type": "regex", "config": {"pattern": "."}}
        config = {"environment": "production", "region": "us-east-1"}
        result = await asked("Who are you?", match_all, agent=booking_agent(config=config))
        assert result.messages[-1].text == "Welcome to production in us-east-1."
        with pytest.raises(InvalidInput, match="environment"):
            await asked("Hi", match_all, agent=booking_agent(config={"environment": "moon"}))

    async def test_what_it_raises_is_the_agents_fault(self) -> None:
        result = await asked("Hi", CHECK, agent=booking_agent(headers={}))
        assert (result.outcome, result.fault) == ("error", "agent")
        assert "no API key" in result.reason

    async def test_it_appears_among_the_types_and_can_be_tested(self, tmp_path: Path) -> None:
        shutil.copytree(FOLDER, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
        async with serving(tmp_path / "project" / "evalstudio.config.json") as api:
            types = {item["type"]: item for item in await api.found("/api/connectors/types")}
            assert (types["http"]["builtin"], types["langgraph"]["builtin"]) == (True, True)
            mine = types["booking-agent"]
            assert (mine["label"], mine["builtin"]) == ("Booking Agent", False)
            assert mine["configSchema"]["properties"]["region"]["enum"] == ["eu-west-1", "us-east-1"]
            assert mine["description"] == "Connects to the Booking Agent via its native SDK."

            healthy = await api.made("/api/connectors", {"name": "good", **booking_agent()})
            answer = (await api("POST", f"/api/connectors/{healthy['id']}/test")).json
            assert (answer["success"], answer["response"]) == (True, "Agent v2.1 healthy")
            sick = booking_agent(name="sick", headers={"x-api-key": "bad"})
            made = await api.made("/api/connectors", sick)
            answer = (await api("POST", f"/api/connectors/{made['id']}/test")).json
            assert answer["success"] is False
            assert "wrong key" in answer["error"]
            wrong = booking_agent(name="wrong", config={"environment": "moon"})
            assert (await api("POST", "/api/connectors", wrong)).status in (400, 422)

            plugins = json.dumps(await api.found("/api/plugins"))
            assert "booking-agent" in plugins
            assert "availability-check" in plugins

    async def test_a_failed_call_as_an_object_is_the_agents_fault(self) -> None:
        @define_connector(type="failing-agent")
        async def failing(ctx: ConnectorContext) -> Any:
            return {"success": False, "error": "the agent is asleep", "latencyMs": 12, "messages": []}

        known = registry()
        known.register(failing)
        never = {"type": "regex", "config": {"pattern": "refund", "mustMatch": False}}
        scenario = {"name": "s", "script": ["Hi"], "evaluators": [never]}
        result = await run(scenario, {"type": "failing-agent"}, registry=known)
        assert (result.outcome, result.fault) == ("error", "agent")

    async def test_a_failed_call_as_an_object_says_what_the_agent_said(self) -> None:
        @define_connector(type="failing-agent")
        async def failing(ctx: ConnectorContext) -> Any:
            said = [{"role": "assistant", "content": "partly"}]
            return {"success": False, "error": "the agent is asleep", "latencyMs": 12, "messages": said}

        known = registry()
        known.register(failing)
        never = {"type": "regex", "config": {"pattern": "refund", "mustMatch": False}}
        scenario = {"name": "s", "script": ["Hi"], "evaluators": [never]}
        result = await run(scenario, {"type": "failing-agent"}, registry=known)
        assert (result.outcome, result.fault) == ("error", "agent")
        assert "the agent is asleep" in result.reason

    async def test_a_call_that_succeeded_as_an_object_is_an_answer(self) -> None:
        @define_connector(type="object-agent")
        async def answering(ctx: ConnectorContext) -> Any:
            return {"success": True, "latencyMs": 12, "messages": [{"role": "assistant", "content": "Hello"}]}

        known = registry()
        known.register(answering)
        scenario = {"name": "s", "script": ["Hi"], "evaluators": [{"type": "greeting-check"}]}
        result = await run(scenario, {"type": "object-agent"}, registry=known)
        assert (result.outcome, result.turns[0].latency_ms) == ("pass", 12)

    @pytest.mark.parametrize("healthy", [True, False])
    async def test_a_test_may_answer_as_an_object(self, tmp_path: Path, healthy: bool) -> None:
        source = (
            "from evalstudio import define_connector\n\n\n"
            '@define_connector(type="object-tested")\n'
            "def object_tested(ctx):\n"
            '    return "Hello"\n\n\n'
            "@object_tested.test\n"
            "def health(ctx):\n"
            f"    if {healthy}:\n"
            '        return {"success": True, "latencyMs": 3, "response": "Agent v2.1 healthy"}\n'
            '    return {"success": False, "latencyMs": 3, "error": "down for maintenance"}\n'
        )
        config = write_project(tmp_path / "p", ["./agent.py"], {"agent.py": source})
        async with serving(config) as api:
            made = await api.made("/api/connectors", {"name": "agent", "type": "object-tested"})
            answer = (await api("POST", f"/api/connectors/{made['id']}/test")).json
        assert answer["success"] is healthy
        assert answer["response" if healthy else "error"].endswith(
            "Agent v2.1 healthy" if healthy else "down for maintenance"
        )


class TestTheEvaluator:
    async def test_claims_that_are_true_pass_with_a_score_of_one(self) -> None:
        result = await asked("What is free?", CHECK)
        assert (result.outcome, result.score) == ("pass", 1)
        finding = next(f for f in result.evaluator_results if f.type == "availability-check")
        assert finding.reason == "All 1 availability claims verified"

    async def test_claims_that_are_false_fail_with_the_share_that_is_true(self) -> None:
        result = await asked("Do you have any?", CHECK)
        assert (result.outcome, result.score) == ("fail", 0.5)
        assert result.reason == (
            "Agent claimed availability for slots that are not available: 2026-05-02 09:00"
        )
        finding = next(f for f in result.evaluator_results if f.type == "availability-check")
        assert finding.metadata == {"claimsChecked": 2, "incorrectSlots": ["2026-05-02 09:00"]}

    async def test_without_claims_there_is_nothing_to_check(self) -> None:
        assert (await asked("Hello", CHECK)).outcome == "pass"

    async def test_its_config_is_required(self) -> None:
        with pytest.raises(InvalidInput, match="apiUrl"):
            await asked("Hello", {"type": "availability-check"})

    async def test_the_same_with_a_dict_and_a_score(self) -> None:
        @define_evaluator(type="dict-availability")
        async def checked(ctx: EvaluatorContext) -> Any:
            wrong = ["2026-05-02 09:00"]
            return {
                "success": False,
                "score": 0.5,
                "reason": f"Agent claimed availability for slots that are not available: {', '.join(wrong)}",
                "metadata": {"claimsChecked": 2, "incorrectSlots": wrong},
            }

        result = await asked("Do you have any?", checked)
        assert (result.outcome, result.score) == ("fail", 0.5)
        finding = next(f for f in result.evaluator_results if f.type == "dict-availability")
        assert finding.metadata == {"claimsChecked": 2, "incorrectSlots": ["2026-05-02 09:00"]}


BUILT_IN: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "latency-budget", "config": {"maxMs": 3000}}, "pass", "Hello"),
    ({"type": "latency-budget", "config": {"maxMs": 5}}, "fail", "Hello"),
    ({"type": "regex", "config": {"pattern": "bk-\\d{5}", "flags": "i"}}, "pass", "It is BK-12345"),
    ({"type": "regex", "config": {"pattern": "BK-\\d{5}"}}, "fail", "No reference"),
    ({"type": "regex", "config": {"pattern": "sorry", "mustMatch": False}}, "fail", "I am sorry"),
    ({"type": "regex", "config": {"pattern": "sorry", "mustMatch": False}}, "pass", "Gladly"),
    (
        {"type": "json-schema", "config": {"schema": {"type": "object", "required": ["id"]}}},
        "pass",
        '{"id": 1}',
    ),
    ({"type": "json-schema", "config": {"schema": {"type": "object", "required": ["id"]}}}, "fail", "{}"),
    ({"type": "json-schema", "config": {"schema": {"type": "object"}, "onlyFinal": True}}, "fail", "no JSON"),
    ({"type": "token-budget", "config": {"maxTokens": 1000}}, "pass", "Hello"),
    ({"type": "token-budget", "config": {"maxTokens": 100}}, "fail", "Hello"),
]


@pytest.mark.parametrize(("use", "outcome", "text"), BUILT_IN)
async def test_the_built_in_evaluators_of_the_table(use: dict[str, Any], outcome: str, text: str) -> None:
    @define_connector(type="metered-agent")
    def metered(ctx: ConnectorContext) -> Any:
        return evalstudio.ConnectorResponse(
            [{"role": "assistant", "content": text}],
            latency_ms=20,
            tokens_usage={"input_tokens": 400, "output_tokens": 56, "total_tokens": 456},
        )

    known = registry()
    known.register(metered)
    scenario = {"name": "s", "script": ["Hi"], "evaluators": [use]}
    assert (await run(scenario, {"type": "metered-agent"}, registry=known)).outcome == outcome


CRITERIA = {"successCriteria": "Booked", "failureCriteria": "Rude", "failureCriteriaMode": "every_turn"}


class TestAllMustPass:
    async def judged(self, success: bool, failure: bool, *evaluators: Any) -> Any:
        reply = {"reasoning": "Because.", "success_met": success, "failure_met": failure}
        scenario = {"name": "s", "script": ["Hi"], **CRITERIA, "evaluators": list(evaluators)}
        return await run(scenario, lambda messages: "BK-12345", llm=ScriptedLlm(judge=[reply]))

    async def test_criteria_and_evaluators_together(self) -> None:
        good, bad = (
            {"type": "regex", "config": {"pattern": "BK"}},
            {"type": "regex", "config": {"pattern": "XX"}},
        )
        assert (await self.judged(True, False, good)).outcome == "pass"
        assert (await self.judged(True, False, bad)).outcome == "fail"
        assert (await self.judged(False, False, good)).outcome == "fail"
        failed = await self.judged(True, True, good)
        assert (failed.outcome, failed.reason) == ("fail", "Because.")

    async def test_the_score_is_the_smallest(self) -> None:
        first = define_evaluator("first")(lambda ctx: 0.9).use()
        second = define_evaluator("second")(lambda ctx: 0.6).use()
        scenario = {"name": "s", "script": ["Hi"], "evaluators": [first, second]}
        result = await run(scenario, lambda messages: "Hello")
        assert (result.outcome, result.score) == ("pass", 0.6)


class TestPlugins:
    def test_an_installed_package_is_named_by_its_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = (
            "from evalstudio import define_connector\n\n\n"
            '@define_connector(type="packaged-agent")\n'
            "def packaged_agent(ctx):\n"
            '    return "Hello"\n'
        )
        write_distribution(tmp_path / "site", "evalstudio-packaged", {"evalstudio_packaged.py": source})
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        importlib.invalidate_caches()
        known = load_plugins(write_project(tmp_path / "p", ["evalstudio-packaged"]))
        assert known.get_connector("packaged-agent") is not None

    def test_one_that_is_not_installed(self, tmp_path: Path) -> None:
        with pytest.raises(Exception, match='Plugin "evalstudio-my-agent" not found') as caught:
            load_plugins(write_project(tmp_path, ["evalstudio-my-agent"]))
        assert 'pip install evalstudio-my-agent"' in str(caught.value)

    def test_a_built_in_type_cannot_be_overridden(self, tmp_path: Path) -> None:
        source = (
            "from evalstudio import define_connector\n\n\n"
            '@define_connector(type="http")\n'
            "def http(ctx):\n"
            '    return "Hello"\n'
        )
        with pytest.raises(Exception, match='Connector type "http" is already registered') as caught:
            load_plugins(write_project(tmp_path, ["./x.py"], {"x.py": source}))
        assert "cannot override it" in str(caught.value)

    async def test_an_error_in_a_run_is_kept_with_it(self, tmp_path: Path) -> None:
        scenario = {"name": "s", "script": ["break it"], "evaluators": [{"type": "response-length"}]}
        async with serving(make_project(tmp_path / "p", []), processor=True) as api:
            connector = await api.made("/api/connectors", {"name": "agent", "type": "test-agent"})
            made = await api.made("/api/scenarios", scenario)
            body = {"name": "e", "scenarioIds": [made["id"]], "connectorIds": [connector["id"]]}
            started = await api.made(
                "/api/executions", {"evalId": (await api.made("/api/evals", body))["id"]}
            )
            await api.finished(started["id"], seconds=60)
            (kept,) = (await api.found(f"/api/runs?executionId={started['id']}"))["items"]
        assert (kept["status"], kept["result"]["fault"]) == ("error", "agent")
        assert "the agent broke" in kept["error"]


@pytest.mark.parametrize(
    "name",
    [
        "define_connector",
        "define_evaluator",
        "ConnectorDefinition",
        "ConnectorContext",
        "ConnectorResponse",
        "EvaluatorDefinition",
        "EvaluatorContext",
        "EvaluationResult",
        "Message",
        "PluginRegistry",
        "load_plugins",
        "PluginError",
    ],
)
def test_what_plugin_authors_import_is_there(name: str) -> None:
    assert name in evalstudio.__all__
    assert getattr(evalstudio, name) is not None


async def test_a_connector_as_one_object() -> None:
    async def invoke(ctx: ConnectorContext) -> Any:
        return {"success": True, "latencyMs": 1, "messages": [{"role": "assistant", "content": "Hello"}]}

    definition: Any = define_connector(
        {  # pyright: ignore[reportArgumentType]
            "type": "one-object",
            "label": "One Object",
            "configSchema": {"type": "object", "properties": {}},
            "invoke": invoke,
        }
    )
    known = registry()
    known.register(definition)
    scenario = {"name": "s", "script": ["Hi"], "evaluators": [{"type": "greeting-check"}]}
    assert (await run(scenario, {"type": "one-object"}, registry=known)).outcome == "pass"
