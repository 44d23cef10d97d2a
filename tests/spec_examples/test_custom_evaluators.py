"""The examples of the paper on custom evaluators, as a Python user writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.spec_examples.project import booking_agent, calls, registry, verdict
from tests.support.api_server import serving
from tests.support.models import ScriptedLlm
from tests.support.plugin_files import evaluator_source, write_project
from tests.support.projects import make_project

from evalstudio import (
    EvaluationResult,
    EvaluatorContext,
    RunResult,
    Scenario,
    create_registry,
    define_evaluator,
    load_plugins,
    run_evaluators,
    run_scenario,
)
from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.results import Finding
from evalstudio.testing import context

COUNT = {"type": "tool-call-count", "config": {}}
WELCOME = {
    "name": "Welcome Flow",
    "successCriteria": "Agent helps the user book an appointment",
    "evaluators": [
        {"type": "greeting-check", "config": {"greetings": ["hello", "welcome", "good morning"]}},
        {"type": "tool-call-count", "config": {}},
    ],
}


def result_of(run: RunResult, type_name: str) -> Finding:
    return next(finding for finding in run.evaluator_results if finding.type == type_name)


async def played(agent: Any, *evaluators: Any, **fields: Any) -> RunResult:
    scenario = {"name": "s", "script": ["Hello"], "evaluators": list(evaluators), **fields}
    return await run_scenario(scenario, agent, registry=registry())


class TestToolCallCount:
    async def test_it_counts_and_names_the_calls_of_the_turn(self) -> None:
        found = result_of(await played(calls("search", "book"), COUNT), "tool-call-count")
        assert (found.kind, found.success, found.value) == ("metric", True, 2)
        assert "2 tool call" in found.reason
        assert "search, book" in found.reason
        assert (found.metadata["toolCallCount"], found.metadata["toolNames"]) == (2, ["search", "book"])

    async def test_without_calls_it_is_zero(self) -> None:
        run = await played(lambda messages: "Hi", COUNT)
        assert result_of(run, "tool-call-count").value == 0
        assert run.output()["metrics"]["tool-call-count"] == 0

    async def test_the_same_written_as_a_plugin_of_ones_own(self) -> None:
        @define_evaluator(type="my-call-count", label="Tool Call Count", kind="metric")
        async def my_call_count(ctx: EvaluatorContext) -> EvaluationResult:
            """Counts tool calls in the agent's response."""
            names = [
                call.function.name
                for message in ctx.last_invocation.messages
                if message.role == "assistant"
                for call in message.tool_calls or ()
            ]
            reason = (
                f"{len(names)} tool call(s): {', '.join(names)}" if names else "No tool calls in this turn"
            )
            return EvaluationResult(
                success=True,
                value=len(names),
                reason=reason,
                metadata={"toolCallCount": len(names), "toolNames": names},
            )

        run = await played(calls("search"), my_call_count)
        found = result_of(run, "my-call-count")
        assert (found.value, found.reason) == (1, "1 tool call(s): search")
        assert (await my_call_count(context("Hi"))).reason == "No tool calls in this turn"

    async def test_the_same_as_one_object_with_a_dict_for_a_result(self) -> None:
        async def evaluate(ctx: EvaluatorContext) -> Any:
            names = [call.name for call in ctx.tool_calls]
            return {"success": True, "value": len(names), "reason": f"{len(names)} tool call(s)"}

        definition: Any = define_evaluator(
            {  # pyright: ignore[reportArgumentType, reportCallIssue]
                "type": "dict-call-count",
                "label": "Tool Call Count",
                "description": "Counts tool calls in the agent's response.",
                "kind": "metric",
                "configSchema": {"type": "object", "properties": {}, "additionalProperties": False},
                "evaluate": evaluate,
            }
        )
        found = result_of(await played(calls("search"), definition), "dict-call-count")
        assert (found.value, found.reason) == (1, "1 tool call(s)")


class TestRegistering:
    def test_evaluators_of_the_config_file_are_registered_beside_the_built_in_ones(self) -> None:
        types = {item["type"]: item for item in registry().list_evaluator_types()}
        assert types["tool-call-count"]["builtin"] is True
        greeting = types["greeting-check"]
        assert (greeting["label"], greeting["kind"], greeting["builtin"]) == (
            "Greeting Check", "assertion", False,
        )  # fmt: skip
        assert greeting["description"] == "Verifies the agent greets the user in their first response."
        assert greeting["configSchema"]["properties"]["greetings"]["default"] == [
            "hello", "hi", "hey", "welcome",
        ]  # fmt: skip

    def test_one_is_found_by_its_type(self) -> None:
        known = registry()
        definition = known.get_evaluator("greeting-check")
        assert definition is not None
        assert definition.label == "Greeting Check"
        assert known.get_evaluator("nothing-like-it") is None

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(Exception, match=r'Plugin "./evaluators/foo.py" not found'):
            load_plugins(write_project(tmp_path, [], evaluators=["./evaluators/foo.py"]))

    def test_a_file_with_nothing_in_it(self, tmp_path: Path) -> None:
        config = write_project(tmp_path, ["./foo.py"], {"foo.py": "default = 5\n"})
        with pytest.raises(Exception, match=r"has no evaluators or connectors. Use define_evaluator\(\)"):
            load_plugins(config)

    def test_a_type_that_is_taken(self, tmp_path: Path) -> None:
        source = evaluator_source("tool_call_count")
        config = write_project(tmp_path, ["./foo.py"], {"foo.py": source})
        with pytest.raises(Exception, match='"tool-call-count" is already registered'):
            load_plugins(config)


