"""Verdicts where the first, the last, the worse of two or the decisive one matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.evaluators.test_aggregate import GOES_ON, SCRIPT_LEFT, A, E, F, entry, result

from evalstudio.evaluators.aggregate import (
    Decision,
    StopConditions,
    Verdict,
    conclude,
    conclude_once,
    decide,
    due,
    mark_pending,
    run_evaluators,
)
from evalstudio.evaluators.contract import EvaluationResult, EvaluatorContext, TurnFacts
from evalstudio.evaluators.criteria import EvaluationCriteria
from evalstudio.evaluators.definition import define_evaluator

M = entry("m", kind="metric")


class TestWhatIsDue:
    def test_an_always_runs_on_every_turn_whether_it_held_or_not(self) -> None:
        assert due([A], [[result(A, "pass")]]) == [A]
        assert due([A], [[result(A, "fail")]]) == [A]

    def test_a_metric_is_never_pending(self) -> None:
        metric = entry("m", "eventually", kind="metric")
        measured = result(metric, "fail")
        mark_pending([measured])
        assert not measured.pending


class TestDeciding:
    def test_only_a_failure_of_the_last_turn_ends_it(self) -> None:
        before = [[result(A, "fail")], [result(A, "pass", 2)]]
        assert not decide([A], before, GOES_ON).over
        assert decide([A], before[::-1], GOES_ON) == Decision(True, "failure")

    def test_before_the_first_turn_nothing_has_ended_it(self) -> None:
        assert decide([A, E], [], GOES_ON) == Decision(False)
        assert decide([], [], StopConditions(blocked_by="limit")) == Decision(True, "limit")

    def test_a_metric_neither_ends_it_nor_keeps_it_going(self) -> None:
        metric = entry("m", "eventually", kind="metric")
        unmet = [[result(E, "pass"), result(metric, "fail")]]
        assert decide([E, metric], unmet, GOES_ON) == Decision(True, "success")
        assert not decide([metric], [[result(metric, "pass")]], GOES_ON).over
        assert not decide([M], [[result(M, "fail")]], GOES_ON).over
        assert not decide([M], [[result(M, "fail", decisive=True)]], GOES_ON).over
        assert not decide([M], [[result(M, "pass", decisive=True)]], GOES_ON).over

    def test_a_decisive_success_among_others_ends_it(self) -> None:
        turns = [[result(A, "pass"), result(F, "pass", decisive=True)], [result(A, "pass", 2)]]
        assert decide([A], turns, GOES_ON) == Decision(True, "success")

    def test_what_is_decisive_but_did_not_hold_is_no_success(self) -> None:
        for what in ("error", "skip", "fail"):
            turns = [[result(A, what, decisive=True)]]
            assert decide([A], turns, GOES_ON, stop_on_failure=False) == Decision(False), what

    def test_an_eventually_that_failed_does_not_end_it_and_a_finally_that_failed_neither(self) -> None:
        assert not decide([F], [[result(F, "fail")]], GOES_ON).over
        assert not decide([E], [[result(E, "fail")]], GOES_ON).over

    def test_a_script_that_goes_on_is_blocked_all_the_same(self) -> None:
        blocked = replace(SCRIPT_LEFT, blocked_by="limit")
        assert decide([E], [[result(E, "pass")]], blocked) == Decision(True, "limit")


class TestTheReason:
    def test_the_earliest_failure_explains_it_whatever_the_order(self) -> None:
        first, second = result(A, "fail", 1), result(F, "fail", 2)
        for results in ([first, second], [second, first]):
            assert conclude_once(results).reason == "a fail"

    def test_what_was_only_awaited_explains_it_last(self) -> None:
        awaited, later = result(E, "fail", 1), result(A, "fail", 3)
        for results in ([awaited, later], [later, awaited]):
            assert conclude_once(results).reason == "a fail"

    def test_a_decisive_failure_was_not_awaited(self) -> None:
        decisive, later = result(E, "fail", 1, decisive=True), result(A, "fail", 3)
        for results in ([decisive, later], [later, decisive]):
            assert conclude_once(results).reason == "e fail"

    def test_the_first_error_explains_it_whatever_the_order(self) -> None:
        first, second = result(A, "error", 1), replace(result(F, "error", 2), fault="judge")
        for results in ([first, second], [second, first]):
            verdict = conclude_once(results)
            assert (verdict.reason, verdict.fault) == ("a error", "evaluator")

    def test_a_failure_without_a_reason_is_named_by_its_label(self) -> None:
        assert conclude_once([replace(result(A, "fail"), reason="")]).reason == "Check failed"

    def test_the_first_failure_of_an_always_counts(self) -> None:
        turns = [[result(A, what, turn)] for turn, what in enumerate(("pass", "fail", "fail"), 1)]
        (counted,) = conclude([A], turns).evaluator_results
        assert counted.turn == 2

    def test_the_first_error_of_an_always_counts(self) -> None:
        turns = [[result(A, what, turn)] for turn, what in enumerate(("pass", "error", "error"), 1)]
        (counted,) = conclude([A], turns).evaluator_results
        assert counted.turn == 2

    def test_the_last_error_of_an_eventually_that_never_held_counts(self) -> None:
        whats = ("error", "error", "fail", "error", "fail")
        turns = [[result(E, what, turn)] for turn, what in enumerate(whats, 1)]
        (counted,) = conclude([E], turns).evaluator_results
        assert counted.turn == 4

    def test_the_last_failure_of_an_eventually_that_never_held_counts(self) -> None:
        turns = [[result(E, "fail", turn)] for turn in (1, 2, 3)]
        (counted,) = conclude([E], turns).evaluator_results
        assert counted.turn == 3

    def test_the_first_decisive_failure_of_an_eventually_counts(self) -> None:
        turns = [[result(E, "fail", turn, decisive=turn > 1)] for turn in (1, 2, 3)]
        (counted,) = conclude([E], turns).evaluator_results
        assert counted.turn == 2

    def test_where_an_eventually_first_held_counts(self) -> None:
        turns = [[result(E, "pass", turn)] for turn in (1, 2, 3)]
        (counted,) = conclude([E], turns).evaluator_results
        assert counted.turn == 1

    def test_of_nothing_but_skips_the_last_counts(self) -> None:
        turns = [[result(A, "skip", turn)] for turn in (1, 2, 3)]
        verdict = conclude([A], turns)
        assert [one.turn for one in verdict.evaluator_results] == [3]
        assert (verdict.outcome, verdict.asserted, verdict.score) == ("pass", False, None)

    def test_a_skip_beside_a_success_is_not_what_counts(self) -> None:
        turns = [[result(A, "skip", 1)], [result(A, "pass", 2)], [result(A, "skip", 3)]]
        verdict = conclude([A], turns)
        assert [one.turn for one in verdict.evaluator_results] == [2]
        assert verdict.asserted


def and_ed(*results: Any) -> Any:
    """What counts of several results of one entry in one turn."""
    (one,) = conclude([A], [list(results)]).evaluator_results
    return one


class TestAndedResults:
    RANKED = ("skip", "pass", "error", "fail")

    @pytest.mark.parametrize("worse", RANKED)
    def test_failure_outweighs_error_outweighs_success_outweighs_skip(self, worse: str) -> None:
        for better in self.RANKED[: self.RANKED.index(worse)]:
            for pair in ((better, worse), (worse, better)):
                assert and_ed(*(result(A, what) for what in pair)).reason == f"a {worse}", pair

    def test_of_two_alike_the_first_explains_it(self) -> None:
        for what in self.RANKED:
            first, second = result(A, what), replace(result(A, what), reason="second")
            assert and_ed(first, second).reason == f"a {what}"

    @pytest.mark.parametrize("what", ["pass", "fail"])
    def test_the_smaller_value_counts(self, what: str) -> None:
        for values in ((0.9, 0.4), (0.4, 0.9), (None, 0.4), (0.4, None)):
            assert and_ed(*(result(A, what, value=value) for value in values)).value == 0.4
        assert and_ed(result(A, what), result(A, what)).value is None

    def test_an_error_and_a_skip_keep_what_they_had(self) -> None:
        assert and_ed(result(A, "error"), result(A, "pass", value=0.5)).value is None
        assert and_ed(result(A, "skip", value=0.7), result(A, "skip", value=0.5)).value == 0.7

    @pytest.mark.parametrize(
        ("first", "second", "decisive"),
        [
            (("fail", True), ("fail", False), True),
            (("fail", False), ("fail", True), True),
            (("fail", False), ("fail", False), False),
            (("pass", False), ("pass", True), True),
            (("pass", True), ("pass", False), True),
            # A decisive success does not make the failure beside it decisive.
            (("fail", False), ("pass", True), False),
            (("fail", True), ("pass", False), True),
            (("fail", True), ("pass", True), True),
        ],
    )
    def test_the_decisive_flag_stays_with_what_it_decided(
        self, first: tuple[str, bool], second: tuple[str, bool], decisive: bool
    ) -> None:
        for pair in ((first, second), (second, first)):
            counted = and_ed(*(result(A, what, decisive=flag) for what, flag in pair))
            assert counted.decisive == decisive, pair

    def test_a_decisive_success_beside_a_plain_failure_leaves_an_eventually_pending(self) -> None:
        turns = [
            [result(E, "fail"), result(E, "pass", decisive=True)],
            [result(E, "pass", 2), result(E, "pass", 2)],
        ]
        assert conclude([E], turns).outcome == "pass"


class TestMetrics:
    def test_of_nothing_but_missing_measurements_the_last_is_shown(self) -> None:
        turns = [[result(M, "pass", turn, metadata={"missing": True}, value=0.0)] for turn in (1, 2)]
        (shown,) = conclude([M], turns).evaluator_results
        assert shown.turn == 2

    def test_the_last_measurement_is_shown_not_the_last_turn(self) -> None:
        turns = [
            [result(M, "pass", 1, value=1.0)],
            [result(M, "pass", 2, value=2.0)],
            [result(M, "error", 3)],
            [result(M, "pass", 4, value=0.0, metadata={"missing": True})],
        ]
        verdict = conclude([M], turns)
        (shown,) = verdict.evaluator_results
        assert (shown.turn, verdict.metrics) == (2, {"m": 2.0})

    def test_the_value_of_an_assertion_is_no_metric(self) -> None:
        assert conclude_once([result(A, "pass", value=0.5)]).metrics == {}

    def test_a_metric_without_a_value_is_left_out(self) -> None:
        assert conclude_once([result(M, "error")]).metrics == {}

    def test_a_metric_that_never_ran_is_left_out(self) -> None:
        assert conclude([M], [[result(A, "pass")]]).evaluator_results == []


class TestCriteria:
    POLITE = EvaluationCriteria(name="polite", scale="numeric", range=(0, 10))

    def test_named_results_are_weighed_and_others_are_not(self) -> None:
        named = result(A, "pass", criterion_name="polite", score=5)
        other = replace(result(F, "pass", score=9), criterion_name=None)
        facts = TurnFacts(criteria=[self.POLITE])
        verdict = conclude([A, F], [[named], [other]], facts)
        assert verdict.overall_score == 0.5
        assert verdict.coverage is not None
        assert verdict.coverage.unknown == []
        assert verdict.to_json()["coverage"] == verdict.coverage.to_json()

    def test_an_unbounded_score_is_excluded(self) -> None:
        unbounded = result(A, "pass", criterion_name="polite", score=5, metadata={"unbounded": True})
        open_ended = EvaluationCriteria(name="polite", scale="numeric")
        verdict = conclude([A], [[unbounded]], TurnFacts(criteria=[open_ended]))
        assert verdict.overall_score is None

    def test_without_criteria_nothing_is_weighed(self) -> None:
        named = result(A, "pass", criterion_name="polite", score=5)
        for facts in (None, TurnFacts()):
            verdict = conclude([A], [[named]], facts)
            assert (verdict.overall_score, verdict.coverage) == (None, None)


class TestOneTurnAlone:
    async def test_models_are_asked_even_after_a_failure(self) -> None:
        def fails(ctx: EvaluatorContext[Any]) -> bool:
            return False

        fast = define_evaluator("fast")(fails).use(name="fast")
        slow = define_evaluator("slow", cost="llm")(fails).use(name="slow")
        verdict = await run_evaluators([fast, slow], TurnFacts())
        assert [one.name for one in verdict.evaluator_results] == ["fast", "slow"]

    async def test_criteria_are_weighed(self) -> None:
        def scores(ctx: EvaluatorContext[Any]) -> EvaluationResult:
            return EvaluationResult(criterion_name="polite", score=True)

        facts = TurnFacts(criteria=[EvaluationCriteria(name="polite")])
        verdict = await run_evaluators([define_evaluator("scores")(scores).use(name="scores")], facts)
        assert verdict.overall_score == 1.0


def test_a_verdict_as_json_has_every_field_by_its_name() -> None:
    verdict = Verdict("error", "why", 0.5, "judge", metrics={"m": 1.0}, overall_score=0.25)
    assert verdict.to_json() == {
        "success": False,
        "outcome": "error",
        "fault": "judge",
        "score": 0.5,
        "overallScore": 0.25,
        "reason": "why",
        "evaluatorResults": [],
        "metrics": {"m": 1.0},
        "coverage": None,
    }
    assert Verdict("pass", "").asserted
