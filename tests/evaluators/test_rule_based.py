"""The rule-based evaluator: every kind of rule, and what happens when one of them cannot be applied."""

from __future__ import annotations

import time
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.rule_based import rule_based
from evalstudio.evaluators.records import EvaluationInput, facts_of
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries
from evalstudio.testing import context


async def look(response: str, *rules: dict[str, Any], **given: Any) -> list[Finding]:
    return await run_entries([rule_based.use(rules=list(rules))], context(response, **given).facts)


async def holds(response: str, **check: Any) -> bool:
    (result,) = await look(response, {"config": check})
    assert result.error is None
    assert result.reason
    return result.holds


@pytest.mark.parametrize(
    ("outcome", "text", "expected"),
    [("match", "abc 1", True), ("match", "abc", False), ("no_match", "abc", True), ("no_match", "1", False)],
)
async def test_a_pattern_must_match_or_must_not(outcome: str, text: str, expected: bool) -> None:
    assert await holds(text, type="regex", pattern=r"\d", expectedOutcome=outcome) == expected


async def test_a_pattern_must_match_unless_said_otherwise() -> None:
    assert await holds("HELLO", type="regex", pattern="hello", flags="i")
    assert not await holds("HELLO", type="regex", pattern="hello")


@pytest.mark.parametrize(
    ("text", "bounds", "expected"),
    [
        ("", {"min": 1}, False),
        ("", {"max": 0}, True),
        ("abc", {"min": 3, "max": 3}, True),
        ("abcd", {"max": 3}, False),
        ("👍🏽", {"max": 2}, True),
        ("cafe\u0301", {"min": 4, "max": 4}, True),
        ("x" * 1_000_000, {"min": 1_000_000}, True),
    ],
)
async def test_length_counts_code_points_of_the_normal_form(
    text: str, bounds: dict[str, int], expected: bool
) -> None:
    assert await holds(text, type="length", **bounds) == expected


@pytest.mark.parametrize(
    ("outcome", "text", "expected"),
    [
        ("all", "Apple and PEAR", True),
        ("all", "apple only", False),
        ("any", "pear", True),
        ("any", "plum", False),
        ("none", "plum", True),
        ("none", "apple", False),
    ],
)
async def test_includes_asks_for_all_any_or_none(outcome: str, text: str, expected: bool) -> None:
    assert await holds(text, type="includes", keywords=["apple", "pear"], expectedOutcome=outcome) == expected


async def test_includes_asks_for_all_unless_said_otherwise() -> None:
    assert not await holds("apple", type="includes", keywords=["apple", "pear"])
    assert await holds("STRASSE", type="includes", keywords=["straße"])
    assert not await holds("Apple", type="includes", keywords=["apple"], caseSensitive=True)
    assert await holds("cafe\u0301", type="includes", keywords=["CAFÉ"])


@pytest.mark.parametrize(
    ("text", "bounds", "expected"),
    [
        ("please, Please", {"min": 2}, True),
        ("please thanks please", {"max": 2}, False),
        ("nothing", {"min": 0, "max": 0}, True),
        ("", {"min": 1}, False),
    ],
)
async def test_keyword_count_adds_up_all_keywords(text: str, bounds: dict[str, int], expected: bool) -> None:
    rule = {"type": "keyword_count", "keywords": ["please", "thanks", "PLEASE"], **bounds}
    assert await holds(text, **rule) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        ("5", True),
        ("null", True),
        ("", False),
        ("{", False),
        ("```json\n{}\n```", False),
        ("[" * 100_000, False),
    ],
)
async def test_json_parse_takes_json_alone(text: str, expected: bool) -> None:
    assert await holds(text, type="json_parse") == expected


async def test_json_that_is_too_long_to_read_is_an_error_that_names_the_limit() -> None:
    (result,) = await look('"' + "x" * 6_000_000 + '"', {"config": {"type": "json_parse"}})
    assert result.error is not None
    assert "limits.jsonBytes" in result.error


