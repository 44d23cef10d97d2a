"""pass@k and pass^k: exact per subject, averaged with an interval that is never certain."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random
from statistics import fmean
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.references import Reference

from evalstudio.reporting.intervals import wilson_interval
from evalstudio.reporting.repetitions import (
    _binomial,
    bootstrap_interval,
    mean_pass_at_k,
    mean_pass_hat_k,
    pass_at_k,
    pass_hat_k,
)

scipy: Any = Reference("scipy.stats")


@pytest.mark.parametrize(
    ("passed", "scored", "k"), [(0, 5, 1), (3, 5, 1), (3, 5, 2), (1, 6, 3), (5, 6, 5), (4, 4, 4), (2, 8, 7)]
)
def test_both_are_the_average_over_all_choices_of_k_runs(passed: int, scored: int, k: int) -> None:
    runs = [True] * passed + [False] * (scored - passed)
    choices = list(combinations(runs, k))
    assert pass_at_k(passed, scored, k) == pytest.approx(fmean(any(choice) for choice in choices))
    assert pass_hat_k(passed, scored, k) == pytest.approx(fmean(all(choice) for choice in choices))


@pytest.mark.parametrize(
    ("passed", "scored", "k"), [(13, 200, 1), (13, 200, 10), (13, 200, 100), (1, 100, 50)]
)
def test_pass_at_k_is_the_published_estimator(passed: int, scored: int, k: int) -> None:
    # Chen et al. 2021, figure 3.
    expected = 1 - numpy.prod(1 - k / numpy.arange(scored - passed + 1, scored + 1))
    assert pass_at_k(passed, scored, k) == pytest.approx(float(expected))


def test_a_subject_that_ran_less_than_k_times_is_left_out_and_counted() -> None:
    average = mean_pass_hat_k([(3, 3), (1, 2), (0, 3)], 3)
    assert pass_hat_k(1, 2, 3) is pass_at_k(1, 2, 3) is None
    assert (average.subjects, average.left_out, average.interval.estimate) == (2, 1, 0.5)


def test_without_any_subject_nothing_is_said() -> None:
    average = mean_pass_at_k([(1, 2)], 3)
    assert (average.interval.estimate, average.interval.low, average.interval.high) == (None, 0.0, 1.0)
    with pytest.raises(ValueError, match="k is 0"):
        mean_pass_at_k([(1, 2)], 0)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_subjects_that_do_not_differ_have_wilsons_interval_on_their_number(share: float) -> None:
    assert bootstrap_interval(Counter({share: 12})) == wilson_interval(share, 12)


def test_the_same_seed_gives_the_same_interval_and_the_order_of_subjects_does_not_matter() -> None:
    subjects = [(5, 5)] * 9 + [(3, 5)] * 7 + [(0, 5)] * 6
    assert mean_pass_hat_k(subjects, 3) == mean_pass_hat_k(subjects[::-1], 3)
    assert mean_pass_hat_k(subjects, 3, seed=1) != mean_pass_hat_k(subjects, 3, seed=2)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30),
    st.integers(1, 4),
)
def test_an_average_lies_in_its_interval_which_has_some_width(pairs: list[tuple[int, int]], k: int) -> None:
    subjects = [(min(pair), max(pair)) for pair in pairs]
    for average in (mean_pass_at_k(subjects, k), mean_pass_hat_k(subjects, k)):
        interval = average.interval
        assert 0 <= interval.low < interval.high <= 1
        assert interval.estimate is None or interval.low <= interval.estimate <= interval.high


def test_the_bootstrap_is_close_to_scipys_studentised_spread_where_nothing_is_rare() -> None:
    shares = [0.1 * place for place in range(11)] * 9
    interval = bootstrap_interval(Counter(shares), draws=4000)
    error = float(numpy.std(shares, ddof=1)) / len(shares) ** 0.5
    expected = scipy.t.interval(0.95, len(shares) - 1, fmean(shares), error)
    assert (interval.low, interval.high) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("trials", "probability"), [(50, 0.3), (1000, 0.4), (30, 0.05), (200, 0.9), (3, 0.5)]
)
def test_binomial_numbers_are_binomial(trials: int, probability: float) -> None:
    random = Random(7)
    drawn = Counter(_binomial(trials, probability, random) for _ in range(20_000))
    expected = scipy.binom.pmf(numpy.arange(trials + 1), trials, probability) * 20_000
    common = [number for number in range(trials + 1) if expected[number] > 5]
    square = sum((drawn[number] - expected[number]) ** 2 / expected[number] for number in common)
    assert scipy.chi2.sf(square, len(common) - 1) > 0.001
