"""Intervals by subject: what they equal where a textbook has them, and what they never do."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.references import Reference

from evalstudio.reporting.distributions import beta_cdf
from evalstudio.reporting.intervals import (
    _clustered_variance,
    _ranks,
    effective_runs,
    mean_interval,
    percentile_interval,
    rate_interval,
    wilson_interval,
)

scipy: Any = Reference("scipy.stats")
proportions: Any = Reference("statsmodels.stats.proportion")
linear_model: Any = Reference("statsmodels.regression.linear_model")

counts = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda pair: (min(pair), max(pair)))


@pytest.mark.parametrize(
    ("passed", "of"), [(0, 1), (1, 1), (0, 10), (5, 10), (81, 263), (15, 148), (29, 29), (49_000, 50_000)]
)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_subjects_that_ran_once_have_wilsons_interval(passed: int, of: int, confidence: float) -> None:
    interval = rate_interval([(1, 1)] * passed + [(0, 1)] * (of - passed), confidence)
    expected = proportions.proportion_confint(passed, of, alpha=1 - confidence, method="wilson")
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-12)


def test_subjects_may_be_given_as_how_many_there_are_of_each_kind() -> None:
    each = [(3, 3)] * 7 + [(1, 3)] * 4 + [(0, 2)] * 3 + [(0, 0)]
    kinds = {(3, 3): 7, (1, 3): 4, (0, 2): 3, (0, 0): 1, (5, 5): 0}
    one, other = rate_interval(each), rate_interval(kinds)
    assert (one.estimate, one.low, one.high) == pytest.approx((other.estimate, other.low, other.high))


def test_repetitions_of_six_scenarios_are_not_eighteen_runs() -> None:
    agreeing = rate_interval([(3, 3)] * 4 + [(0, 3)] * 2)
    as_if_independent = wilson_interval(12 / 18, 18)
    assert effective_runs([(3, 3)] * 4 + [(0, 3)] * 2) == pytest.approx(6)
    assert agreeing.high - agreeing.low > 1.5 * (as_if_independent.high - as_if_independent.low)


def test_repetitions_that_are_as_different_as_runs_of_others_count_as_runs() -> None:
    subjects = [(2, 4)] * 40 + [(1, 4)] * 30 + [(3, 4)] * 30
    assert effective_runs(subjects) == pytest.approx(400, rel=0.01)


@given(st.lists(counts, max_size=40))
def test_a_rate_lies_in_its_interval_which_has_some_width(subjects: list[tuple[int, int]]) -> None:
    interval = rate_interval(subjects)
    assert 0 <= interval.low < interval.high <= 1
    if interval.estimate is not None:
        assert interval.low <= interval.estimate <= interval.high
        total = sum(runs for _, runs in subjects)
        assert 1 - 1e-9 <= effective_runs([one for one in subjects if one[1]]) <= total + 1e-9


@given(st.lists(counts, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_subjects_and_those_without_runs_change_nothing(
    subjects: list[tuple[int, int]], random: Random
) -> None:
    shuffled = random.sample([*subjects, (0, 0)], len(subjects) + 1)
    ours, theirs = rate_interval(subjects), rate_interval(shuffled)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize("repetitions", [1, 3, 20])
@pytest.mark.parametrize("passed_all", [True, False])
def test_at_the_ends_repeating_does_not_narrow_it(repetitions: int, passed_all: bool) -> None:
    subjects = [(repetitions if passed_all else 0, repetitions)] * 6
    assert rate_interval(subjects) == rate_interval([(int(passed_all), 1)] * 6)


def test_nothing_scored_says_nothing() -> None:
    assert rate_interval([]) == rate_interval([(0, 0)])
    assert (rate_interval([]).estimate, rate_interval([]).low, rate_interval([]).high) == (None, 0.0, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_clustered_variance_is_the_one_of_statsmodels(seed: int) -> None:
    random = Random(seed)
    groups = [
        [random.gauss(level, 1.0) for _ in range(4)] for level in [random.gauss(0, 1) for _ in range(15)]
    ]
    flat = [value for group in groups for value in group]
    labels = [place for place, group in enumerate(groups) for _ in group]
    fitted = linear_model.OLS(flat, numpy.ones(len(flat))).fit(
        cov_type="cluster", cov_kwds={"groups": labels}
    )
    mean = sum(flat) / len(flat)
    ours = _clustered_variance([((sum(group), len(group)), 1) for group in groups], mean)
    assert ours == pytest.approx(float(fitted.bse[0]) ** 2, rel=1e-9)


@pytest.mark.parametrize("number", [20, 35, 200])
def test_a_mean_without_skewness_has_students_interval_with_one_degree_less(number: int) -> None:
    half = [float(place) for place in range(1, number // 2 + 1)]
    values = [*half, *(-one for one in half), *([0.0] * (number % 2))]
    error = numpy.std(values, ddof=1) / math.sqrt(number)
    expected = scipy.t.interval(0.95, number - 2, 0.0, error)
    interval = mean_interval([[value] for value in values])
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-6)


def test_a_long_upper_tail_moves_the_interval_of_a_mean_upwards() -> None:
    interval = mean_interval([[value] for value in [1.0] * 10 + [1.5] * 8 + [2.0, 9.0, 14.0]])
    assert interval.estimate is not None
    assert interval.high - interval.estimate > 1.5 * (interval.estimate - interval.low)


@pytest.mark.parametrize("subjects", [[[0.7]], [[0.7], [0.7]], [[1.0, 1.0], [1.0]]])
def test_values_that_do_not_vary_are_not_shown_as_certain(subjects: list[list[float]]) -> None:
    on_scale, without_scale = mean_interval(subjects, bounds=(0.0, 1.0)), mean_interval(subjects)
    assert 0 <= on_scale.low < on_scale.high <= 1
    assert (without_scale.low, without_scale.high) == (-math.inf, math.inf)
    assert on_scale.estimate == without_scale.estimate == pytest.approx(subjects[0][0])


@given(st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=25))
def test_a_mean_lies_in_its_interval_and_both_on_the_scale(subjects: list[list[float]]) -> None:
    interval = mean_interval(subjects, bounds=(0.0, 1.0))
    assert 0 <= interval.low < interval.high <= 1
    if interval.estimate is not None:
        assert interval.low - 1e-12 <= interval.estimate <= interval.high + 1e-12


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9, 0.95])
@pytest.mark.parametrize("number", [100, 300, 1001])
def test_percentiles_lie_within_the_order_statistics_of_scipy(share: float, number: int) -> None:
    random = Random(number)
    values = sorted(random.lognormvariate(0, 1) for _ in range(number))
    ours = percentile_interval([[value] for value in values], share)
    theirs = scipy.quantile_test(values, q=0.0, p=share).confidence_interval(0.95)
    assert ours.estimate == pytest.approx(float(numpy.quantile(values, share)))
    # Whole ranks only are exact by erring on the wide side; fractional ranks lie within one of them.
    rank = values.index(theirs.low), values.index(theirs.high)
    assert theirs.low <= ours.low <= values[rank[0] + 1]
    assert values[rank[1] - 1] <= ours.high <= theirs.high


@pytest.mark.parametrize("runs", [10.0, 37.5, 400.0])
def test_the_ranks_of_a_median_leave_half_the_error_on_either_side(runs: float) -> None:
    low, high = _ranks(0.5, runs, 0.95)
    assert low is not None
    assert high is not None
    assert beta_cdf(0.5, low, runs - low + 1) == pytest.approx(0.975)
    assert beta_cdf(0.5, high, runs - high + 1) == pytest.approx(0.025)


def test_too_few_runs_leave_a_percentile_open() -> None:
    interval = percentile_interval([[float(value)] for value in range(20)], 0.95)
    assert interval.high == math.inf
    assert math.isfinite(interval.low)
    assert percentile_interval([[3.0]], 0.5).low == -math.inf
    assert percentile_interval([], 0.5).estimate is None


def test_repetitions_that_agree_do_not_narrow_a_percentile() -> None:
    once = percentile_interval([[float(value)] for value in range(60)], 0.5)
    repeated = percentile_interval([[float(value)] * 5 for value in range(60)], 0.5)
    assert repeated.high - repeated.low > 0.9 * (once.high - once.low)
