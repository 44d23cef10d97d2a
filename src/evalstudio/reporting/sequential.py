"""Deciding while runs come in: tests that stay valid however often one looks, and confidence sequences.

What is decided is the mean over a fixed set of subjects: the pass rate (or the difference of two) averaged
over these subjects, each with its own unknown rate. A round is one repetition of every one of them. The
evidence is a wealth that bets on the outcomes of a round:

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
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from .distributions import root
from .intervals import Interval
from .paired import ALPHA

Decision = Literal["met", "missed"]

# Any weights of c make a valid test; so many equally spaced ones come close to all of them.
_BETS = tuple((step + 0.5) / 64 for step in range(64))
_NEAR_ZERO = 1e-9


class _MeanSequence:
    """Outcomes from 0 to 1, counted by value, and what they say of their mean over the subjects.

    Either side of the bound has half of alpha, so that a decision is taken exactly when the bound leaves the
    confidence sequence.
    """

    def __init__(self, bound: float, alpha: float, values: tuple[float, ...]) -> None:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha is {alpha}; it must lie between 0 and 1")
        self._bound = bound
        self._threshold = math.log(2 / alpha)
        self._values = values
        self._counts = [0] * len(values)
        self._missing = 0
        self._decision: Decision | None = None
        self.rounds = 0

    def _add(self, counts: Sequence[int], missing: int) -> None:
        if min(*counts, missing) < 0:
            raise ValueError(f"a round cannot hold {min(*counts, missing)} runs")
        self._counts = [before + more for before, more in zip(self._counts, counts, strict=True)]
        self._missing += missing
        self.rounds += 1
        self._decision = self._decision or self._decided()

    @property
    def decision(self) -> Decision | None:
        """`met` or `missed` once that is shown, and then for good; None while it is open."""
        return self._decision

    def _decided(self) -> Decision | None:
        if self._bound <= 0 or self._evidence_above(self._bound) >= self._threshold:
            return "met"
        return "missed" if self._evidence_below(self._bound) >= self._threshold else None

    def _evidence_above(self, mean: float) -> float:
        """The log of the evidence that the mean is above this one; a missing outcome counts as the lowest."""
        outcomes = list(zip(self._values, self._counts, strict=True))
        return _log_wealth([*outcomes, (0.0, self._missing)], mean)

    def _evidence_below(self, mean: float) -> float:
        """The same for below: the mirror image, with a missing outcome counted as the highest."""
        outcomes = [(1 - value, number) for value, number in zip(self._values, self._counts, strict=True)]
        return _log_wealth([*outcomes, (0.0, self._missing)], 1 - mean)

    def _unrefuted(self) -> tuple[float, float]:
        """The means that are not refuted: an interval, because each evidence is monotone in the mean."""
        low = self._end(self._evidence_above)
        high = 1 - self._end(lambda distance: self._evidence_below(1 - distance))
        return low, high

    def _end(self, evidence: Callable[[float], float]) -> float:
        """Where falling evidence passes its threshold; 0 where there is not enough anywhere."""
        if evidence(_NEAR_ZERO) < self._threshold:
            return 0.0
        return root(lambda mean: self._threshold - evidence(mean), _NEAR_ZERO, 1.0)

    def _mean(self) -> float | None:
        number = sum(self._counts)
        total = math.fsum(value * times for value, times in zip(self._values, self._counts, strict=True))
        return total / number if number else None


def _log_wealth(outcomes: Sequence[tuple[float, int]], mean: float) -> float:
    """The log of the average wealth over all bets; an outcome above 0 refutes a mean of 0."""
    if mean >= 1:
        return -math.inf
    if mean <= 0:
        return math.inf if any(value > 0 and number for value, number in outcomes) else -math.inf
    factors = [(number, _log_factors(value / mean)) for value, number in outcomes if number]
    logs = [sum(number * logs[bet] for number, logs in factors) for bet in range(len(_BETS))]
    most = max(logs)
    return most + math.log(math.fsum(math.exp(one - most) for one in logs) / len(logs))


# The bound is asked about after every round with the same few outcomes.
@lru_cache(maxsize=64)
def _log_factors(ratio: float) -> tuple[float, ...]:
    """By how much an outcome changes the wealth of each bet, from its ratio to the mean."""
    return tuple(math.log1p(bet * (ratio - 1)) for bet in _BETS)


class RateSequence(_MeanSequence):
    """Whether a pass rate is at least a bound, asked after every round.

    For one subject a round is one run. For the rate over several, each round is one repetition of all of
    them; a run that errored, is still out or was not started is missing. So that nothing is missing, a
    subject goes on as long as any rate that it counts for is open.
    """

    def __init__(self, bound: float, alpha: float = ALPHA) -> None:
        if not 0 <= bound <= 1:
            raise ValueError(f"the bound is {bound}; a pass rate lies between 0 and 1")
        super().__init__(bound, alpha, (1.0, 0.0))

    def add(self, passed: bool) -> None:
        """Add a round of one run."""
        self.add_round(int(passed), int(not passed))

    def add_round(self, passed: int, failed: int, missing: int = 0) -> None:
        """Add one repetition of all subjects."""
        self._add((passed, failed), missing)

    @property
    def interval(self) -> Interval:
        """The pass rate so far and its confidence sequence, which never misses with confidence 1 - alpha."""
        return Interval(self._mean(), *self._unrefuted())


class PairedSequence(_MeanSequence):
    """Whether candidate minus base is at least a bound, for two sides that are run in the same rounds.

    A round is one repetition of all subjects on both sides. A bound of 0 asks for no regression, one of
    -0.05 for none of more than five points.
    """

    def __init__(self, bound: float = 0.0, alpha: float = ALPHA) -> None:
        if not -1 <= bound <= 1:
            raise ValueError(f"the bound is {bound}; a difference of pass rates lies between -1 and 1")
        super().__init__((bound + 1) / 2, alpha, (1.0, 0.5, 0.0))

    def add_round(self, better: int, same: int, worse: int, missing: int = 0) -> None:
        """Add a repetition: how many subjects only the candidate passed, were alike, only the base passed."""
        self._add((better, same, worse), missing)

    @property
    def interval(self) -> Interval:
        """The difference so far and its confidence sequence."""
        mean = self._mean()
        low, high = self._unrefuted()
        return Interval(None if mean is None else 2 * mean - 1, 2 * low - 1, 2 * high - 1)


def sequence_difference(candidate: RateSequence, base: RateSequence) -> Interval:
    """Candidate minus base for a base that was run before and is not repeated, from a sequence of either.

    Valid at any time; its error is at most the sum of both alphas, so give each half.
    """
    ours, theirs = candidate.interval, base.interval
    estimate = None
    if ours.estimate is not None and theirs.estimate is not None:
        estimate = ours.estimate - theirs.estimate
    return Interval(estimate, ours.low - theirs.high, ours.high - theirs.low)
