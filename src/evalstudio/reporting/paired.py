"""Comparing two executions subject by subject: how far they differ, how sure that is, and what could be seen.

Subjects weigh the same, however often each ran: a difference never comes from one side having repeated the
hard subjects more often. docs/statistics.md has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..base.lazy_dataclass import dataclass
from .distributions import binomial_cdf, normal_cdf, normal_quantile, root, t_cdf, t_quantile
from .intervals import CONFIDENCE, Interval, mean_interval

ALPHA = 0.05
POWER = 0.8
# Beyond so many subjects that differ the normal distribution is as good as counting, to three digits.
_COUNTED = 200
_FINEST_GRID = 60

TestName = Literal["mcnemar", "sign-flip", "t"]


class Pair(NamedTuple):
    """The runs of one subject on both sides; only subjects scored on both are compared."""

    base_passed: int
    base_scored: int
    candidate_passed: int
    candidate_scored: int

    @property
    def difference(self) -> float:
        return self.candidate_passed / self.candidate_scored - self.base_passed / self.base_scored


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidate minus base. `p` is two-sided; `p_worse` asks only whether the candidate is worse."""

    subjects: int
    difference: Interval
    p: float
    p_worse: float
    test: TestName
    detectable: float | None
    """The smallest difference that this many subjects would show four times in five; None if none would."""


def compare_rates(pairs: Sequence[Pair], alpha: float = ALPHA) -> Comparison:
    """Compare pass rates: exact McNemar where every subject ran once on both sides, else a sign-flip test."""
    scored = [pair for pair in pairs if pair.base_scored and pair.candidate_scored]
    once = all(pair.base_scored == pair.candidate_scored == 1 for pair in scored)
    p, p_worse = sign_flip(_on_grid(scored))
    interval = rate_difference_interval(scored, 1 - alpha)
    return Comparison(
        subjects=len(scored),
        difference=interval,
        p=p,
        p_worse=p_worse,
        test="mcnemar" if once else "sign-flip",
        detectable=_detectable(interval, len(scored), alpha) if _could_show(len(scored), alpha) else None,
    )


def compare_values(differences: Sequence[float], alpha: float = ALPHA) -> Comparison:
    """Compare a measurement (latency, tokens, a score) by each subject's difference, candidate minus base."""
    interval = mean_interval([[one] for one in differences], confidence=1 - alpha)
    number = len(differences)
    mean = interval.estimate
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in differences)) if mean is not None else 0.0
    if mean is None or number < 2 or spread == 0:
        return Comparison(number, interval, 1.0, 1.0, "t", None)
    t = mean / (spread / math.sqrt(number * (number - 1)))
    p = 2 * t_cdf(-abs(t), number - 1)
    return Comparison(number, interval, p, t_cdf(t, number - 1), "t", _detectable(interval, number, alpha))


def mcnemar(better: int, worse: int) -> float:
    """The exact two-sided McNemar test, from how many subjects changed in either direction."""
    return min(1.0, 2 * binomial_cdf(min(better, worse), better + worse, 0.5))


def _on_grid(pairs: Sequence[Pair]) -> list[int]:
    """The differences as whole numbers.

    Where repetitions are so uneven that no common denominator is small they are rounded. The test stays
    exact: it is then one of the rounded differences, which are as symmetric as the others.
    """
    denominators = {number for pair in pairs for number in (pair.base_scored, pair.candidate_scored)}
    grid = min(math.lcm(*denominators), _FINEST_GRID) if denominators else 1
    return [round(pair.difference * grid) for pair in pairs]


def sign_flip(differences: Sequence[int]) -> tuple[float, float]:
    """The sign-flip permutation test of subject differences: two-sided p, and p for "lower than 0".

    If both sides are equal, every difference could as well have had the other sign. Counted over all choices
    of signs, not sampled. With differences of 1 alone this is exact McNemar.
    """
    sizes = [abs(one) for one in differences if one]
    total = sum(differences)
    if not sizes:
        return 1.0, 1.0
    if len(sizes) > _COUNTED:
        z = total / math.sqrt(sum(size * size for size in sizes))
        return 2 * normal_cdf(-abs(z)), normal_cdf(z)
    worse = _share_at_most(sizes, total)
    return min(1.0, 2 * _share_at_most(sizes, -abs(total))), worse