async def test_every_rule_gives_its_own_result_in_order() -> None:
    results = await look(
        "hello",
        {"criterionName": "a", "config": {"type": "length", "min": 1}},
        {"criterionName": "undeclared", "config": {"type": "length", "min": 1}},
        {"criterionName": "b", "config": {"type": "length", "min": 10}},
        {"config": {"type": "json_parse"}},
        criteria=[{"name": "a"}, {"name": "b", "scale": "likert5"}],
    )
    assert [(r.criterion_name, r.score) for r in results] == [("a", True), ("b", 1), (None, None)]
    assert results[1].reason == "5 characters, fewer than 10"
    assert results[1].metadata == {"rule": "length"}


async def test_a_rule_may_be_written_flat() -> None:
    flat = {"type": "regex", "pattern": "prompt$", "sourceTextField": "prompt", "criterionName": "c"}
    (result,) = await look("r", flat, prompt="a prompt", criteria=[{"name": "c"}])
    assert result.score is True


async def test_a_rule_that_cannot_be_applied_leaves_the_others_alone() -> None:
    results = await look(
        "a" * 50_000 + "!",
        {"type": "length", "min": 1, "sourceField": "context.missing", "criterionName": "a"},
        {"type": "regex", "pattern": "(?=a)^(a+)+$", "criterionName": "b"},
        {"type": "length", "min": 1, "criterionName": "c"},
        criteria=[{"name": name} for name in "abc"],
    )
    assert [r.criterion_name for r in results] == ["a", "b", "c"]
    assert results[0].error == 'no text at "context.missing"'
    assert results[1].error is not None
    assert results[1].error.startswith("pattern took longer than 1 s on this text (limits.patternSeconds")
    assert results[2].holds


async def test_paths_reach_lists_and_numbers() -> None:
    rule = {"type": "regex", "pattern": "^17$", "sourceField": "context.orders[1].id"}
    (result,) = await look("r", rule, context={"orders": [{"id": 1}, {"id": 17}]})
    assert result.holds


async def test_an_object_is_not_text() -> None:
    facts = facts_of(EvaluationInput(response={"key": "value"}), [])
    (result,) = await run_entries([rule_based.use(rules=[{"type": "json_parse"}])], facts)
    assert result.error == 'no text at "response"'


async def test_no_rules_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rules"):
        rule_based.use(rules=[])


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"type": "length"}, "give min, max or both"),
        ({"type": "length", "min": 5, "max": 2}, "min 5 is greater than max 2"),
        ({"type": "length", "min": -1}, "greater than or equal to 0"),
        ({"type": "length", "min": 1.5}, "expected a whole number"),
        ({"type": "regex", "pattern": "("}, "bad pattern"),
        ({"type": "regex", "pattern": "a", "flags": "Q"}, "unknown flag"),
        ({"type": "regex", "pattern": "a", "expectedOutcome": "maybe"}, "match"),
        ({"type": "includes", "keywords": [""]}, "must not be blank"),
        ({"type": "includes", "keywords": "apple"}, "list"),
        ({"type": "includes"}, "keywords"),
        ({"type": "keyword_count", "keywords": [], "min": 1}, "at least 1 item"),
        ({"type": "keyword_count", "keywords": ["a"]}, "give min, max or both"),
        ({"type": "mystery"}, "mystery"),
        ({}, "type"),
        ({"type": "json_parse", "extra": 1}, "extra"),
        ({"type": "json_parse", "criterionName": " "}, "must not be blank"),
        ("text", "rules"),
    ],
)
def test_a_wrong_rule_is_refused_at_load(rule: Any, told: str) -> None:
    for shape in (
        (rule, {"config": rule}) if isinstance(rule, dict) and "criterionName" not in rule else (rule,)
    ):
        with pytest.raises(InvalidInput, match=told):
            rule_based.use(rules=[shape])


def test_only_linear_patterns_run_in_place() -> None:
    assert rule_based.use(rules=[{"type": "regex", "pattern": "a+"}, {"type": "json_parse"}]).inline
    assert not rule_based.use(rules=[{"type": "regex", "pattern": "a(?=b)"}]).inline


async def test_hostile_rules_finish_in_milliseconds() -> None:
    start = time.process_time()
    results = await look(
        "a" * 100_000 + "!",
        {"type": "regex", "pattern": "^(a+)+$"},
        {"type": "keyword_count", "keywords": ["a", "aa"], "max": 10},
        {"type": "includes", "keywords": ["a" * 10_000]},
    )
    assert [r.holds for r in results] == [False, False, True]
    assert time.process_time() - start < 0.2
