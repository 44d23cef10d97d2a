"""Cohen's kappa is that of statsmodels; its interval is never certain."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.references import Reference

from evalstudio.reporting.agreement import Weights, kappa

inter_rater: Any = Reference("statsmodels.stats.inter_rater")


def marks(seed: int, number: int, *, likeness: float, most: int = 5) -> list[tuple[int, int]]:
    random = Random(seed)
    pairs: list[tuple[int, int]] = []
    for _ in range(number):
        first = random.randint(1, most)
        pairs.append((first, first if random.random() < likeness else random.randint(1, most)))
    return pairs


def table_of(pairs: list[tuple[int, int]], most: int = 5) -> Any:
    table = numpy.zeros((most, most))
    for (first, second), number in Counter(pairs).items():
        table[first - 1, second - 1] = number
    return table


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
@pytest.mark.parametrize("likeness", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("number", [15, 200])
def test_kappa_is_that_of_statsmodels(weights: Weights, likeness: float, number: int) -> None:
    pairs = marks(number, number, likeness=likeness)
    expected = inter_rater.cohens_kappa(table_of(pairs), wt=None if weights == "none" else weights).kappa
    interval = kappa(pairs, weights=weights, scale=range(1, 6))
    assert interval.estimate == pytest.approx(expected)


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_with_many_items_the_interval_is_that_of_statsmodels(weights: Weights) -> None:
    pairs = marks(3, 3000, likeness=0.6)
    expected = inter_rater.cohens_kappa(table_of(pairs), wt=None if weights == "none" else weights)
    interval = kappa(pairs, weights=weights, scale=range(1, 6))
    assert (interval.low, interval.high) == pytest.approx((expected.kappa_low, expected.kappa_upp), abs=0.003)


def test_published_example() -> None:
    # Cohen 1960 as in Fleiss, Levin and Paik, table 18.1: 100 subjects, three diagnoses, kappa 0.68.
    cells = {"aa": 75, "ab": 1, "ac": 4, "ba": 5, "bb": 4, "bc": 1, "ca": 0, "cb": 0, "cc": 10}
    pairs = [(cell[0], cell[1]) for cell, number in cells.items() for _ in range(number)]
    assert kappa(pairs).estimate == pytest.approx(0.68, abs=0.005)


def test_perfect_agreement_on_a_few_items_is_not_certain() -> None:
    interval = kappa([(0, 0), (1, 1)] * 3)
    assert interval.estimate == 1.0
    assert interval.low < 0.5 < interval.high == 1.0


@pytest.mark.parametrize("pairs", [[], [(1, 1)], [(2, 2)] * 30])
def test_where_only_one_mark_was_given_kappa_is_unknown(pairs: list[tuple[int, int]]) -> None:
    interval = kappa(pairs)
    assert (interval.estimate, interval.low, interval.high) == (None, -1.0, 1.0)


def test_items_of_one_subject_say_less() -> None:
    pairs = marks(5, 40, likeness=0.7)
    repeated = [pair for pair in pairs for _ in range(4)]
    subjects = [place for place in range(40) for _ in range(4)]
    blind, clustered = kappa(repeated), kappa(repeated, subjects=subjects)
    once = kappa(pairs)
    assert clustered.high - clustered.low > 1.5 * (blind.high - blind.low)
    assert (clustered.low, clustered.high) == pytest.approx((once.low, once.high), abs=0.05)


def test_marks_off_the_scale_are_refused() -> None:
    with pytest.raises(ValueError, match=r"not on the scale \[1, 2\]: 'x', 3"):
        kappa([(1, 3), ("x", 2)], scale=[1, 2])


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=40))
def test_kappa_lies_in_its_interval_which_has_some_width(pairs: list[tuple[int, int]]) -> None:
    for weights in ("none", "linear", "quadratic"):
        interval = kappa(pairs, weights=weights)
        assert -1 <= interval.low < interval.high <= 1
        assert interval.estimate is None or interval.low - 1e-9 <= interval.estimate <= interval.high + 1e-9
