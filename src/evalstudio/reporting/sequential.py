"""Deciding while runs come in: tests that stay valid however often one looks, and confidence sequences.

What is decided is the mean over a fixed set of subjects: the pass rate, or another value from 0 to 1,
averaged over these subjects, each with its own unknown mean. A round is one repetition of every one of them.
The evidence is a wealth that bets on the outcomes of a round:

    E(mean) = average over c of the product over runs of (1 - c + c * outcome / mean),  0 < c < 1

Within a round c does not change, so the expected factor is the product of (1 - c + c * rate / mean) over the
subjects, which is at most the power of its average (arithmetic and geometric mean). If the average rate is
at most `mean`, E is therefore a supermartingale from round to round, however much the subjects differ, and
exceeds 1/alpha at any time with a chance of at most alpha (Ville). No independence of subjects' rates, no
normality, no large number is needed; runs of a round must be independent of each other given the rounds
before.

Two things are not covered. It says nothing about other subjects: the intervals of `intervals` do. And
looking in the middle of a round would favour the subjects that come first: runs that are still out are
`missing`, and are counted against the decision.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Literal

from .distributions import root
from .intervals import Interval
from .paired import ALPHA

Decision = Literal["met", "missed"]

# Any weights of c make a valid test; so many equally spaced ones come close to all of them.
_BETS = tuple((step + 0.5) / 64 for step in range(64))
_NEAR_ZERO = 1e-9
# Values are counted in steps of this size, rounded against the evidence, so that looking stays quick.
_STEPS = 1000
_LARGEST_RATIO = 1000.0


class MeanSequence:
    """Whether the mean of values from 0 to 1 is at least a bound, asked after every round.

    Each round is one repetition of all subjects; a value that is not known is missing, and counts as the
    worst for either decision. Either side of the bound has half of alpha, so that a decision is taken exactly
    when the bound leaves the confidence sequence.
    """

    def __init__(self, bound: float, alpha: float = ALPHA) -> None:
        if not 0 <= bound <= 1:
            raise ValueError(f"the bound is {bound}; the mean of values from 0 to 1 lies between them")
        self._bound = bound
        self._threshold = _threshold(alpha)
        self._up: Counter[float] = Counter()
        """The values, and below what they leave of 1; what is missing is 0 in both."""
        self._down: Counter[float] = Counter()
        # Of the bound, which is asked about after every round, the evidence grows with the rounds.
        self._above_bound = _Wealth(bound) if 0 < bound < 1 else None
        self._below_bound = _Wealth(1 - bound) if 0 < bound < 1 else None
        self._total = 0.0
        self._number = 0
        self._decision: Decision | None = None
        self.rounds = 0

    def add_round(self, values: Iterable[float], missing: int = 0) -> None:
        """Add one repetition of all subjects."""
        self._add(Counter(values), missing)

    def _add(self, counts: Mapping[float, int], missing: int) -> None:
        least = min(missing, *counts.values()) if counts else missing
        if least < 0:
            raise ValueError(f"a round cannot hold {least} runs")
        up, down = Counter({0.0: missing}), Counter({0.0: missing})
        for value, number in counts.items():
            if not 0 <= value <= 1:
                raise ValueError(f"a value is {value}; it must lie between 0 and 1")
            up[_rounded_down(value)] += number
            down[_rounded_down(1 - value)] += number
            self._total += value * number
            self._number += number
        self._up.update(up)
        self._down.update(down)
        if self._above_bound is not None and self._below_bound is not None:
            self._above_bound.add(up)
            self._below_bound.add(down)
        self.rounds += 1
        self._decision = self._decision or self._decided()

    @property
    def decision(self) -> Decision | None:
        """`met` or `missed` once that is shown, and then for good; None while it is open."""
        return self._decision

    @property
    def interval(self) -> Interval:
        """The mean so far and its confidence sequence, which never misses with confidence 1 - alpha."""
        low = self._end(self._evidence_above)
        high = 1 - self._end(lambda distance: self._evidence_below(1 - distance))
        return Interval(self._total / self._number if self._number else None, low, high)

    def is_above(self, mean: float) -> bool:
        """Whether the mean is shown to be above this one: whether the confidence sequence is."""
        return self._evidence_above(mean) >= self._threshold

    def is_below(self, mean: float) -> bool:
        return self._evidence_below(mean) >= self._threshold

    def _decided(self) -> Decision | None:
        if self._bound <= 0 or self._shown(self._above_bound):
            return "met"
        if self._below_bound is None:
            return "missed" if self.is_below(self._bound) else None
        return "missed" if self._shown(self._below_bound) else None

    def _shown(self, wealth: _Wealth | None) -> bool:
        return wealth is not None and wealth.log >= self._threshold

    def _evidence_above(self, mean: float) -> float:
        """The log of the evidence that the mean is above this one."""
        return _log_wealth(self._up, mean) if mean < 1 else -math.inf

    def _evidence_below(self, mean: float) -> float:
        """The same for below: the mirror image."""
        return _log_wealth(self._down, 1 - mean) if mean > 0 else -math.inf

    def _end(self, evidence: Callable[[float], float]) -> float:
        """Where evidence, which falls with the mean, passes its threshold; 0 if there is too little."""
        if evidence(_NEAR_ZERO) < self._threshold:
            return 0.0
        return root(lambda mean: self._threshold - evidence(mean), _NEAR_ZERO, 1.0)


class RateSequence(MeanSequence):
    """Whether a pass rate is at least a bound, asked after every round.

    For one subject a round is one run. For the rate over several, each round is one repetition of all of
    them; a run that errored, is still out or was not started is missing. So that nothing is missing, a
    subject goes on as long as any rate that it counts for is open.
    """

    def add(self, passed: bool) -> None:
        """Add a round of one run."""
        self.add_counts(int(passed), int(not passed))

    def add_counts(self, passed: int, failed: int, missing: int = 0) -> None:
        """Add one repetition of all subjects."""
        self._add({1.0: passed, 0.0: failed}, missing)


class GrowingMean:
    """Whether the mean of values that are never negative is above a bound.

    Without a largest value that is all that can be shown at any time: however many small ones came, a rare
    huge one may be outstanding.
    """

    def __init__(self, bound: float, alpha: float = ALPHA) -> None:
        if not bound > 0:
            raise ValueError(f"the bound is {bound}; it must be above 0")
        self._bound = bound
        self._threshold = _threshold(alpha)
        self._wealth = _Wealth(1.0)
        self.above = False
        self.rounds = 0

    def add_round(self, values: Iterable[float], missing: int = 0) -> None:
        """Add one repetition of all subjects; what is missing counts as 0."""
        ratios = Counter({0.0: missing})
        for value in values:
            if value < 0:
                raise ValueError(f"a value is {value}; it must not be negative")
            ratios[_rounded_down(min(value / self._bound, _LARGEST_RATIO))] += 1
        self._wealth.add(ratios)
        self.rounds += 1
        self.above = self.above or self._wealth.log >= self._threshold


def _threshold(alpha: float) -> float:
    """The log of the evidence that decides, with half of alpha on either side."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; it must lie between 0 and 1")
    return math.log(2 / alpha)


