"""pass@k and pass^k: whether a subject passes in at least one, or in every one, of k repetitions.

Both are computed from more than k repetitions without bias, and averaged over subjects with an interval from
a bootstrap that draws subjects, not runs. It works on how many subjects have which value, so that its cost
does not grow with the number of runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from ..base.lazy_dataclass import dataclass
from .intervals import CONFIDENCE, FEW, Interval, wilson_interval

DRAWS = 1000
SEED = 20
_FEW_EXPECTED = 10
_NO_SPREAD = 1e-9


def pass_at_k(passed: int, scored: int, k: int) -> float | None:
    """The chance that at least one of k runs passes; None where the subject ran fewer than k times."""
    if scored < k:
        return None
    return 1 - math.comb(scored - passed, k) / math.comb(scored, k)


def pass_hat_k(passed: int, scored: int, k: int) -> float | None:
    """The chance that all of k runs pass, pass^k; None where the subject ran fewer than k times."""
    if scored < k:
        return None
    return math.comb(passed, k) / math.comb(scored, k)


@dataclass(frozen=True, slots=True)
class PassK:
    """An average over the subjects that ran at least k times, and how many did not and are left out."""

    k: int
    interval: Interval
    subjects: int
    left_out: int


def mean_pass_at_k(subjects: Sequence[tuple[int, int]], k: int, *, seed: int = SEED) -> PassK:
    """pass@k averaged over subjects, each given as (passed, scored)."""
    return _averaged(subjects, k, pass_at_k, seed)


def mean_pass_hat_k(
    subjects: Sequence[tuple[int, int]], k: int, *, seed: int = SEED, confidence: float = CONFIDENCE
) -> PassK:
    """pass^k averaged over subjects, each given as (passed, scored)."""
    return _averaged(subjects, k, pass_hat_k, seed, confidence)


def _averaged(
    subjects: Sequence[tuple[int, int]],
    k: int,
    estimator: Callable[[int, int, int], float | None],
    seed: int,
    confidence: float = CONFIDENCE,
) -> PassK:
    if k < 1:
        raise ValueError(f"k is {k}; pass@k and pass^k need a k of at least 1")
    shares: Counter[float] = Counter()
    for (passed, scored), number in Counter(subjects).items():
        share = estimator(passed, scored, k)
        if share is not None:
            shares[share] += number
    covered = shares.total()
    interval = bootstrap_interval(shares, confidence=confidence, seed=seed)
    return PassK(k, interval, covered, len(subjects) - covered)


def bootstrap_interval(
    shares: Counter[float], *, confidence: float = CONFIDENCE, seed: int = SEED, draws: int = DRAWS
) -> Interval:
    """The mean of shares from 0 to 1, given as how many subjects have each, and its bootstrap interval.

    The bootstrap draws subjects and is studentised on log odds: plain percentiles cover 90% where most
    subjects have the same share. A bootstrap sees only what occurred. Where few subjects are off the end of
    the scale it is moved to Wilson's interval on the number of subjects, by 1/s² for s such subjects (1/s
    with fewer than 20 in all), and where no two subjects differ it is Wilson's.
    """
    number = shares.total()
    if not number:
        return Interval(None, 0.0, 1.0)
    centre = _moments(shares.items(), number)
    widest = wilson_interval(centre.mean, number, confidence)
    informative = number - shares[0.0 if centre.mean <= 0.5 else 1.0]
    if len(shares) == 1 or informative < 2:
        return widest
    statistics = _studentised(shares, centre, draws, Random(seed))
    outside = int((1 - confidence) / 2 * draws)
    low = centre.shifted(-statistics[-1 - outside])
    high = centre.shifted(-statistics[outside])
    weight = 1 / informative**2 if number >= FEW else 1 / informative
    return Interval(
        centre.mean,
        min((1 - weight) * low + weight * widest.low, centre.mean),
        max((1 - weight) * high + weight * widest.high, centre.mean),
    )


@dataclass(frozen=True, slots=True)
class _Moments:
    """Mean and standard error of shares, also on log odds with half a subject added at either end."""

    mean: float
    error: float
    number: int

    @property
    def log_odds(self) -> float:
        spare = 0.5 / self.number
        return math.log((self.mean + spare) / (1 - self.mean + spare))

    @property
    def log_odds_error(self) -> float:
        spare = 0.5 / self.number
        return self.error * (1 + 2 * spare) / ((self.mean + spare) * (1 - self.mean + spare))

    def shifted(self, errors: float) -> float:
        """The share that lies so many standard errors away on log odds."""
        spare = 0.5 / self.number
        odds = math.exp(min(max(self.log_odds + errors * self.log_odds_error, -700.0), 700.0))
        return min(max(odds / (1 + odds) * (1 + 2 * spare) - spare, 0.0), 1.0)


def _moments(shares: Iterable[tuple[float, int]], number: int) -> _Moments:
    total = squares = 0.0
    for share, times in shares:
        total += share * times
        squares += share * share * times
    mean = total / number
    return _Moments(mean, math.sqrt(max(squares / number - mean * mean, 0.0) / (number - 1 or 1)), number)


def _studentised(shares: Counter[float], centre: _Moments, draws: int, random: Random) -> list[float]:
    """How many of its own standard errors each resample lies from the sample, sorted."""
    ordered = sorted(shares.items())
    statistics: list[float] = []
    for _ in range(draws):
        resample = _moments(_resample(ordered, centre.number, random), centre.number)
        distance = resample.log_odds - centre.log_odds
        error = resample.log_odds_error
        # A resample without spread is infinitely many of its errors away.
        statistics.append(distance / error if error > _NO_SPREAD else math.copysign(math.inf, distance))
    return sorted(statistics)


def _resample(ordered: list[tuple[float, int]], number: int, random: Random) -> Iterator[tuple[float, int]]:
    """As many subjects drawn with replacement, as how often each share occurs."""
    left = weight = number
    for share, times in ordered:
        drawn = left if times == weight else _binomial(left, times / weight, random)
        yield share, drawn
        left -= drawn
        weight -= times
        if not left:
            return


def _binomial(trials: int, probability: float, random: Random) -> int:
    """A binomial number, the same for the same seed on every version of Python."""
    if probability > 0.5:
        return trials - _binomial(trials, 1 - probability, random)
    if trials * probability < _FEW_EXPECTED:
        return _binomial_by_gaps(trials, probability, random)
    return _binomial_by_rejection(trials, probability, random)


def _binomial_by_gaps(trials: int, probability: float, random: Random) -> int:
    """Devroye's waiting times: the gaps between successes are geometric."""
    successes, position, scale = 0, 0, math.log1p(-probability)
    while True:
        position += int(math.log(1 - random.random()) / scale) + 1
        if position > trials:
            return successes
        successes += 1


def _binomial_by_rejection(trials: int, probability: float, random: Random) -> int:
    """Hörmann's BTRS: the same cost however many trials."""
    spread = math.sqrt(trials * probability * (1 - probability))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * probability
    c = trials * probability + 0.5
    alpha = (2.83 + 5.1 / b) * spread
    odds = math.log(probability / (1 - probability))
    mode = int((trials + 1) * probability)
    top = math.lgamma(mode + 1) + math.lgamma(trials - mode + 1)
    while True:
        u, v = random.random() - 0.5, 1 - random.random()
        corner = 0.5 - abs(u)
        drawn = math.floor((2 * a / corner + b) * u + c) if corner else -1
        if not 0 <= drawn <= trials:
            continue
        height = math.log(v * alpha / (a / (corner * corner) + b))
        if height <= top - math.lgamma(drawn + 1) - math.lgamma(trials - drawn + 1) + (drawn - mode) * odds:
            return drawn
