"""Gates, the decision after a turn, and the verdict: by example, then by property."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.evaluators.aggregate import (
    Decision,
    StopConditions,
    conclude,
    decide,
    due,
    has_held,
    mark_pending,
)
from evalstudio.evaluators.contract import EvaluatorContext, Gate, Kind
from evalstudio.evaluators.definition import Entry, define_evaluator, with_keys
from evalstudio.evaluators.results import Finding, Verdict


def entry(key: str, gate: Gate = "always", kind: Kind = "assertion", reduce: Any = "last") -> Entry:
    def check(ctx: EvaluatorContext[Any]) -> bool:
        return True

    return define_evaluator("check", kind=kind, gate=gate)(check).use(name=key, reduce=reduce)


def result(of: Entry, what: str, turn: int = 1, **fields: Any) -> Finding:
    """``what`` is pass, fail, error or skip."""
    return Finding(
        type="check",
        label="Check",
        name=of.key,
        kind=of.kind,
        gate=of.gate,
        success=what in ("pass", "skip") or (what == "error" and of.kind == "metric"),
        reason=f"{of.key} {what}",
        error="broken" if what == "error" else None,
        fault="evaluator" if what == "error" else None,
        skipped=what == "skip",
        turn=turn,
        **fields,
    )


A, E, F = entry("a"), entry("e", "eventually"), entry("f", "finally")
GOES_ON = StopConditions()
SCRIPT_LEFT = StopConditions(script_left=True)
AT_LIMIT = StopConditions(blocked_by="limit")


class TestDeciding:
    def test_a_failed_always_ends_it(self) -> None:
        assert decide([A], [[result(A, "fail")]], SCRIPT_LEFT) == Decision(True, "failure")

    def test_unless_the_scenario_goes_on_after_failures(self) -> None:
        assert not decide([A], [[result(A, "fail")]], SCRIPT_LEFT, stop_on_failure=False).over

    def test_a_pending_eventually_does_not_end_it(self) -> None:
        assert not decide([E], [[result(E, "fail")]], GOES_ON).over

    def test_an_eventually_that_held_ends_it_once_the_script_is_over(self) -> None:
        held = [[result(E, "pass")]]
        assert not decide([E], held, SCRIPT_LEFT).over
        assert decide([E], held, GOES_ON) == Decision(True, "success")

    def test_all_eventually_assertions_must_have_held(self) -> None:
        other = entry("other", "eventually")
        turns = [[result(E, "pass"), result(other, "fail")]]
        assert not decide([E, other], turns, GOES_ON).over
        turns.append([result(other, "pass", 2)])
        assert decide([E, other], turns, GOES_ON) == Decision(True, "success")

    def test_without_an_eventually_only_the_limit_the_script_or_the_user_ends_it(self) -> None:
        assert not decide([A, F], [[result(A, "pass")]], GOES_ON).over
        assert decide([A, F], [[result(A, "pass")]], AT_LIMIT) == Decision(True, "limit")
        assert decide([A], [[result(A, "pass")]], StopConditions(blocked_by="user")) == Decision(True, "user")

    def test_a_decisive_success_ends_it_a_decisive_failure_fails_it(self) -> None:
        assert decide([A], [[result(A, "pass", decisive=True)]], GOES_ON) == Decision(True, "success")
        assert not decide([A], [[result(A, "pass", decisive=True)]], SCRIPT_LEFT).over
        turns = [[result(E, "fail", decisive=True)]]
        assert decide([E], turns, GOES_ON) == Decision(True, "failure")
        assert conclude([E], turns).outcome == "fail"

    def test_a_decisive_failure_stays_even_if_it_holds_later(self) -> None:
        turns = [[result(E, "fail", decisive=True)], [result(E, "pass", 2)]]
        assert conclude([E], turns).outcome == "fail"

    def test_errors_and_skips_end_nothing(self) -> None:
        assert not decide([A, E], [[result(A, "error"), result(E, "skip")]], GOES_ON).over

    def test_what_is_due_next(self) -> None:
        assert due([A, E, F], []) == [A, E]
        assert due([A, E, F], [[result(E, "fail")]]) == [A, E]
        assert due([A, E, F], [[result(E, "pass")]]) == [A]

    def test_pending_marks_only_what_may_still_hold(self) -> None:
        marked = [result(E, "fail"), result(E, "fail", decisive=True), result(A, "fail"), result(E, "pass")]
        mark_pending(marked)
        assert [r.pending for r in marked] == [True, False, False, False]


class TestConcluding:
    def test_everything_holds(self) -> None:
        turns = [[result(A, "pass", value=0.9), result(E, "pass")], [result(F, "pass", 2, value=0.7)]]
        verdict = conclude([A, E, F], turns)
        assert (verdict.outcome, verdict.reason, verdict.score) == ("pass", "All evaluators passed", 0.7)
        assert verdict.success

    def test_the_first_failure_explains_it(self) -> None:
        turns = [[result(A, "pass")], [result(A, "fail", 2)], [result(F, "fail", 2)]]
        verdict = conclude([F, A], turns)
        assert verdict.outcome == "fail"
        assert verdict.score == 0
        assert verdict.reason == "f fail"

    def test_an_eventually_counts_where_it_first_held(self) -> None:
        turns = [[result(E, "fail")], [result(E, "pass", 2, value=0.8)], [result(E, "pass", 3, value=0.6)]]
        verdict = conclude([E], turns)
        assert verdict.score == 0.8
        assert verdict.evaluator_results[0].turn == 2

    def test_an_eventually_that_never_held_fails_with_its_last_reason(self) -> None:
        turns = [[result(E, "fail")], [result(E, "fail", 2)]]
        mark_pending(turns[1])
        (shown,) = conclude([E], turns).evaluator_results
        assert shown.turn == 2
        assert not shown.pending

    def test_an_always_counts_with_its_smallest_value(self) -> None:
        turns = [[result(A, "pass", 1, value=0.9)], [result(A, "pass", 2, value=0.6)], [result(A, "pass", 3)]]
        assert conclude([A], turns).evaluator_results[0].turn == 2

    @pytest.mark.parametrize(
        ("of", "turns", "outcome"),
        [
            (A, ["pass", "error", "pass"], "error"),
            (A, ["error", "fail"], "fail"),
            (E, ["error", "pass"], "pass"),
            (E, ["error", "fail"], "error"),
            (E, ["fail", "fail"], "fail"),
            (E, ["skip", "skip"], "unasserted"),
            (E, ["skip", "fail"], "fail"),
            (E, ["skip", "error"], "error"),
            (F, ["error"], "error"),
            (F, ["fail"], "fail"),
            (F, ["skip"], "unasserted"),
            (A, ["skip", "pass"], "pass"),
        ],
    )
    def test_errors_and_skips_by_gate(self, of: Entry, turns: list[str], outcome: str) -> None:
        verdict = conclude([of], [[result(of, what, n)] for n, what in enumerate(turns, 1)])
        assert verdict.outcome == outcome
        assert (verdict.fault == "evaluator") == (outcome == "error")
        if outcome == "error":
            assert verdict.score is None

    def test_a_failure_outweighs_an_error(self) -> None:
        verdict = conclude([A, F], [[result(A, "error")], [result(F, "fail")]])
        assert (verdict.outcome, verdict.fault) == ("fail", None)

    def test_metrics_alone_assert_nothing(self) -> None:
        metric = entry("m", kind="metric")
        verdict = conclude([metric], [[result(metric, "pass", value=3.0)]])
        assert (verdict.outcome, verdict.reason) == ("unasserted", "No assertion held or failed")

    @pytest.mark.parametrize(("how", "total"), [("last", 2.0), ("sum", 9.0), ("mean", 3.0), ("max", 4.0)])
    def test_metrics_are_reduced_over_the_turns(self, how: str, total: float) -> None:
        metric = entry("m", kind="metric", reduce=how)
        turns = [[result(metric, "pass", n, value=v)] for n, v in enumerate((3.0, 4.0, 2.0), 1)]
        verdict = conclude([metric], turns)
        assert verdict.metrics == {"m": total}
        assert verdict.evaluator_results[0].value == total

    def test_missing_measurements_are_left_out(self) -> None:
        metric = entry("m", kind="metric", reduce="mean")
        there = result(metric, "pass", 1, value=4.0)
        missing = result(metric, "pass", 2, value=0.0, metadata={"missing": True})
        assert conclude([metric], [[there], [missing]]).metrics == {"m": 4.0}
        assert conclude([metric], [[missing]]).metrics == {}
        assert conclude([metric], [[missing]]).evaluator_results[0].value == 0

    def test_results_of_one_entry_latch_by_criterion(self) -> None:
        turns = [
            [result(E, "pass", 1, criterion_name="x"), result(E, "fail", 1, criterion_name="y")],
            [result(E, "fail", 2, criterion_name="x"), result(E, "pass", 2, criterion_name="y")],
        ]
        assert not has_held(E, turns[:1])
        assert has_held(E, turns)
        assert conclude([E], turns).outcome == "pass"

    def test_unnamed_results_of_one_entry_are_and_ed(self) -> None:
        turns = [[result(A, "pass", value=0.9), result(A, "fail", value=0.2), result(A, "skip")]]
        verdict = conclude([A], turns)
        assert verdict.outcome == "fail"
        assert verdict.score == 0.2
        assert [row.value for row in verdict.evaluator_results] == [0.9, 0.2, None]

    def test_its_json_is_camel_case(self) -> None:
        turns = [[result(A, "pass", value=0.5, criterion_name="q", score=True)]]
        verdict = conclude([A], turns)
        shown = verdict.evaluator_results[0].to_json()
        assert (shown["criterionName"], shown["durationMs"]) == ("q", 0.0)
        assert verdict.model_dump(by_alias=True) == {
            "success": True,
            "outcome": "pass",
            "fault": None,
            "score": 0.5,
            "overallScore": None,
            "reason": "All evaluators passed",
        }


# --- properties -------------------------------------------------------------------------------------

GATES: tuple[Gate, ...] = ("always", "eventually", "finally")
whats = st.sampled_from(["pass", "fail", "error", "skip"])
values = st.none() | st.floats(0, 1)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Entry], list[list[Finding]]]:
    """Entries with unique names, and results as a turn loop would gather them."""
    kinds = draw(st.lists(st.tuples(st.sampled_from(GATES), st.booleans()), min_size=1, max_size=5))
    entries = with_keys(
        [entry(f"n{i}", gate, "metric" if metric else "assertion") for i, (gate, metric) in enumerate(kinds)]
    )
    length = draw(st.integers(1, 4))
    turns: list[list[Finding]] = []
    for turn in range(1, length + 1):
        turns.append([_drawn(draw, e, turn) for e in due(entries, turns)])
    turns.append([_drawn(draw, e, length) for e in entries if e.gate == "finally"])
    return entries, turns


def _drawn(draw: st.DrawFn, of: Entry, turn: int) -> Finding:
    what = draw(whats)
    if of.kind == "metric":
        return result(of, "error" if what == "error" else "pass", turn, value=draw(st.floats(-100, 100)))
    return result(of, what, turn, value=draw(values) if what in ("pass", "fail") else None)


def gist(verdict: Verdict) -> tuple[str, float | None, dict[str, float]]:
    return verdict.outcome, verdict.score, verdict.metrics


@given(conversations(), st.randoms())
def test_order_does_not_matter(conversation: Any, random: Any) -> None:
    entries, turns = conversation
    shuffled = list(entries)
    random.shuffle(shuffled)
    mixed = [random.sample(turn, len(turn)) for turn in turns]
    assert gist(conclude(shuffled, mixed)) == gist(conclude(entries, turns))


@given(conversations(), st.sampled_from(GATES))
def test_a_passing_assertion_never_turns_a_pass_into_a_fail(conversation: Any, gate: Gate) -> None:
    entries, turns = conversation
    extra = entry("extra", gate)
    added = [[*turn, result(extra, "pass", n)] for n, turn in enumerate(turns, 1)]
    before = conclude(entries, turns).outcome
    assert conclude([*entries, extra], added).outcome == ("pass" if before == "unasserted" else before)


@given(conversations(), st.sampled_from(["pass", "error"]))
def test_a_metric_never_changes_the_outcome(conversation: Any, what: str) -> None:
    entries, turns = conversation
    extra = entry("extra", kind="metric")
    added = [[*turn, result(extra, what, n, value=1.0)] for n, turn in enumerate(turns, 1)]
    before, after = conclude(entries, turns), conclude([*entries, extra], added)
    assert (before.outcome, before.score, before.reason) == (after.outcome, after.score, after.reason)


@given(conversations(), st.sampled_from(GATES))
def test_a_skip_neither_passes_nor_fails_anything(conversation: Any, gate: Gate) -> None:
    entries, turns = conversation
    extra = entry("extra", gate)
    added = [[*turn, result(extra, "skip", n)] for n, turn in enumerate(turns, 1)]
    assert gist(conclude([*entries, extra], added)) == gist(conclude(entries, turns))


@given(conversations())
def test_an_error_needs_something_that_errored_and_a_failure_something_that_failed(conversation: Any) -> None:
    entries, turns = conversation
    verdict = conclude(entries, turns)
    seen = [r for turn in turns for r in turn if r.kind == "assertion"]
    if verdict.outcome == "error":
        assert any(r.error for r in seen)
        assert verdict.score is None
    if verdict.outcome == "fail":
        assert any(r.failed for r in seen)
    if verdict.outcome == "pass":
        assert any(r.holds for r in seen)
    if verdict.outcome == "unasserted":
        assert all(r.skipped for r in seen)
    if verdict.score is not None:
        assert 0 <= verdict.score <= 1


@given(conversations(), st.booleans(), st.sampled_from([None, "script", "user", "limit"]))
def test_a_conversation_without_a_way_on_is_over(conversation: Any, script_left: bool, blocked: Any) -> None:
    entries, turns = conversation
    live = turns[:-1]
    decision = decide(entries, live, StopConditions(script_left=script_left, blocked_by=blocked))
    if blocked is not None:
        assert decision.over
    if decision.over and decision.ended_by == "success":
        assert not script_left
    assert decision.over == (decision.ended_by is not None)


@given(conversations())
def test_a_conversation_that_ended_in_failure_fails(conversation: Any) -> None:
    entries, turns = conversation
    for n in range(1, len(turns)):
        if decide(entries, turns[:n], StopConditions()).ended_by == "failure":
            finals = [replace(r, turn=n) for r in turns[-1]]
            assert conclude(entries, [*turns[:n], finals]).outcome == "fail"
