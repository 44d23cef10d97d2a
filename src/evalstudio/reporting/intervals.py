"""Intervals of rates, means and percentiles over runs that are clustered by subject.

The unit is the subject: repetitions of one subject say more about that subject, and little about the others.
Every interval here answers for subjects like these, not for these runs alone. docs/statistics.md has the
formulas.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from ..base.lazy_dataclass import dataclass
from .distributions import beta_cdf, normal_quantile, root, t_quantile

CONFIDENCE = 0.95
# Below so many subjects the usual approximations are not trusted, and the wider choice is taken.
FEW = 20
_EQUAL = 1e-12

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the range that holds the truth with the asked confidence.

    The estimate is None where nothing was observed; an end is infinite where the data do not bound that
    side.
    """

    estimate: float | None
    low: float
    high: float


def wilson_interval(share: float, of: float, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a share of independent trials; `of` may be an effective number of them."""
    if of <= 0:
        return Interval(None, 0.0, 1.0)
    z = normal_quantile((1 + confidence) / 2)
    denominator = 1 + z * z / of
    middle = (share + z * z / (2 * of)) / denominator
    reach = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / denominator
    # At the ends of the scale Wilson's end is the scale's end, which rounding would miss by a hair.
    low = 0.0 if share <= 0 else max(0.0, middle - reach)
    high = 1.0 if share >= 1 else min(1.0, middle + reach)
    return Interval(share, low, high)


def rate_interval(
    subjects: Iterable[tuple[int, int]] | Mapping[tuple[int, int], int], confidence: float = CONFIDENCE
) -> Interval:
    """The interval of the pass rate over subjects, each given as (passed, scored).

    Wilson's interval on as many independent runs as these clustered ones are worth: `effective_runs`. Where
    every subject ran once, that is their number and the interval is Wilson's own. Many subjects may be given
    as how many of them there are of each kind.
    """
    scored = Counter({kind: times for kind, times in Counter(subjects).items() if kind[1] > 0 and times > 0})
    total = sum(runs * times for (_, runs), times in scored.items())
    if not total:
        return Interval(None, 0.0, 1.0)
    share = sum(passed * times for (passed, _), times in scored.items()) / total
    return wilson_interval(share, effective_runs(scored, confidence), confidence)


def effective_runs(
    subjects: Iterable[tuple[int, int]] | Mapping[tuple[int, int], int],
    confidence: float = CONFIDENCE,
    *,
    trust: int = 2,
) -> float:
    """How many independent runs these are worth, between the number of subjects and the number of runs.

    The runs over the design effect of the cluster-robust variance, with Korn and Graubard's correction for
    the few degrees of freedom. How far repetitions agree shows only in subjects that had the rarer outcome:
    with s of them the design effect moves to its worst case (repetitions add nothing) by 1/s² (1/s^trust).
    Without that the interval covers 89% instead of 95% where few subjects fail; at 0% and 100% it is the
    worst case.
    """
    kinds = Counter(subjects)
    number, total = kinds.total(), sum(runs * times for (_, runs), times in kinds.items())
    worst = _worst_effective(kinds.items())
    share = sum(passed * times for (passed, _), times in kinds.items()) / total
    informative = sum(
        times for (passed, runs), times in kinds.items() if (passed if share <= 0.5 else runs - passed) > 0
    )
    if informative < 2 or number < 2:
        return worst
    variance = _clustered_variance(kinds.items(), share)
    z, t = normal_quantile((1 + confidence) / 2), t_quantile((1 + confidence) / 2, number - 1)
    measured = share * (1 - share) / variance * (z / t) ** 2 if variance > 0 else total
    bounded = min(max(measured, worst), total)
    weight = 1 / informative**trust
    return 1 / ((1 - weight) / bounded + weight / worst)


def _clustered_variance(kinds: Iterable[tuple[tuple[Number, int], int]], mean: float) -> float:
    """The cluster-robust variance of a mean over runs, from each subject's sum and number of runs.

    Each subject's residual is enlarged by its share of the runs (the jackknife's form, "CR3"): a subject
    with many repetitions pulls the mean towards itself and would otherwise hide how far off it is. Subjects
    come with how often each occurs.
    """
    counted = list(kinds)
    number = sum(times for _, times in counted)
    total = sum(runs * times for (_, runs), times in counted)
    squares = math.fsum(
        times * ((amount - mean * runs) / (1 - runs / total)) ** 2 for (amount, runs), times in counted
    )
    return (number - 1) / number * squares / total**2


def _worst_effective(kinds: Iterable[tuple[tuple[Number, int], int]]) -> float:
    """How many independent runs these are worth when repetitions of a subject always agree (Kish)."""
    counted = [(runs, times) for (_, runs), times in kinds]
    total = sum(runs * times for runs, times in counted)
    return total * total / sum(runs * runs * times for runs, times in counted)


def mean_interval(
    subjects: Sequence[Sequence[float]],
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The mean over the values of all runs, given by subject, with its interval.

    Student's t on the cluster-robust standard error, with Hall's correction for skewness: costs and
    latencies have a long upper tail, and the plain t interval then misses the mean too often. With fewer
    than 20 subjects the skewness is hardly known, and the wider end of both is taken. `bounds` are the ends
    of the scale, where it has any. Where nothing varies the spread is unknown: the interval is then the
    worst case on a bounded scale, and open on both sides otherwise.
    """
    sums = [(math.fsum(values), len(values)) for values in subjects if values]
    return sums_interval(sums, bounds=bounds, confidence=confidence)