class TestAScenario:
    def test_has_at_least_one_way_of_judging(self) -> None:
        with pytest.raises(ValidationError, match="nothing judges this scenario"):
            Scenario.model_validate({"name": "s"})

    async def test_with_criteria_only_the_judge_decides(self) -> None:
        for met, outcome in ((True, "pass"), (False, "fail")):
            run = await run_scenario(
                {"name": "s", "script": ["Hello"], "successCriteria": "Booked"},
                lambda messages: "Booked",
                llm=ScriptedLlm(judge=[verdict(met)]),
            )
            assert run.outcome == outcome
            assert run.output()["evaluation"] == {
                "successMet": met, "failureMet": False, "confidence": 0.9,
                "reasoning": "Agent booked successfully",
            }  # fmt: skip

    async def test_with_evaluators_only_no_judge_is_asked(self) -> None:
        run = await played(lambda messages: "Hello!", {"type": "greeting-check"})
        assert run.outcome == "pass"
        assert "evaluation" not in run.output()

    @pytest.mark.parametrize(
        ("use", "message"),
        [
            ({"type": "greting-check"}, "did you mean greeting-check"),
            ({"type": "greeting-check", "config": {"greetings": "hello"}}, "greetings"),
            ({"type": "tool-call-count", "config": {"depth": 1}}, "depth"),
        ],
    )
    async def test_types_and_configs_are_checked(self, use: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidInput, match=message):
            await played(lambda messages: "Hello!", use)


class TestAggregating:
    async def all_of(self, *returned: Any, kinds: Sequence[Any] = ()) -> Any:
        entries = []
        for number, result in enumerate(returned):
            kind = kinds[number] if number < len(kinds) else "assertion"

            def evaluate(ctx: EvaluatorContext, result: Any = result) -> Any:
                if isinstance(result, Exception):
                    raise result
                return result

            entries.append(define_evaluator(f"e{number}", kind=kind)(evaluate).use())
        return await run_evaluators(entries, context("Hi").facts)

    async def test_all_assertions_must_pass(self) -> None:
        good = EvaluationResult.passed("fine", value=0.8)
        bad = EvaluationResult.failed("not fine", value=0.3)
        run = await self.all_of(good, bad)
        assert (run.success, run.score, run.reason) == (False, 0.3, "not fine")
        run = await self.all_of(good, EvaluationResult.passed(value=0.9))
        assert (run.success, run.score, run.reason) == (True, 0.8, "All evaluators passed")

    async def test_metrics_are_kept_and_never_fail(self) -> None:
        good, measured = EvaluationResult.passed("fine"), EvaluationResult.measured(3, "3 calls")
        run = await self.all_of(good, measured, kinds=("assertion", "metric"))
        assert (run.success, run.metrics) == (True, {"e1": 3})

    async def test_an_evaluator_that_raises_is_a_result_of_its_own(self) -> None:
        run = await self.all_of(EvaluationResult.passed("fine"), RuntimeError("boom"))
        assert run.success is False
        assert [finding.success for finding in run.evaluator_results] == [True, False]
        assert run.evaluator_results[1].reason.startswith("Evaluator error: RuntimeError: boom (")


