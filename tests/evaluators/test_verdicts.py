"""Verdicts where the first, the last, the worse of two or the decisive one matters."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.evaluators.test_aggregate import GOES_ON, SCRIPT_LEFT, A, E, F, entry, result

from evalstudio.evaluators.aggregate import (
    Decision,
    StopConditions,
    conclude,
    conclude_once,
    decide,
    due,
    has_held,
    mark_pending,
    run_evaluators,
    score_on_scale,
)
from evalstudio.evaluators.contract import EvaluationResult, EvaluatorContext, TurnFacts
from evalstudio.evaluators.criteria import EvaluationCriteria
from evalstudio.evaluators.definition import define_evaluator
from evalstudio.evaluators.results import Verdict, with_later

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
            assert (verdict.reason, verdict.fault) == ('Evaluator "a": a error', "evaluator")

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
        assert (verdict.outcome, verdict.score) == ("unasserted", None)

    def test_a_skip_beside_a_success_is_not_what_counts(self) -> None:
        turns = [[result(A, "skip", 1)], [result(A, "pass", 2)], [result(A, "skip", 3)]]
        verdict = conclude([A], turns)
        assert [one.turn for one in verdict.evaluator_results] == [2]
        assert verdict.outcome == "pass"


class TestSeveralRules:
    RANKED = ("skip", "pass", "error", "fail")

    @pytest.mark.parametrize("of", [A, E, F], ids=["always", "eventually", "finally"])
    def test_each_is_a_row_and_the_worst_decides(self, of: Any) -> None:
        for place, worse in enumerate(self.RANKED):
            for better in self.RANKED[:place]:
                for pair in ((better, worse), (worse, better)):
                    verdict = conclude([of], [[result(of, what) for what in pair]])
                    assert [row.reason for row in verdict.evaluator_results] == [
                        f"{of.key} {what}" for what in pair
                    ]
                    assert verdict.outcome == worse, pair

    def test_of_two_failures_the_first_explains_it(self) -> None:
        first, second = result(A, "fail"), replace(result(A, "fail"), reason="second")
        assert conclude([A], [[first, second]]).reason == "a fail"

    @pytest.mark.parametrize("what", ["pass", "fail"])
    def test_the_smallest_value_is_the_score(self, what: str) -> None:
        for values in ((0.9, 0.4), (0.4, 0.9)):
            assert conclude([A], [[result(A, what, value=value) for value in values]]).score == 0.4

    def test_each_rule_counts_with_its_own_weakest_turn(self) -> None:
        turns = [
            [result(A, "pass", 1, value=0.9), result(A, "pass", 1, value=0.2)],
            [result(A, "pass", 2, value=0.5), result(A, "pass", 2, value=0.7)],
        ]
        rows = conclude([A], turns).evaluator_results
        assert [(row.turn, row.value) for row in rows] == [(2, 0.5), (1, 0.2)]

    def test_rules_of_an_eventually_must_hold_on_one_turn_together(self) -> None:
        turns = [
            [result(E, "pass", 1), result(E, "fail", 1)],
            [result(E, "fail", 2), result(E, "pass", 2)],
        ]
        verdict = conclude([E], turns)
        assert verdict.outcome == "fail"
        assert [(row.turn, row.success) for row in verdict.evaluator_results] == [(2, False), (2, True)]
        turns.append([result(E, "pass", 3), result(E, "pass", 3)])
        verdict = conclude([E], turns)
        assert verdict.outcome == "pass"
        assert [row.turn for row in verdict.evaluator_results] == [3, 3]

    @pytest.mark.parametrize(
        ("first", "second", "outcome"),
        [
            (("fail", True), ("fail", False), "fail"),
            (("fail", False), ("fail", False), "pass"),
            (("fail", False), ("pass", True), "pass"),
            (("fail", True), ("pass", False), "fail"),
            (("fail", True), ("pass", True), "fail"),
        ],
    )
    def test_a_decisive_failure_of_one_rule_stays(
        self, first: tuple[str, bool], second: tuple[str, bool], outcome: str
    ) -> None:
        for pair in ((first, second), (second, first)):
            turns = [
                [result(E, what, decisive=flag) for what, flag in pair],
                [result(E, "pass", 2), result(E, "pass", 2)],
            ]
            assert conclude([E], turns).outcome == outcome, pair

    @pytest.mark.parametrize(
        ("turns", "counts", "outcome"),
        [
            ((("fail", "fail"), ("skip", "skip")), 1, "fail"),
            ((("skip", "skip"), ("skip", "skip")), 2, "unasserted"),
            ((("error", "pass"), ("fail", "fail")), 1, "error"),
            ((("error", "pass"), ("error", "skip")), 2, "error"),
            ((("fail", "error"), ("fail", "skip"), ("error", "skip")), 3, "error"),
            ((("fail", "error"), ("fail", "skip"), ("skip", "skip")), 2, "fail"),
            ((("skip", "pass"), ("pass", "pass")), 1, "pass"),
            ((("error", "pass"), ("pass", "pass"), ("fail", "fail")), 2, "pass"),
        ],
    )
    def test_which_turn_counts_for_an_eventually(self, turns: Any, counts: int, outcome: str) -> None:
        verdict = conclude([E], [[result(E, what, n) for what in pair] for n, pair in enumerate(turns, 1)])
        assert ({row.turn for row in verdict.evaluator_results}, verdict.outcome) == ({counts}, outcome)

    def test_a_decisive_error_or_success_does_not_count_as_a_decisive_failure(self) -> None:
        for what in ("error", "skip"):
            first = [result(E, "fail"), result(E, what, decisive=True)]
            assert conclude([E], [first, [result(E, "pass", 2)]]).outcome == "pass"

    def test_the_first_decisive_failure_counts(self) -> None:
        turns = [[result(E, "fail", n, decisive=True), result(E, "fail", n)] for n in (1, 2)]
        assert {row.turn for row in conclude([E], turns).evaluator_results} == {1}

    def test_nothing_is_pending_when_it_is_over(self) -> None:
        waiting = [result(E, "fail", n, pending=True) for n in (1, 2)]
        assert [row.pending for row in conclude([E], [[one] for one in waiting]).evaluator_results] == [False]

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

    def test_a_missing_measurement_scores_nothing(self) -> None:
        assert score_on_scale(result(M, "pass", value=0.0, metadata={"missing": True}), None) is None

    def test_a_metric_that_never_ran_is_left_out(self) -> None:
        assert conclude([M], [[result(A, "pass")]]).evaluator_results == []


def scored(**fields: Any) -> Verdict:
    """The verdict over one result about the criterion ``polite``, from 0 to 10."""
    what = fields.pop("what", "pass")
    kind = fields.pop("kind", "assertion")
    polite = EvaluationCriteria(name="polite", scale="numeric", range=(0, 10))
    of = entry("m", kind=kind)
    return conclude([of], [[result(of, what, criterion_name="polite", **fields)]], [polite])


class TestCriteria:
    def test_its_own_score_comes_before_its_value_and_its_value_before_its_success(self) -> None:
        assert scored(score=5, value=0.9).overall_score == 0.5
        assert scored(score=0, value=0.9).overall_score == 0.0
        assert scored(value=0.25).overall_score == 0.25
        assert scored(what="fail", value=0.25).overall_score == 0.25
        assert scored().overall_score == 1.0
        assert scored(what="fail").overall_score == 0.0

    def test_the_value_of_a_metric_is_a_raw_score(self) -> None:
        assert scored(kind="metric", value=5.0).overall_score == 0.5
        assert scored(kind="metric", value=5.0).criterion_scores == {"polite": 0.5}

    @pytest.mark.parametrize("what", ["error", "skip"])
    def test_an_error_and_a_skip_score_nothing(self, what: str) -> None:
        assert score_on_scale(result(A, what, score=5, value=0.5), None) is None
        verdict = scored(what=what, score=5, value=0.5)
        assert verdict.overall_score is None
        assert verdict.coverage is not None
        assert (verdict.coverage.errors, verdict.coverage.skipped) == (
            int(what == "error"),
            int(what == "skip"),
        )

    def test_where_the_scale_knows_only_yes_and_no_the_evaluators_own_verdict_counts(self) -> None:
        for what, score in (("pass", 1.0), ("fail", 0.0)):
            verdict = conclude(
                [A],
                [[result(A, what, value=0.4, criterion_name="polite")]],
                [EvaluationCriteria(name="polite")],
            )
            assert verdict.overall_score == score

    def test_an_entry_named_after_a_criterion_is_about_it_and_others_are_about_none(self) -> None:
        verdict = conclude([A, F], [[result(A, "pass")], [result(F, "fail")]], [EvaluationCriteria(name="a")])
        assert verdict.criterion_scores == {"a": 1.0}
        assert verdict.coverage is not None
        assert (verdict.coverage.unknown, verdict.coverage.missing) == ([], [])

    def test_what_it_names_comes_before_what_it_is_called(self) -> None:
        named = result(A, "fail", criterion_name="b")
        criteria = [EvaluationCriteria(name="a"), EvaluationCriteria(name="b")]
        assert conclude([A], [[named]], criteria).criterion_scores == {"b": 0.0}

    @pytest.mark.parametrize("metadata", [{"unbounded": True}, {"unbounded": False}, {}])
    def test_an_unbounded_score_needs_a_range(self, metadata: dict[str, bool]) -> None:
        finding = result(A, "pass", criterion_name="polite", score=50, metadata=metadata)
        open_ended = EvaluationCriteria(name="polite", scale="numeric")
        verdict = conclude([A], [[finding]], [open_ended])
        assert verdict.overall_score == (None if metadata.get("unbounded") else 0.5)

    def test_a_criterion_nobody_declared_is_told_and_its_value_stays_as_it_is(self) -> None:
        for value in (None, 0.5):
            named = result(A, "pass", criterion_name="polite", value=value)
            verdict = conclude([A, F], [[named], [result(F, "pass")]])
            assert verdict.coverage is not None
            assert (verdict.coverage.unknown, verdict.overall_score) == (["polite"], None)

    def test_declared_criteria_nobody_scored_are_missing(self) -> None:
        verdict = conclude([A], [[result(A, "pass")]], [EvaluationCriteria(name="polite")])
        assert verdict.coverage is not None
        assert verdict.coverage.missing == ["polite"]

    def test_every_error_is_counted_whatever_it_is_about(self) -> None:
        turns = [[result(A, "error"), result(M, "error")], [result(F, "pass")]]
        verdict = conclude([A, M, F], turns, [EvaluationCriteria(name="polite")])
        assert verdict.coverage is not None
        assert verdict.coverage.errors == 2

    def test_without_criteria_nothing_is_weighed(self) -> None:
        verdict = conclude([A], [[result(A, "pass", score=5)]])
        assert (verdict.overall_score, verdict.coverage) == (None, None)


class TestOneTurnAlone:
    async def test_models_are_asked_even_after_a_failure(self) -> None:
        def fails(ctx: EvaluatorContext[Any]) -> bool:
            return False

        fast = define_evaluator("fast")(fails).use(name="fast")
        slow = define_evaluator("slow", cost="llm")(fails).use(name="slow")
        verdict = await run_evaluators([fast, slow], TurnFacts())
        assert [(one.name, one.not_asked) for one in verdict.evaluator_results] == [
            ("fast", False),
            ("slow", False),
        ]

    async def test_no_more_run_at_once_than_the_limit_allows(self) -> None:
        active, most = 0, 0

        async def waits(ctx: EvaluatorContext[Any]) -> bool:
            nonlocal active, most
            active += 1
            most = max(most, active)
            await asyncio.sleep(0.01)
            active -= 1
            return True

        entries = [define_evaluator("waits")(waits).use(name=f"waits {number}") for number in range(4)]
        await run_evaluators(entries, TurnFacts(), asyncio.Semaphore(2))
        assert most == 2

    async def test_criteria_are_weighed(self) -> None:
        def scores(ctx: EvaluatorContext[Any]) -> EvaluationResult:
            return EvaluationResult(criterion_name="polite", score=True)

        facts = TurnFacts(criteria=[EvaluationCriteria(name="polite")])
        verdict = await run_evaluators([define_evaluator("scores")(scores).use(name="scores")], facts)
        assert verdict.overall_score == 1.0


class TestWhatIsShown:
    def test_a_budget_that_was_kept_shows_where_it_was_used_most(self) -> None:
        used = (0.2, 0.9, 0.4)
        turns = [[result(A, "pass", n, metadata={"budgetUsed": share})] for n, share in enumerate(used, 1)]
        assert conclude([A], turns).evaluator_results[0].turn == 2

    def test_a_budget_for_the_whole_run_shows_its_total(self) -> None:
        turns = [[result(A, "pass", n, metadata={"budgetUsed": 0.5})] for n in (1, 2)]
        assert conclude([A], turns).evaluator_results[0].turn == 2

    def test_a_sum_has_a_reason_and_metadata_that_fit_it(self) -> None:
        metric = replace(entry("m", kind="metric", reduce="sum"), unit="calls")
        seen = [
            {"n": 1, "names": ["a"], "track": "all", "odd": 1},
            {"n": 2, "names": ["b"], "track": "all", "odd": ""},
        ]
        turns = [[result(metric, "pass", n, value=float(n), metadata=data)] for n, data in enumerate(seen, 1)]
        turns.append([result(metric, "pass", 3, metadata={"missing": True})])
        (shown,) = conclude([metric], turns).evaluator_results
        assert (shown.value, shown.reason) == (3.0, "3 calls in all, over 2 turns (1 of 3 not measured)")
        assert shown.metadata == {"n": 3, "names": ["a", "b"], "track": "all", "reduce": "sum", "turns": 2}

    def test_what_is_not_on_every_turn_or_not_to_be_added_is_left_as_it_is(self) -> None:
        seen = [
            {"first": 1, "yes": True, "mixed": ["a"], "same": "x", "cleared": None, "changed": "a"},
            {"later": None, "yes": True, "mixed": 1, "same": "x", "cleared": None, "changed": "a"},
            {"later": None, "yes": True, "mixed": 1, "same": "x", "cleared": None, "changed": "b"},
        ]
        metric = entry("m", kind="metric", reduce="sum")
        turns = [[result(metric, "pass", n, value=1.0, metadata=data)] for n, data in enumerate(seen, 1)]
        (shown,) = conclude([metric], turns).evaluator_results
        assert shown.metadata == {"yes": True, "same": "x", "cleared": None, "reduce": "sum", "turns": 3}
        assert shown.metadata["yes"] is True

    def test_a_mean_adds_nothing_up(self) -> None:
        metric = entry("m", kind="metric", reduce="mean")
        data = {"n": 2, "names": ["a"]}
        turns = [[result(metric, "pass", n, value=1.0, metadata=data)] for n in (1, 2)]
        (shown,) = conclude([metric], turns).evaluator_results
        assert shown.metadata == {"n": 2, "names": ["a"], "reduce": "mean", "turns": 2}

    @pytest.mark.parametrize(("how", "turn"), [("last", 3), ("max", 2)])
    def test_the_last_of_equal_measurements_is_shown_with_its_own_reason(self, how: str, turn: int) -> None:
        metric = entry("m", kind="metric", reduce=how)
        turns = [[result(metric, "pass", n, value=v)] for n, v in enumerate((4.0, 4.0, 1.0), 1)]
        (shown,) = conclude([metric], turns).evaluator_results
        assert (shown.turn, shown.reason) == (turn, "m pass")

    @pytest.mark.parametrize("how", ["sum", "mean"])
    def test_a_single_measurement_keeps_its_own_reason(self, how: str) -> None:
        metric = entry("m", kind="metric", reduce=how)
        turns = [[result(metric, "pass", 1, value=4.0, metadata={"n": 1})], [result(metric, "error", 2)]]
        (shown,) = conclude([metric], turns).evaluator_results
        assert (shown.reason, shown.metadata) == ("m pass", {"n": 1})

    def test_of_several_turns_on_which_it_was_not_asked_the_last_is_shown(self) -> None:
        spared = [
            [result(A, "pass", n), result(E, "skip", n, metadata={"notAsked": True}), result(F, "pass", n)]
            for n in (1, 2)
        ]
        assert [(row.name, row.turn) for row in conclude([E], spared).evaluator_results] == [("e", 2)]

    def test_a_mean_is_explained_and_the_largest_is_that_of_its_turn(self) -> None:
        for how, turn, reason in (("mean", 3, "2 on average, over 3 turns"), ("max", 2, "m pass")):
            metric = entry("m", kind="metric", reduce=how)
            turns = [[result(metric, "pass", n, value=v)] for n, v in enumerate((1.0, 4.0, 1.0), 1)]
            (shown,) = conclude([metric], turns).evaluator_results
            assert (shown.turn, shown.reason) == (turn, reason)

    def test_what_was_never_measured_is_missing_not_zero(self) -> None:
        missing = result(M, "pass", metadata={"missing": True})
        (shown,) = conclude([M], [[missing]]).evaluator_results
        assert (shown.value, shown.word) == (None, "missing")

    def test_not_being_asked_is_shown_only_where_there_is_nothing_else(self) -> None:
        spared = result(E, "skip", 1, metadata={"notAsked": True})
        (shown,) = conclude([E], [[spared]]).evaluator_results
        assert shown.not_asked
        turns = [[spared], [result(E, "pass", 2, criterion_name="x")]]
        assert has_held(E, turns)
        assert [row.criterion_name for row in conclude([E], turns).evaluator_results] == ["x"]

    def test_what_was_found_later_takes_the_place_of_what_was_found_before(self) -> None:
        before = [result(A, "pass"), result(E, "pass"), result(A, "skip")]
        later = [result(F, "fail"), result(A, "fail")]
        merged = with_later(before, later)
        assert [(one.name, one.reason) for one in merged] == [
            ("a", "a fail"),
            ("e", "e pass"),
            ("f", "f fail"),
        ]


TEN = EvaluationCriteria(name="polite", scale="numeric", range=(0, 10))


class TestScoresThatCannotBeRead:
    @pytest.mark.parametrize(
        ("criteria", "why"),
        [([TEN], "cannot be read"), ([], 'no criterion is named "polite"')],
        ids=["on its scale", "without a criterion"],
    )
    def test_an_assertion_with_one_is_an_error(self, criteria: list[EvaluationCriteria], why: str) -> None:
        odd = result(A, "pass", criterion_name="polite", score="lots", decisive=True)
        verdict = conclude_once([odd, result(A, "pass")], criteria)
        assert (verdict.outcome, verdict.fault) == ("error", "evaluator")
        (shown, other) = verdict.evaluator_results
        assert shown.error is not None
        assert why in shown.error
        assert shown.reason == f"Evaluator error: {shown.error}"
        assert (shown.success, shown.decisive, shown.fault) == (False, False, "evaluator")
        assert other.error is None
        assert verdict.coverage is not None
        assert verdict.coverage.errors == 1

    @pytest.mark.parametrize("others", [[], [result(A, "pass")]], ids=["alone", "beside a pass"])
    def test_a_metric_with_one_stays_a_measurement_and_the_whole_is_an_error(self, others: Any) -> None:
        odd = result(M, "pass", criterion_name="polite", score="lots")
        verdict = conclude_once([odd, *others], [TEN])
        assert verdict.evaluator_results[0].error is None
        assert (verdict.outcome, verdict.fault, verdict.score) == ("error", "evaluator", None)
        assert verdict.reason.startswith('Check could not score "polite": ')

    def test_a_metric_that_broke_and_should_have_scored_a_criterion_makes_it_an_error(self) -> None:
        verdict = conclude_once([result(M, "error", criterion_name="polite"), result(A, "pass")], [TEN])
        assert (verdict.outcome, verdict.reason) == ("error", 'Check could not score "polite": broken')

    def test_what_has_no_criterion_or_one_nobody_declared_is_looked_over(self) -> None:
        findings = [result(M, "error"), result(M, "error", criterion_name="other"), result(A, "pass")]
        assert conclude_once(findings, [TEN]).outcome == "pass"

    def test_a_failure_stays_a_failure(self) -> None:
        verdict = conclude_once([result(M, "error", criterion_name="polite"), result(A, "fail")], [TEN])
        assert (verdict.outcome, verdict.reason) == ("fail", "a fail")

    def test_a_score_that_can_be_read_is_no_error(self) -> None:
        findings = [result(M, "pass", criterion_name="polite", score=5), result(A, "pass")]
        assert conclude_once(findings, [TEN]).outcome == "pass"