def _rounded_down(value: float) -> float:
    return math.floor(value * _STEPS) / _STEPS


def _log_wealth(counts: Mapping[float, int], mean: float) -> float:
    """The log of the average wealth over all bets; an outcome above 0 refutes a mean of 0."""
    if mean <= 0:
        return math.inf if any(value > 0 and number for value, number in counts.items()) else -math.inf
    wealth = _Wealth(mean)
    wealth.add(counts)
    return wealth.log


class _Wealth:
    """What each bet on a mean above 0 has come to, added to as outcomes come in."""

    def __init__(self, mean: float) -> None:
        self._mean = mean
        self._logs = [0.0] * len(_BETS)

    def add(self, counts: Mapping[float, int]) -> None:
        for value, number in counts.items():
            if number:
                factors = _log_factors(value / self._mean)
                self._logs = [
                    so_far + number * factor for so_far, factor in zip(self._logs, factors, strict=True)
                ]

    @property
    def log(self) -> float:
        """The log of the average over all bets."""
        most = max(self._logs)
        return most + math.log(math.fsum(math.exp(one - most) for one in self._logs) / len(self._logs))


# The bound is asked about after every round with the same outcomes.
@lru_cache(maxsize=4 * _STEPS)
def _log_factors(ratio: float) -> tuple[float, ...]:
    """By how much an outcome changes the wealth of each bet, from its ratio to the mean."""
    return tuple(math.log1p(bet * (ratio - 1)) for bet in _BETS)