class TestWelcomeFlow:
    async def welcome(self, met: bool, text: str) -> RunResult:
        return await run_scenario(
            {**WELCOME, "script": ["I need an appointment"]},
            calls("book", text=text),
            llm=ScriptedLlm(judge=[verdict(met)]),
            registry=registry(),
        )

    async def test_three_evaluations_per_turn_and_both_assertions_must_hold(self) -> None:
        run = await self.welcome(True, "Welcome! You are booked.")
        assert run.outcome == "pass"
        assert {f.type: f.kind for f in run.turns[0].results if f.type not in ("latency", "token-usage")} == {
            "llm-judge": "assertion",
            "greeting-check": "assertion",
            "tool-call-count": "metric",
        }
        assert result_of(run, "greeting-check").reason == 'Found greeting: "welcome"'
        assert run.output()["metrics"]["tool-call-count"] == 1

    async def test_without_a_greeting_it_fails_and_the_calls_are_counted_all_the_same(self) -> None:
        run = await self.welcome(True, "You are booked.")
        assert (run.outcome, run.reason) == (
            "fail",
            "Response does not contain a greeting. Expected one of: hello, welcome, good morning",
        )
        assert run.output()["metrics"]["tool-call-count"] == 1

    async def test_without_success_it_fails(self) -> None:
        assert (await self.welcome(False, "Welcome!")).outcome == "fail"

    async def test_the_greeting_is_looked_for_in_the_first_turn_only(self) -> None:
        replies = iter(["Hello!", "Ten o'clock."])
        run = await played(lambda messages: next(replies), {"type": "greeting-check"}, script=["Hi", "When?"])
        assert run.outcome == "pass"
        reasons = [f.reason for turn in run.turns for f in turn.results if f.type == "greeting-check"]
        assert reasons == ['Found greeting: "hello"', "Skipped (not first turn)"]

    async def test_the_same_check_with_dicts_for_results(self) -> None:
        @define_evaluator(type="dict-greeting")
        async def dict_greeting(ctx: EvaluatorContext) -> Any:
            greeting = next((word for word in ("hello", "hi") if word in ctx.response.lower()), None)
            if greeting is None:
                return {"success": False, "reason": "Response does not contain a greeting."}
            return {"success": True, "reason": f'Found greeting: "{greeting}"'}

        assert (await played(lambda messages: "Hello!", dict_greeting)).outcome == "pass"
        run = await played(lambda messages: "Yes?", dict_greeting)
        assert (run.outcome, run.reason) == ("fail", "Response does not contain a greeting.")


class TestOverTheApi:
    async def test_evaluator_types_are_listed(self, tmp_path: Path) -> None:
        async with serving(make_project(tmp_path / "project", [])) as api:
            listed = {item["type"]: item for item in await api.found("/api/evaluator-types")}
        count = listed["tool-call-count"]
        assert {"type", "label", "description", "kind", "configSchema", "builtin"} <= set(count)
        assert (count["label"], count["kind"], count["builtin"]) == ("Tool Call Count", "metric", True)
        assert count["configSchema"]["properties"] == {}

    async def test_scenarios_are_checked_when_they_are_made_and_changed(self, tmp_path: Path) -> None:
        scenario = {"name": "s", "script": ["Hello"], "evaluators": [COUNT]}
        async with serving(make_project(tmp_path / "project", [])) as api:
            made = await api.made("/api/scenarios", scenario)
            assert made["evaluators"][0]["type"] == "tool-call-count"
            unknown = {**scenario, "name": "t", "evaluators": [{"type": "tool-call-cuont"}]}
            assert (await api("POST", "/api/scenarios", unknown)).status in (400, 422)
            wrong = {**scenario, "evaluators": [{"type": "regex", "config": {"flags": "i"}}]}
            assert (await api("PUT", f"/api/scenarios/{made['id']}", wrong)).status in (400, 422)

    async def test_a_run_keeps_results_and_metrics(self, tmp_path: Path) -> None:
        regex = {"type": "regex", "config": {"pattern": "echo"}}
        scenario = {"name": "s", "script": ["Hello"], "evaluators": [regex, COUNT]}
        async with serving(make_project(tmp_path / "project", []), processor=True) as api:
            connector = await api.made("/api/connectors", {"name": "agent", "type": "test-agent"})
            made = await api.made("/api/scenarios", scenario)
            body = {"name": "e", "scenarioIds": [made["id"]], "connectorIds": [connector["id"]]}
            started = await api.made(
                "/api/executions", {"evalId": (await api.made("/api/evals", body))["id"]}
            )
            await api.finished(started["id"], seconds=60)
            (summary,) = (await api.found(f"/api/runs?executionId={started['id']}"))["items"]
            output = (await api.found(f"/api/runs/{summary['id']}"))["output"]
        kept = {item["type"]: item for item in output["evaluatorResults"]}
        assert (kept["regex"]["kind"], kept["regex"]["success"]) == ("assertion", True)
        assert (kept["tool-call-count"]["kind"], kept["tool-call-count"]["value"]) == ("metric", 0)
        assert output["metrics"]["tool-call-count"] == 0
        assert output["messageCount"] == 2


def test_the_built_in_types_need_no_config_file() -> None:
    assert create_registry().get_evaluator("tool-call-count") is not None


async def test_the_booking_agent_greets() -> None:
    run = await run_scenario(
        {"name": "s", "script": ["Hello"], "evaluators": [{"type": "greeting-check"}]},
        booking_agent(),
        registry=registry(),
    )
    assert run.outcome == "pass"
