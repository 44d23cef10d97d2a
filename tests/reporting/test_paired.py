"""Comparing two sides subject by subject."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.references import Reference

from evalstudio.reporting.paired import (
    Pair,
    benjamini_hochberg,
    compare_rates,
    compare_values,
    mcnemar,
    rate_difference_interval,
    sign_flip,
)

scipy: Any = Reference("scipy.stats")
optimize: Any = Reference("scipy.optimize")
contingency_tables: Any = Reference("statsmodels.stats.contingency_tables")
multitest: Any = Reference("statsmodels.stats.multitest")
power: Any = Reference("statsmodels.stats.power")


def once(both: int, better: int, worse: int, neither: int) -> list[Pair]:
    """Subjects that ran once on either side."""
    return (
        [Pair(1, 1, 1, 1)] * both
        + [Pair(0, 1, 1, 1)] * better
        + [Pair(1, 1, 0, 1)] * worse
        + [Pair(0, 1, 0, 1)] * neither
    )


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (0, 1), (1, 7), (5, 5), (3, 12), (40, 80), (0, 190)])
def test_single_runs_have_the_exact_mcnemar_test(better: int, worse: int) -> None:
    comparison = compare_rates(once(6, better, worse, 4))
    expected = contingency_tables.mcnemar([[6, better], [worse, 4]], exact=True).pvalue
    assert comparison.test == "mcnemar"
    assert comparison.p == pytest.approx(expected)
    assert mcnemar(better, worse) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_the_sign_flip_test_counts_what_scipy_counts(seed: int) -> None:
    random = Random(seed)
    differences = [random.choice([-3, -2, -1, 0, 0, 1, 2]) for _ in range(12)]

    def total(sample: Any, axis: int) -> Any:
        return numpy.sum(sample, axis=axis)

    def permuted(alternative: str) -> float:
        result = scipy.permutation_test(
            (differences,), total, permutation_type="samples", n_resamples=10_000, alternative=alternative
        )
        return float(result.pvalue)

    assert sign_flip(differences) == pytest.approx((permuted("two-sided"), permuted("less")))


def test_beyond_counting_the_sign_flip_test_is_the_normal_one() -> None:
    random = Random(3)
    differences = [random.choice([-2, -1, 1, 2, 1]) for _ in range(200)]
    counted, worse = sign_flip(differences)
    approximated, worse_too = sign_flip([*differences, 1, -1, 1, -1])
    assert approximated == pytest.approx(counted, abs=0.01)
    assert worse_too == pytest.approx(worse, abs=0.01)
    assert 0 <= sign_flip([1] * 5000)[0] < 1e-100


def test_the_interval_is_tangos_published_one() -> None:
    # Airway responsiveness of 21 children before and after a transplant: Fagerland, Lydersen and Laake 2014.
    interval = rate_difference_interval(once(1, 1, 7, 12))
    assert interval.estimate == pytest.approx(-6 / 21)
    assert (interval.low, interval.high) == pytest.approx((-0.517, -0.026), abs=5e-4)


@pytest.mark.parametrize(("better", "worse", "alike"), [(2, 9, 20), (0, 5, 40), (14, 11, 35), (1, 0, 9)])
def test_at_its_ends_the_score_statistic_is_196(better: int, worse: int, alike: int) -> None:
    number = better + worse + alike
    interval = rate_difference_interval(once(alike, better, worse, 0))
    for end in (interval.low, interval.high):

        def lack(down: float, end: float = end) -> float:
            up = down + end
            rest = 1 - up - down
            if min(up, down, rest) <= 0:
                return math.inf
            return -(better * math.log(up) + worse * math.log(down) + alike * math.log(rest))

        bounds = (max(0.0, -end) + 1e-12, (1 - end) / 2 - 1e-12)
        down = optimize.minimize_scalar(lack, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
        variance = number * (2 * down + end - end * end)
        assert abs(better - worse - number * end) / math.sqrt(variance) == pytest.approx(1.959964, abs=1e-3)


pairs = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(0, 4), st.integers(1, 4)).map(
        lambda numbers: Pair(min(numbers[:2]), numbers[1], min(numbers[2:]), numbers[3])
    ),
    max_size=30,
)


@given(pairs)
def test_a_difference_lies_in_its_interval_which_has_some_width(subjects: list[Pair]) -> None:
    comparison = compare_rates(subjects)
    interval = comparison.difference
    assert -1 <= interval.low < interval.high <= 1
    assert interval.estimate is None or interval.low <= interval.estimate <= interval.high
    assert 0 <= comparison.p <= 1
    assert 0 <= comparison.p_worse <= 1


@given(pairs)
def test_exchanging_both_sides_turns_the_result_around(subjects: list[Pair]) -> None:
    turned = [Pair(*one[2:], *one[:2]) for one in subjects]
    ours, theirs = compare_rates(subjects), compare_rates(turned)
    assert ours.p == theirs.p
    assert ours.difference.low == pytest.approx(-theirs.difference.high, abs=1e-9)


def test_all_subjects_changing_by_the_same_is_not_certain() -> None:
    interval = rate_difference_interval([Pair(5, 5, 4, 5)] * 20)
    assert interval.low < -0.2 < interval.high


def test_subjects_weigh_the_same_however_often_they_ran() -> None:
    comparison = compare_rates([Pair(20, 20, 20, 20), Pair(1, 1, 0, 1)])
    assert comparison.difference.estimate == pytest.approx(-0.5)


def test_subjects_that_one_side_lacks_are_not_compared() -> None:
    assert compare_rates([Pair(1, 1, 0, 0), Pair(0, 0, 1, 1)]).subjects == 0
    assert compare_rates([]).p == 1.0


def test_uneven_repetitions_without_a_small_common_denominator_are_compared_too() -> None:
    subjects = [Pair(n, 2 * n + 1, 0, 17) for n in range(1, 20)]
    assert compare_rates(subjects).p < 0.001


@pytest.mark.parametrize(("subjects", "possible"), [(5, False), (6, True)])
def test_five_subjects_cannot_show_a_difference(subjects: int, possible: bool) -> None:
    comparison = compare_rates(once(0, 0, subjects, 0))
    assert (comparison.p <= 0.05) is possible
    assert (comparison.detectable is not None) is possible


@pytest.mark.parametrize("number", [20, 50, 200])
def test_the_smallest_detectable_difference_is_the_one_of_a_power_analysis(number: int) -> None:
    half = [float(place) for place in range(1, number // 2 + 1)]
    differences = [*half, *(-one for one in half)]
    effect = power.TTestPower().solve_power(nobs=number, alpha=0.05, power=0.8)
    expected = effect * float(numpy.std(differences, ddof=1))
    assert compare_values(differences).detectable == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_measurements_have_the_paired_t_test(seed: int) -> None:
    random = Random(seed)
    differences = [random.gauss(0.3, 1) for _ in range(25)]
    comparison = compare_values(differences)
    assert comparison.p == pytest.approx(float(scipy.ttest_1samp(differences, 0).pvalue))
    assert comparison.p_worse == pytest.approx(
        float(scipy.ttest_1samp(differences, 0, alternative="less").pvalue)
    )


@pytest.mark.parametrize("differences", [[], [1.0], [2.0, 2.0]])
def test_measurements_whose_spread_is_unknown_show_nothing(differences: list[float]) -> None:
    comparison = compare_values(differences)
    assert (comparison.p, comparison.p_worse, comparison.detectable) == (1.0, 1.0, None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_correction_for_many_is_the_one_of_statsmodels(ps: list[float]) -> None:
    assert benjamini_hochberg(ps) == pytest.approx(list(multitest.multipletests(ps, method="fdr_bh")[1]))


def test_nothing_needs_no_correction() -> None:
    assert benjamini_hochberg([]) == []
