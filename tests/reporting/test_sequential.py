"""Deciding while looking after every repetition."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstudio.reporting.distributions import beta_cdf
from evalstudio.reporting.sequential import GrowingMean, MeanSequence, RateSequence

REPETITIONS = 20


@pytest.mark.parametrize(
    ("passed", "failed", "bound"), [(20, 0, 0.5), (30, 10, 0.6), (5, 15, 0.2), (400, 40, 0.85)]
)
def test_the_evidence_is_the_mixture_over_all_bets(passed: int, failed: int, bound: float) -> None:
    sequence = RateSequence(bound)
    sequence.add_counts(passed, failed)
    # The integral over c has a closed form: the mixture martingale with a uniform prior above the bound.
    a, b = passed + 1, failed + 1
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    likelihood = passed * math.log(bound) + failed * math.log1p(-bound)
    expected = log_beta + math.log((1 - beta_cdf(bound, a, b)) / (1 - bound)) - likelihood
    assert sequence._evidence_above(bound) == pytest.approx(expected, abs=0.01)


def test_a_bound_leaves_the_interval_exactly_when_it_is_decided() -> None:
    for bound in (0.1, 0.5, 0.8, 0.95):
        random = Random(9)
        sequence = RateSequence(bound)
        while sequence.decision is None and sequence.rounds < 200:
            sequence.add(random.random() < 0.7)
            interval = sequence.interval
            if sequence.decision == "met":
                assert interval.low >= bound - 1e-9
            elif sequence.decision == "missed":
                assert interval.high <= bound + 1e-9
            else:
                assert interval.low <= bound <= interval.high


def test_a_decision_stays() -> None:
    sequence = RateSequence(0.5)
    for _ in range(8):
        sequence.add(True)
    assert sequence.decision == "met"
    for _ in range(30):
        sequence.add(False)
    assert sequence.decision == "met"


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), max_size=4))
def test_what_is_missing_never_decides(rounds: list[tuple[int, int, int]]) -> None:
    """Whatever the missing runs would have been, the interval with them missing holds the one with them."""
    with_missing, all_passed, all_failed = RateSequence(0.5), RateSequence(0.5), RateSequence(0.5)
    for passed, failed, missing in rounds:
        with_missing.add_counts(passed, failed, missing)
        all_passed.add_counts(passed + missing, failed)
        all_failed.add_counts(passed, failed + missing)
    assert with_missing.interval.low <= min(all_passed.interval.low, all_failed.interval.low) + 1e-9
    assert with_missing.interval.high >= max(all_passed.interval.high, all_failed.interval.high) - 1e-9


def test_rounds_in_which_everything_is_missing_say_nothing() -> None:
    sequence = RateSequence(0.5)
    for _ in range(50):
        sequence.add_counts(0, 0, missing=6)
    assert sequence.decision is None
    assert (sequence.interval.estimate, sequence.interval.low, sequence.interval.high) == (None, 0.0, 1.0)


def test_a_bound_of_all_is_missed_at_the_first_failure_and_never_met() -> None:
    sequence = RateSequence(1.0)
    for _ in range(500):
        sequence.add(True)
    assert sequence.decision is None
    sequence.add(False)
    assert sequence.decision == "missed"


def test_a_bound_of_nothing_is_met() -> None:
    sequence = RateSequence(0.0)
    sequence.add(False)
    assert sequence.decision == "met"


@pytest.mark.parametrize(("bound", "alpha"), [(-0.1, 0.05), (1.1, 0.05), (0.5, 0.0), (0.5, 1.0)])
def test_bounds_and_alphas_that_make_no_sense_are_refused(bound: float, alpha: float) -> None:
    with pytest.raises(ValueError, match=r"(bound|alpha) is"):
        RateSequence(bound, alpha)


def test_negative_counts_and_values_off_the_scale_are_refused() -> None:
    with pytest.raises(ValueError, match="-1 runs"):
        RateSequence(0.5).add_counts(-1, 2)
    for value in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            MeanSequence(0.5).add_round([value])
    with pytest.raises(ValueError, match="negative"):
        GrowingMean(5).add_round([-1.0])
    with pytest.raises(ValueError, match="above 0"):
        GrowingMean(0)


def test_a_rate_is_the_mean_of_zeros_and_ones() -> None:
    rate, mean = RateSequence(0.5), MeanSequence(0.5)
    rate.add_counts(9, 3, missing=2)
    mean.add_round([1.0] * 9 + [0.0] * 3, missing=2)
    assert rate.interval == mean.interval


def test_one_large_value_does_not_decide_and_nothing_shows_that_a_mean_is_small() -> None:
    mean = GrowingMean(100)
    mean.add_round([1000.0])
    assert not mean.above
    for _ in range(500):
        mean.add_round([1.0])
    assert not mean.above
    high = GrowingMean(100)
    for _ in range(10):
        high.add_round([300.0, 250.0])
    assert high.above


def subject_rates(random: Random, number: int, mean: float) -> list[float]:
    """Rates of subjects that differ and have exactly this mean."""
    spread = min(mean, 1 - mean)
    offsets = [random.uniform(-spread, spread) for _ in range(number // 2)]
    middle = [mean] if number % 2 else []
    return [*(mean + one for one in offsets), *(mean - one for one in offsets), *middle]


def rate_executions(
    bound: float, mean: float, subjects: int, *, seed: int, number: int
) -> tuple[int, int, float]:
    """How many executions found it met and missed, and the share of their runs that was needed."""
    random = Random(seed)
    met = missed = rounds = 0
    for _ in range(number):
        rates = subject_rates(random, subjects, mean)
        sequence = RateSequence(bound)
        while sequence.decision is None and sequence.rounds < REPETITIONS:
            passed = sum(random.random() < rate for rate in rates)
            sequence.add_counts(passed, subjects - passed)
        met += sequence.decision == "met"
        missed += sequence.decision == "missed"
        rounds += sequence.rounds
    return met, missed, rounds / number / REPETITIONS


@pytest.mark.soak
@pytest.mark.parametrize(
    ("bound", "mean", "subjects"), [(0.8, 0.7999, 1), (0.8, 0.7999, 12), (0.5, 0.4999, 6)]
)
def test_looking_after_every_repetition_finds_a_missed_rate_met_in_at_most_5_percent(
    bound: float, mean: float, subjects: int
) -> None:
    met, _, _ = rate_executions(bound, mean, subjects, seed=1, number=2000)
    assert met <= 0.05 * 2000


@pytest.mark.soak
@pytest.mark.parametrize(("bound", "subjects"), [(0.9, 1), (0.8, 12)])
def test_looking_after_every_repetition_finds_a_met_rate_missed_in_at_most_5_percent(
    bound: float, subjects: int
) -> None:
    _, missed, _ = rate_executions(bound, bound, subjects, seed=2, number=2000)
    assert missed <= 0.05 * 2000


@pytest.mark.parametrize(
    ("bound", "mean", "subjects", "decision"),
    [
        (0.8, 0.95, 20, "met"),
        (0.8, 0.6, 20, "missed"),
        (0.9, 0.98, 20, "met"),
        (0.8, 0.98, 6, "met"),
        (0.8, 0.5, 6, "missed"),
        (0.8, 0.1, 1, "missed"),
        (0.5, 0.98, 1, "met"),
    ],
)
def test_clear_cases_need_less_than_half_of_the_runs(
    bound: float, mean: float, subjects: int, decision: str
) -> None:
    met, missed, share = rate_executions(bound, mean, subjects, seed=3, number=200)
    assert (met if decision == "met" else missed) >= 0.9 * 200
    assert share < 0.5


def test_the_confidence_sequence_holds_the_rate_at_every_look() -> None:
    random = Random(6)
    left = 0
    for _ in range(300):
        sequence = RateSequence(0.5)
        for _ in range(REPETITIONS):
            passed = sum(random.random() < 0.75 for _ in range(5))
            sequence.add_counts(passed, 5 - passed)
            # The ends need not be searched: a mean is outside when its evidence is.
            if max(sequence._evidence_above(0.75), sequence._evidence_below(0.75)) >= math.log(40):
                left += 1
                break
    assert left <= 0.05 * 300
