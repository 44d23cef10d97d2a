"""Distribution functions that the statistics rest on, in plain Python, so that nothing is installed for them.

Each agrees with scipy to nine digits or more; the tests hold that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_PRECISION = 1e-15
_MOST_TERMS = 100_000


def normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def normal_quantile(probability: float) -> float:
    return _NORMAL.inv_cdf(probability)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function: the chance that a Beta(a, b) value is at most x."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # The fraction converges fast on this side of the mean only; the other side is the mirror image.
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _beta_fraction(x, a, b) / a
    return 1 - math.exp(log_front) * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, _away_from_zero(1 - (a + b) * x / (a + 1))
    d = 1 / d
    fraction = d
    for term in range(1, _MOST_TERMS):
        even = term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term))
        odd = -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1))
        for coefficient in (even, odd):
            d = 1 / _away_from_zero(1 + coefficient * d)
            c = _away_from_zero(1 + coefficient / c)
            fraction *= c * d
        if abs(c * d - 1) < _PRECISION:
            return fraction
    raise ArithmeticError(f"the incomplete beta function did not converge at x={x}, a={a}, b={b}")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def beta_quantile(probability: float, a: float, b: float) -> float:
    return root(lambda x: beta_cdf(x, a, b) - probability, 0.0, 1.0)


def t_cdf(t: float, freedom: float) -> float:
    tail = beta_cdf(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=1024)
def t_quantile(probability: float, freedom: float) -> float:
    if probability == 0.5:
        return 0.0
    tail = 2 * min(probability, 1 - probability)
    x = beta_quantile(tail, freedom / 2, 0.5)
    return math.copysign(math.sqrt(freedom * (1 - x) / x), probability - 0.5)


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """The chance of at most so many successes."""
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    return 1 - beta_cdf(probability, successes + 1, trials - successes)


def hypergeometric_cdf(drawn_marked: int, total: int, marked: int, drawn: int) -> float:
    """The chance of at most so many marked ones among those drawn, without putting any back."""
    least = max(0, drawn + marked - total)
    most = min(drawn_marked, drawn, marked)
    ways = sum(math.comb(marked, k) * math.comb(total - marked, drawn - k) for k in range(least, most + 1))
    return ways / math.comb(total, drawn)


def root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that does not fall passes from below 0 to 0 or above, to the last digit."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return high
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