def sums_interval(
    sums: Sequence[tuple[float, int]],
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """`mean_interval` from the sum and the number of values of each subject."""
    total = sum(runs for _, runs in sums)
    if not total:
        return Interval(None, *(bounds or (-math.inf, math.inf)))
    mean = math.fsum(amount for amount, _ in sums) / total
    each_once = [(one, 1) for one in sums]
    variance = _clustered_variance(each_once, mean) if len(sums) > 1 else 0.0
    worth = _worst_effective(each_once)
    if math.sqrt(variance) <= _EQUAL * max(1.0, abs(mean)):
        return _without_spread(mean, worth, bounds, confidence)
    skewness = _skewness([amount - mean * runs for amount, runs in sums])
    return _around(mean, variance, skewness, worth, len(sums), bounds, confidence)


def moments_interval(
    number: int,
    mean: float,
    squares: float,
    cubes: float,
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """`mean_interval` of values that each came once, from sums of their squared and cubed deviations."""
    if not number:
        return Interval(None, *(bounds or (-math.inf, math.inf)))
    variance = squares / (number * (number - 1)) if number > 1 else 0.0
    if math.sqrt(variance) <= _EQUAL * max(1.0, abs(mean)):
        return _without_spread(mean, number, bounds, confidence)
    skewness = _adjusted_skewness(number, squares / number, cubes / number)
    return _around(mean, variance, skewness, number, number, bounds, confidence)


def _around(
    mean: float,
    variance: float,
    skewness: float,
    worth: float,
    number: int,
    bounds: tuple[float, float] | None,
    confidence: float,
) -> Interval:
    reach = t_quantile((1 + confidence) / 2, max(worth - 2, 1.0))
    lean = skewness / math.sqrt(number)
    below, above = _hall(lean, reach) if number >= FEW else _widest(_hall(lean, reach), (reach, reach))
    error = math.sqrt(variance)
    return Interval(mean, *_within(mean - error * below, mean + error * above, bounds))


def _hall(lean: float, reach: float) -> tuple[float, float]:
    """How many standard errors the interval goes below and above the mean.

    Hall's (1992) monotone cubic transformation of the t statistic, turned back. The reach has one degree of
    freedom less than Student's, for the skewness that is estimated too.
    """
    if abs(lean) < 1e-6:
        return reach, reach

    def back(statistic: float) -> float:
        return 3 / lean * (math.cbrt(1 + lean * (statistic - lean / 6)) - 1)

    return max(back(reach), 0.0), max(-back(-reach), 0.0)


def _widest(*sides: tuple[float, float]) -> tuple[float, float]:
    return max(below for below, _ in sides), max(above for _, above in sides)


def _skewness(residuals: list[float]) -> float:
    """The sample skewness, adjusted for small samples."""
    number = len(residuals)
    middle = math.fsum(residuals) / number
    second = math.fsum((one - middle) ** 2 for one in residuals) / number
    third = math.fsum((one - middle) ** 3 for one in residuals) / number
    return _adjusted_skewness(number, second, third)


def _adjusted_skewness(number: int, second: float, third: float) -> float:
    if number < 3:
        return 0.0
    return math.sqrt(number * (number - 1)) / (number - 2) * third / second**1.5


def _without_spread(
    mean: float, worth: float, bounds: tuple[float, float] | None, confidence: float
) -> Interval:
    if bounds is None:
        return Interval(mean, -math.inf, math.inf)
    least, most = bounds
    share = wilson_interval((mean - least) / (most - least), worth, confidence)
    return Interval(mean, least + share.low * (most - least), least + share.high * (most - least))


def _within(low: float, high: float, bounds: tuple[float, float] | None) -> tuple[float, float]:
    return (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))


def percentile_interval(
    subjects: Sequence[Sequence[float]], share: float, confidence: float = CONFIDENCE
) -> Interval:
    """A percentile over the values of all runs, given by subject, with its interval; 0.95 is the 95th.

    Fractional order statistics (Hutson 1999): the ranks whose binomial chance of lying below the percentile
    leaves half the error on either side, with the effective number of runs in place of the runs. An end is
    infinite where there are too few: no sample of 20 bounds its 95th percentile from above.
    """
    ordered = sorted(value for values in subjects for value in values)
    if not ordered:
        return Interval(None, -math.inf, math.inf)
    estimate = _at_rank(ordered, 1 + share * (len(ordered) - 1))
    below = [(sum(1 for value in values if value <= estimate), len(values)) for values in subjects if values]
    # Where the percentile lies is estimated from the same runs: their agreement there is trusted less.
    runs = effective_runs(below, confidence, trust=1)
    low, high = _ranks(share, runs, confidence)
    stretch = (len(ordered) + 1) / (runs + 1)
    return Interval(
        estimate,
        -math.inf if low is None else min(estimate, _at_rank(ordered, low * stretch)),
        math.inf if high is None else max(estimate, _at_rank(ordered, high * stretch)),
    )


def _ranks(share: float, runs: float, confidence: float) -> tuple[float | None, float | None]:
    """The ranks at the ends; None where there is no such rank: the other end then bears all the error."""
    open_low = _rank(share, runs, (1 + confidence) / 2) < 1
    open_high = _rank(share, runs, (1 - confidence) / 2) > runs
    low = _rank(share, runs, confidence if open_high else (1 + confidence) / 2)
    high = _rank(share, runs, 1 - confidence if open_low else (1 - confidence) / 2)
    return (low if low >= 1 and not open_low else None), (high if high <= runs and not open_high else None)


@lru_cache(maxsize=1024)
def _rank(share: float, runs: float, chance: float) -> float:
    """The rank whose value lies below the percentile with this chance: I_share(rank, runs - rank + 1)."""
    return root(lambda rank: chance - beta_cdf(share, rank, runs - rank + 1), 0.0, runs + 1)


def _at_rank(ordered: list[float], rank: float) -> float:
    """The value at a rank counted from 1, between two values by how far the rank lies between theirs."""
    position = min(max(rank - 1, 0.0), len(ordered) - 1.0)
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (position - lower) * (ordered[upper] - ordered[lower])
