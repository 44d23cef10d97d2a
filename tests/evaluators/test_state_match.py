"""The state-match evaluator: the world the agent left behind against the one it should have."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.state_match import state_match
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries
from evalstudio.testing import context

STATE = {"booking": {"id": 7, "room": {"beds": 2, "view": "sea"}, "guests": ["Ann", "Bo"]}, "paid": True}


async def look(config: dict[str, Any], **given: Any) -> Finding:
    given = given or {"state": STATE}
    (result,) = await run_entries([state_match.use(config)], context("done", **given).facts)
    return result


@pytest.mark.parametrize(
    "config",
    [
        {"expected": {}, "path": "booking.room"},
        {"expected": {"booking": {"room": {"beds": 2}}}},
        {"expected": STATE, "match": "exact"},
        {"expected": {"beds": 2}, "path": "booking.room"},
        {"expected": "Bo", "path": "booking.guests[1]"},
        {"expected": 7.0, "path": "booking.id"},
        {"expected": ["Ann", "Bo"], "path": "booking.guests"},
    ],
)
async def test_a_state_as_expected_holds(config: dict[str, Any]) -> None:
    result = await look(config)
    assert result.holds, result.reason
    assert result.value == 1.0


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"expected": {"booking": {"id": 8}}}, "the state differs at booking.id: expected 8, got 7"),
        ({"expected": {"refund": 1}}, "the state differs at refund: expected 1, got nothing"),
        ({"expected": {"paid": 1}}, "the state differs at paid: expected 1, got true"),
        (
            {"expected": {"booking": {"id": 7}}, "path": "", "match": "exact"},
            'the state differs at booking.room: expected nothing, got {"beds":2,"view":"sea"}',
        ),
        (
            {"expected": ["Ann"], "path": "booking.guests"},
            'the state differs at booking.guests[1]: expected nothing, got "Bo"',
        ),
        (
            {"expected": ["Ann", "Bo", "Cy"], "path": "booking.guests"},
            'the state differs at booking.guests[2]: expected "Cy", got nothing',
        ),
        (
            {"expected": {"view": "hill"}, "path": "booking.room"},
            'booking.room.view: expected "hill", got "sea"',
        ),
        ({"expected": None, "path": "booking.nope"}, "booking.nope: expected null, got nothing"),
        ({"expected": 5}, "the state differs: expected 5, got {"),
        ({"expected": {"booking": [7]}}, "the state differs at booking: expected [7], got {"),
    ],
)
async def test_the_first_difference_is_named_with_both_values(config: dict[str, Any], reason: str) -> None:
    result = await look(config)
    assert result.failed
    assert reason in result.reason


async def test_a_subset_reaches_into_lists_but_lists_are_as_long() -> None:
    state = {"rows": [{"id": 1, "extra": True}]}
    assert (await look({"expected": {"rows": [{"id": 1}]}}, state=state)).holds
    exact = await look({"expected": {"rows": [{"id": 1}]}, "match": "exact"}, state=state)
    assert exact.reason == "the state differs at rows[0].extra: expected nothing, got true"
    shorter = await look({"expected": {"rows": []}}, state=state)
    assert shorter.reason.startswith("the state differs at rows[0]: expected nothing, got ")


async def test_letters_are_compared_in_their_normal_form() -> None:
    assert (await look({"expected": {"name": "café"}}, state={"name": "cafe\u0301"})).holds


async def test_no_state_is_an_error_not_a_failure() -> None:
    facts = context("done", criteria=[{"name": "c"}]).facts
    (result,) = await run_entries([state_match.use(expected={"a": 1}, criterionName="c")], facts)
    assert result.error is not None
    assert "no end state" in result.error
    assert not result.failed
    assert result.criterion_name == "c"


async def test_an_empty_state_is_a_state() -> None:
    assert (await look({"expected": {}, "match": "exact"}, state={})).holds
    assert (await look({"expected": {"a": 1}}, state={})).failed


async def test_a_record_may_carry_its_state_in_the_context() -> None:
    assert (await look({"expected": {"paid": True}}, context={"state": STATE})).holds
    both = await look({"expected": {"a": 1}}, state={"a": 1}, context={"state": {"a": 2}})
    assert both.holds


async def test_strange_and_huge_states_are_shown_short() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    result = await look({"expected": {"a": 1}}, state={"a": deep})
    assert result.failed
    assert "expected 1, got [[[" in result.reason
    assert len(result.reason) < 500
    while deep:
        deep = deep.pop()
    assert len((await look({"expected": {"a": 1}}, state={"a": "x" * 1_000_000})).reason) < 500


async def test_a_criterion_gets_its_score() -> None:
    facts = context("done", state=STATE, criteria=[{"name": "c", "scale": "pass/fail"}]).facts
    (result,) = await run_entries([state_match.use(expected={"paid": False}, criterionName="c")], facts)
    assert result.score is False


@pytest.mark.parametrize(
    "config",
    [{}, {"expected": 1, "match": "fuzzy"}, {"expected": 1, "criterionName": ""}, {"expected": 1, "x": 1}],
)
def test_a_wrong_config_is_refused_at_load(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        state_match.use(config)


def test_it_runs_once_at_the_end() -> None:
    assert state_match.use(expected=None).gate == "finally"


def test_an_expectation_that_any_state_meets_is_refused() -> None:
    with pytest.raises(InvalidInput, match="part of any state"):
        state_match.use(expected={})
