"""The tool-usage evaluator: rules about calls, alone and against each other."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.tool_usage import tool_usage
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries
from evalstudio.testing import context

Call = tuple[str, Any]


def message(*calls: Call, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "tool_calls": [{"name": name, "args": args} for name, args in calls]}


async def look(rules: list[dict[str, Any]], *calls: Call, **given: Any) -> list[Finding]:
    entry = tool_usage.use(rules=rules)
    return await run_entries([entry], context("done", messages=[message(*calls)], **given).facts)


def outcome(result: Finding) -> str:
    if result.error is not None:
        return "error"
    return "skip" if result.skipped else "pass" if result.holds else "fail"


async def outcomes(rules: list[dict[str, Any]], *calls: Call) -> list[str]:
    return [outcome(result) for result in await look(rules, *calls)]


@pytest.mark.parametrize(
    ("rule", "calls", "expected", "reason"),
    [
        ({}, 0, "skip", "w was not called"),
        ({}, 1, "pass", "w was called once"),
        ({"required": True}, 0, "fail", "w was not called"),
        ({"required": True}, 2, "pass", "w was called 2 times"),
        ({"forbidden": True}, 0, "pass", "w was not called"),
        ({"forbidden": True}, 1, "fail", "w was called once though it is forbidden"),
        ({"minCalls": 2}, 0, "fail", "w was not called"),
        ({"minCalls": 2}, 1, "fail", "w was called once, fewer than 2"),
        ({"minCalls": 2}, 2, "pass", "w was called 2 times"),
        ({"maxCalls": 1}, 2, "fail", "w was called 2 times, more than 1"),
        ({"maxCalls": 1}, 0, "pass", "w was not called"),
        ({"maxCalls": 0}, 1, "fail", "w was called once, more than 0"),
        ({"minCalls": 0, "maxCalls": 1}, 0, "pass", "w was not called"),
    ],
)
async def test_calls_are_counted(rule: dict[str, Any], calls: int, expected: str, reason: str) -> None:
    (result,) = await look([{"tool": "w", **rule}], *[("w", {})] * calls, ("other", {}))
    assert outcome(result) == expected
    assert result.reason == reason
    assert result.metadata == {"tool": "w", "calls": calls}


@pytest.mark.parametrize(
    ("rule", "arguments", "expected"),
    [
        ({"arguments": {"city": "Paris"}}, {"city": "Paris", "unit": "C"}, "pass"),
        ({"arguments": {"city": "Paris"}, "match": "exact"}, {"city": "Paris", "unit": "C"}, "fail"),
        ({"arguments": {"city": "Paris"}, "match": "exact"}, {"city": "Paris"}, "pass"),
        ({"arguments": {"city": "paris"}}, {"city": "Paris"}, "fail"),
        ({"arguments": {"city": "Orle\u0301ans"}}, {"city": "Orléans"}, "pass"),
        ({"arguments": {"at": {"lat": 1}}}, {"at": {"lat": 1, "lon": 2}}, "pass"),
        ({"arguments": {"n": True}}, {"n": 1}, "fail"),
        ({"arguments": {}}, {}, "pass"),
        ({"arguments": {}, "match": "exact"}, {"n": 1}, "fail"),
        ({"arguments": {"n": 1}}, [1], "fail"),
        ({"arguments": {"n": 1}}, "not json", "fail"),
        ({"argumentsSchema": {"required": ["n"]}}, {"n": 1}, "pass"),
        ({"argumentsSchema": {"required": ["n"]}}, {}, "fail"),
        ({"argumentsSchema": False}, {}, "fail"),
        ({"argumentChecks": lambda args: args["n"] > 0}, {"n": 1}, "pass"),
        ({"argumentChecks": lambda args: (False, "too small")}, {"n": 1}, "fail"),
        ({"argumentChecks": lambda args: {"valid": True}}, {"n": 1}, "pass"),
        ({"argumentChecks": lambda args: args["missing"]}, {"n": 1}, "error"),
        ({"argumentChecks": lambda args: "yes"}, {"n": 1}, "error"),
        ({"argumentChecks": lambda args: None}, {"n": 1}, "error"),
        ({"forbidden": True, "arguments": {"n": 1}}, {"n": 2}, "pass"),
        ({"forbidden": True, "arguments": {"n": 1}}, {"n": 1}, "fail"),
        ({"forbidden": True, "arguments": {"n": 1}}, "not json", "fail"),
    ],
)
async def test_arguments_are_compared(rule: dict[str, Any], arguments: Any, expected: str) -> None:
    assert await outcomes([{"tool": "w", **rule}], ("w", arguments)) == [expected]


async def test_reasons_say_what_is_wrong_with_the_arguments() -> None:
    rules = [
        {"tool": "w", "arguments": {"at": {"lat": 1}}},
        {"tool": "w", "argumentsSchema": {"required": ["n"]}},
        {"tool": "w", "argumentChecks": lambda args: {"isValid": False, "reason": "Missing unit"}},
        {"tool": "broken", "arguments": {"n": 1}},
    ]
    results = await look(rules, ("w", {"at": {"lat": 2}}), ("broken", "{oops"))
    assert results[0].reason == "w was called once, but arguments.at.lat: expected 1, got 2"
    assert '"n" is a required property' in results[1].reason
    assert results[2].reason == "w was called once, but Missing unit"
    assert "arguments of broken are not valid JSON" in results[3].reason


@pytest.mark.parametrize(
    ("which", "values", "expected"),
    [
        ("any", [1, 2], "pass"),
        ("any", [2, 2], "fail"),
        ("all", [1, 1], "pass"),
        ("all", [1, 2], "fail"),
        ("first", [1, 2], "pass"),
        ("first", [2, 1], "fail"),
        ("last", [2, 1], "pass"),
        ("last", [1, 2], "fail"),
    ],
)
async def test_a_rule_says_which_call_must_have_the_arguments(
    which: str, values: list[int], expected: str
) -> None:
    calls = [("w", {"n": value}) for value in values]
    for condition in (
        {"arguments": {"n": 1}},
        {"argumentsSchema": {"properties": {"n": {"const": 1}}}},
        {"argumentChecks": lambda args: args["n"] == 1},
    ):
        assert await outcomes([{"tool": "w", "which": which, **condition}], *calls) == [expected]


async def test_a_check_that_raises_is_an_error_of_its_rule_alone() -> None:
    def broken(arguments: Any) -> bool:
        raise RuntimeError("cannot tell")

    rules = [{"tool": "w", "argumentChecks": broken}, {"tool": "w", "required": True}]
    results = await look(rules, ("w", {}))
    assert [outcome(result) for result in results] == ["error", "pass"]
    assert results[0].error == "cannot tell"


async def test_one_good_call_outweighs_another_that_cannot_be_checked() -> None:
    rule = {"tool": "w", "argumentChecks": lambda args: args["n"] == 1}
    assert await outcomes([rule], ("w", {}), ("w", {"n": 1})) == ["pass"]
    assert await outcomes([{**rule, "which": "all"}], ("w", {}), ("w", {"n": 1})) == ["error"]
    assert await outcomes([{**rule, "which": "all"}], ("w", {}), ("w", {"n": 2})) == ["fail"]


async def test_a_check_that_changes_its_arguments_changes_no_others() -> None:
    def clears(arguments: Any) -> bool:
        arguments.clear()
        return True

    rules = [{"tool": "w", "argumentChecks": clears}, {"tool": "w", "arguments": {"n": 1}}]
    assert await outcomes(rules, ("w", {"n": 1})) == ["pass", "pass"]


async def test_min_and_max_count_the_calls_that_fit() -> None:
    rule = {"tool": "w", "arguments": {"n": 1}}
    calls = [("w", {"n": 1}), ("w", {"n": 2}), ("w", {"n": 1})]
    assert await outcomes([{**rule, "minCalls": 2, "maxCalls": 2}], *calls) == ["pass"]
    (result,) = await look([{**rule, "minCalls": 3}], *calls)
    assert result.reason == "w was called 3 times, 2 with the arguments asked for, fewer than 3"


async def test_rules_with_expected_values_need_calls_of_their_own() -> None:
    rule = {"tool": "w", "arguments": {"n": 1}}
    results = await look([rule, rule], ("w", {"n": 1}))
    assert [outcome(result) for result in results] == ["pass", "fail"]
    assert "no call left for this rule" in results[1].reason
    assert await outcomes([rule, rule], ("w", {"n": 1}), ("w", {"n": 1})) == ["pass", "pass"]


async def test_the_broad_rule_gives_way_to_the_narrow_one() -> None:
    broad, narrow = {"tool": "w", "arguments": {}}, {"tool": "w", "arguments": {"n": 1}}
    calls = [("w", {"n": 1}), ("w", {"n": 2})]
    assert await outcomes([broad, narrow], *calls) == ["pass", "pass"]
    assert await outcomes([broad, narrow], *reversed(calls)) == ["pass", "pass"]


async def test_a_rule_that_cannot_have_enough_takes_nothing_from_others() -> None:
    rules = [
        {"tool": "w", "arguments": {"n": 1}},
        {"tool": "w", "arguments": {}, "minCalls": 2},
        {"tool": "w", "arguments": {"m": 1}},
    ]
    calls = [("w", {"n": 1}), ("w", {"m": 1})]
    assert await outcomes(rules, *calls) == ["pass", "fail", "pass"]


async def test_presence_schemas_and_checks_share_calls() -> None:
    rules = [
        {"tool": "w", "required": True},
        {"tool": "w", "required": True},
        {"tool": "w", "argumentsSchema": {"required": ["n"]}},
        {"tool": "w", "argumentChecks": lambda args: True},
        {"tool": "w", "arguments": {"n": 1}},
    ]
    assert await outcomes(rules, ("w", {"n": 1})) == ["pass"] * 5


@pytest.mark.parametrize(
    ("calls", "in_order", "skipped"),
    [
        ("abc", 3, 0),
        ("cabc", 3, 0),
        ("bac", 2, 0),
        ("cba", 1, 0),
        ("ac", 2, 1),
        ("bcabc", 3, 0),
        ("cab", 2, 0),
    ],
)
async def test_ordered_rules_hold_along_the_longest_chain(calls: str, in_order: int, skipped: int) -> None:
    rules = [{"tool": "c", "order": 30}, {"tool": "a", "order": -1}, {"tool": "b", "order": 2}]
    found = await outcomes(rules, *[(name, {}) for name in calls])
    assert (found.count("pass"), found.count("skip")) == (in_order, skipped)


async def test_the_chain_is_not_the_first_fit() -> None:
    rules = [{"tool": "a", "order": 1}, {"tool": "b", "order": 2}, {"tool": "a", "order": 3}]
    assert await outcomes(rules, ("b", {}), ("a", {}), ("b", {}), ("a", {})) == ["pass"] * 3
    results = await look(rules, ("b", {}), ("a", {}))
    assert [outcome(result) for result in results].count("pass") == 2
    assert any("place in the order" in result.reason for result in results)


async def test_rules_of_one_place_may_come_in_any_order() -> None:
    rules = [{"tool": "a", "order": 1}, {"tool": "b", "order": 1}, {"tool": "c", "order": 2}]
    for calls in ("abc", "bac", "cabc"):
        assert await outcomes(rules, *[(name, {}) for name in calls]) == ["pass"] * 3
    assert (await outcomes(rules, ("a", {}), ("c", {}), ("b", {}))).count("pass") == 2


async def test_order_asks_for_as_many_calls_as_the_rule_does() -> None:
    rules = [{"tool": "search", "order": 1, "minCalls": 2}, {"tool": "book", "order": 2}]
    assert await outcomes(rules, ("search", {}), ("search", {}), ("book", {})) == ["pass", "pass"]
    late = await outcomes(rules, ("search", {}), ("book", {}), ("search", {}))
    assert late.count("fail") == 1


async def test_order_and_expected_values_settle_together() -> None:
    rules = [
        {"tool": "w", "arguments": {"n": 1}, "order": 1},
        {"tool": "x", "order": 2},
        {"tool": "w", "arguments": {"n": 1}},
    ]
    assert await outcomes(rules, ("w", {"n": 1}), ("x", {}), ("w", {"n": 1})) == ["pass"] * 3
    rules = [{"tool": "w", "arguments": {}, "order": 1}, {"tool": "w", "arguments": {"n": 1}}]
    assert await outcomes(rules, ("w", {"n": 1}), ("w", {"n": 2})) == ["pass", "pass"]


async def test_only_assistants_call_tools() -> None:
    entry = tool_usage.use(rules=[{"tool": "w", "required": True}])
    for role in ("user", "tool", "system"):
        facts = context("done", messages=[message(("w", {}), role=role)]).facts
        (result,) = await run_entries([entry], facts)
        assert result.failed
    (result,) = await run_entries([entry], context(tool_calls=[{"name": "w"}]).facts)
    assert result.holds


async def from_context(calls: Any, **given: Any) -> Finding:
    config = {"rules": [{"tool": "w", "required": True, **given}], "source": "context"}
    (result,) = await run_entries([tool_usage.use(config)], context("r", context={"toolCalls": calls}).facts)
    return result


async def test_calls_may_come_from_the_context_in_several_shapes() -> None:
    for call in (
        {"toolName": "w", "toolArguments": {"n": 1}},
        {"name": "w", "args": {"n": 1}},
        {"name": "w", "arguments": '{"n": 1}'},
        {"function": {"name": "w", "arguments": {"n": 1}}},
    ):
        assert (await from_context([call], arguments={"n": 1})).holds
    assert (await from_context([{"name": "w"}], arguments={}, match="exact")).holds
    assert (await from_context([])).failed


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (None, "no list context.toolCalls"),
        ("text", "context.toolCalls is not a list"),
        ({}, "context.toolCalls is not a list"),
        (0, "context.toolCalls is not a list"),
        ([{"args": {}}], r"context.toolCalls\[0\] is not a call"),
        ([{"name": "w"}, 5], r"context.toolCalls\[1\] is not a call"),
    ],
)
async def test_a_context_that_makes_no_sense_is_an_error(calls: Any, told: str) -> None:
    result = await from_context(calls, criterionName="c")
    assert result.error is not None
    assert re.search(told, result.error)
    assert result.criterion_name == "c"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({}, "tool"),
        ({"tool": " "}, "must not be blank"),
        ({"tool": "w", "required": True, "forbidden": True}, "cannot be forbidden and have required"),
        ({"tool": "w", "forbidden": True, "minCalls": 1}, "cannot be forbidden and have minCalls"),
        ({"tool": "w", "forbidden": True, "order": 1}, "cannot be forbidden and have order"),
        ({"tool": "w", "minCalls": 3, "maxCalls": 2}, "at least 3 calls and at most 2"),
        ({"tool": "w", "required": True, "maxCalls": 0}, "at least 1 calls and at most 0"),
        ({"tool": "w", "minCalls": -1}, "greater than or equal to 0"),
        ({"tool": "w", "which": "some"}, "which"),
        ({"tool": "w", "match": "fuzzy"}, "match"),
        ({"tool": "w", "argumentsSchema": {"type": "strin"}}, "not a usable JSON Schema"),
        ({"tool": "w", "argumentsSchema": {"$ref": "http://127.0.0.1:9/x"}}, "never fetched"),
        ({"tool": "w", "argumentChecks": "<code>"}, "callable"),
        ({"tool": "w", "criterionName": ""}, "must not be blank"),
        ({"tool": "w", "optional": True}, "optional"),
    ],
)
def test_a_wrong_rule_is_refused_at_load(rule: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        tool_usage.use(rules=[rule])


@pytest.mark.parametrize("config", [{"rules": []}, {}, {"rules": [{"tool": "w"}], "source": "database"}])
def test_a_wrong_config_is_refused_at_load(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        tool_usage.use(config)


def test_older_names_are_understood() -> None:
    rule = {"expectedToolName": "w", "isRequired": True}
    config = tool_usage.use(rules=[rule], toolDataSource="messageHistory").config
    assert config.source == "messages"
    assert (config.rules[0].tool, config.rules[0].required) == ("w", True)


def test_rules_with_functions_run_in_a_worker_thread() -> None:
    assert tool_usage.use(rules=[{"tool": "w"}]).inline
    assert not tool_usage.use(rules=[{"tool": "w", "argumentChecks": bool}]).inline
    assert "argumentChecks" not in str(tool_usage.to_json()["configSchema"])


async def test_skipped_and_undeclared_criteria() -> None:
    rules = [{"tool": "w", "criterionName": "c"}, {"tool": "w", "criterionName": "undeclared"}]
    (result,) = await look(rules, criteria=[{"name": "c", "scale": "numeric"}])
    assert (result.criterion_name, result.skipped, result.score) == ("c", True, None)


async def test_many_rules_over_many_calls_settle_quickly() -> None:
    rules: list[dict[str, Any]] = [{"tool": "w", "arguments": {}} for _ in range(100)]
    rules += [{"tool": "w", "arguments": {"n": n}} for n in range(100)]
    rules += [{"tool": "w", "order": n} for n in range(50)]
    calls = [("w", {"n": n}) for n in range(1_000)]
    start = time.process_time()
    assert await outcomes(rules, *calls) == ["pass"] * 250
    assert time.process_time() - start < 6
