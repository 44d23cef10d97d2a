"""The distribution functions are scipy's."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.references import Reference

from evalstudio.reporting.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    hypergeometric_cdf,
    normal_cdf,
    normal_quantile,
    root,
    t_cdf,
    t_quantile,
)

scipy: Any = Reference("scipy.stats")
special: Any = Reference("scipy.special")


@pytest.mark.parametrize("x", [-38.0, -5.0, -1.96, 0.0, 0.3, 8.0])
def test_the_normal_distribution(x: float) -> None:
    assert normal_cdf(x) == pytest.approx(scipy.norm.cdf(x), rel=1e-12)


@pytest.mark.parametrize("probability", [1e-12, 0.025, 0.5, 0.8, 0.975, 1 - 1e-9])
def test_normal_quantiles(probability: float) -> None:
    assert normal_quantile(probability) == pytest.approx(scipy.norm.ppf(probability), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 4.5, 19, 200, 50_000])
@pytest.mark.parametrize("probability", [1e-6, 0.025, 0.5, 0.8, 0.975, 0.9995])
def test_students_t(freedom: float, probability: float) -> None:
    expected = scipy.t.ppf(probability, freedom)
    assert t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-9)
    assert t_cdf(expected, freedom) == pytest.approx(probability, rel=1e-8)


@given(
    st.floats(0.0, 1.0),
    st.floats(0.05, 5000.0),
    st.floats(0.05, 5000.0),
)
def test_the_incomplete_beta_function(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1, 1), (3, 40), (4000, 250), (0.5, 200)])
@pytest.mark.parametrize("probability", [0.001, 0.3, 0.975])
def test_beta_quantiles(a: float, b: float, probability: float) -> None:
    assert beta_quantile(probability, a, b) == pytest.approx(scipy.beta.ppf(probability, a, b), rel=1e-7)


@pytest.mark.parametrize(
    ("successes", "trials", "probability"),
    [(-1, 5, 0.5), (0, 5, 0.5), (3, 20, 0.1), (480, 1000, 0.5), (5, 5, 0.2)],
)
def test_the_binomial_distribution(successes: int, trials: int, probability: float) -> None:
    expected = scipy.binom.cdf(successes, trials, probability)
    assert binomial_cdf(successes, trials, probability) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("drawn_marked", "total", "marked", "drawn"),
    [(0, 11, 10, 1), (2, 33, 32, 3), (7, 60, 40, 20), (9, 9, 9, 9)],
)
def test_the_hypergeometric_distribution(drawn_marked: int, total: int, marked: int, drawn: int) -> None:
    expected = scipy.hypergeom.cdf(drawn_marked, total, marked, drawn)
    assert hypergeometric_cdf(drawn_marked, total, marked, drawn) == pytest.approx(expected, rel=1e-9)


def test_a_root_is_found_to_the_last_digit() -> None:
    assert root(lambda x: x * x - 2, 0.0, 2.0) == pytest.approx(math.sqrt(2), rel=1e-15)