def _share_at_most(sizes: list[int], total: int) -> float:
    """Of all choices of signs, the share whose sum is at most the total.

    The number of choices for each sum are the coefficients of a polynomial, kept as the digits of one large
    integer: multiplying by (1 + x^size) is a shift and an addition.
    """
    divisor = math.gcd(*sizes)
    steps = [size // divisor for size in sizes]
    width = len(steps) + 2
    choices = 1
    for step in steps:
        choices += choices << (step * width)
    # A choice with positive part s sums to 2 s - sum(steps).
    most = (total // divisor + sum(steps)) // 2
    if most < 0:
        return 0.0
    digits = choices & ((1 << ((most + 1) * width)) - 1)
    # The sum of digits is the remainder by the base less one, as casting out nines.
    return digits % ((1 << width) - 1) / (1 << len(steps))


def rate_difference_interval(pairs: Sequence[Pair], confidence: float = CONFIDENCE) -> Interval:
    """The mean of the subjects' differences in pass rate, candidate minus base, and its interval.

    Tango's score interval of a paired difference, on as many pairs as these repetitions are worth. Where
    every subject ran once it is Tango's own. It has no zero width where nothing differs, as a t interval
    would.
    """
    differences = [pair.difference for pair in pairs]
    number = len(differences)
    if not number:
        return Interval(None, -1.0, 1.0)
    up = math.fsum(one for one in differences if one > 0) / number
    down = -math.fsum(one for one in differences if one < 0) / number
    worth = _effective_pairs(pairs, differences, up, down, confidence)
    z = normal_quantile((1 + confidence) / 2)
    low = root(lambda value: z - _tango(value, up, down, worth), -1.0, 1.0)
    high = root(lambda value: -z - _tango(value, up, down, worth), -1.0, 1.0)
    return Interval(up - down, min(low, up - down), max(high, up - down))


def _effective_pairs(
    pairs: Sequence[Pair], differences: Sequence[float], up: float, down: float, confidence: float
) -> float:
    """How many pairs of single runs these subjects are worth, between their number and the number of runs."""
    number = len(pairs)
    informative = sum(1 for one in differences if one)
    if informative < 2:
        return number
    mean = up - down
    variance = math.fsum((one - mean) ** 2 for one in differences) / (number - 1)
    most = sum(2 / (1 / pair.base_scored + 1 / pair.candidate_scored) for pair in pairs)
    z, t = normal_quantile((1 + confidence) / 2), t_quantile((1 + confidence) / 2, number - 1)
    measured = number * (up + down - mean * mean) / variance * (z / t) ** 2 if variance > 0 else most
    bounded = min(max(measured, number), most)
    weight = 1 / informative**2
    return 1 / ((1 - weight) / bounded + weight / number)


def _tango(value: float, up: float, down: float, number: float) -> float:
    """Tango's (1998) score statistic of a paired difference, from the shares that went up and down."""
    linear = (2 - up + down) * value - up - down
    root_of = max(linear * linear + 8 * down * value * (1 - value), 0.0)
    restricted = (math.sqrt(root_of) - linear) / 4
    variance = 2 * restricted + value * (1 - value)
    distance = up - down - value
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance / number)


def _could_show(subjects: int, alpha: float) -> bool:
    """Whether the test can reach alpha at all: its smallest p is that of all subjects changing one way."""
    return subjects > 0 and 2 * 0.5**subjects <= alpha


def _detectable(interval: Interval, subjects: int, alpha: float) -> float | None:
    """The smallest difference seen with the usual power, from the standard error that the interval shows."""
    if subjects < 2 or math.isinf(interval.high - interval.low):
        return None
    t = t_quantile(1 - alpha / 2, subjects - 1)
    error = (interval.high - interval.low) / 2 / t
    return (t + t_quantile(POWER, subjects - 1)) * error


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """The p values corrected for how many there are, in the order given.

    Calling all at most alpha beyond chance keeps the expected share of false ones among those called below
    alpha.
    """
    smallest = 1.0
    adjusted = [1.0] * len(ps)
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda one: -ps[one])):
        smallest = min(smallest, ps[place] * len(ps) / (len(ps) - rank))
        adjusted[place] = smallest
    return adjusted
