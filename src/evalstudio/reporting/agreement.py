"""Agreement of two raters beyond chance: Cohen's kappa, plain or weighted for ordered marks."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, Literal

from .distributions import normal_quantile, t_quantile
from .intervals import CONFIDENCE, Interval, wilson_interval

Weights = Literal["none", "linear", "quadratic"]

_UNKNOWN = Interval(None, -1.0, 1.0)


def kappa(
    pairs: Sequence[tuple[Any, Any]],
    *,
    weights: Weights = "none",
    scale: Sequence[Any] | None = None,
    subjects: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Cohen's kappa of two raters' marks on the same items.

    `weights` count near misses on an ordered `scale` (by default the marks that occur, sorted) as partial
    agreement. `subjects` names the subject of each item where several items belong to one. The estimate is
    None where it is undefined: no items, or both raters gave one and the same mark to all.

    The standard error is that of Fleiss, Cohen and Everitt (1969), clustered by subject. The interval is
    Wilson's on the observed agreement with the number of items that this error amounts to, so that perfect
    agreement on a few items is not shown as certain.
    """
    order = {mark: place for place, mark in enumerate(scale if scale is not None else _marks(pairs))}
    _refuse_unknown_marks(pairs, order)
    places = [(order[first], order[second]) for first, second in pairs]
    if not places:
        return _UNKNOWN
    table = _Agreement(places, weights, len(order))
    if math.isclose(table.by_chance, 1.0):
        return _UNKNOWN
    groups = _influence_by_subject(table, places, subjects)
    return _interval(table, groups, confidence)


def _marks(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    return sorted({mark for pair in pairs for mark in pair})


def _refuse_unknown_marks(pairs: Sequence[tuple[Any, Any]], order: dict[Any, int]) -> None:
    strangers = sorted({repr(mark) for pair in pairs for mark in pair if mark not in order})
    if strangers:
        raise ValueError(f"{', '.join(strangers)} is not on the scale {', '.join(map(repr, order))}")


class _Agreement:
    """Observed agreement and agreement by chance, weighted."""

    def __init__(self, places: Sequence[tuple[int, int]], weights: Weights, size: int) -> None:
        self.number = len(places)
        self._power = {"none": 0, "linear": 1, "quadratic": 2}[weights]
        self._widest = max(size - 1, 1)
        firsts, seconds = Counter(first for first, _ in places), Counter(second for _, second in places)
        self.row = {place: self._chance(place, seconds) for place in firsts}
        self.column = {place: self._chance(place, firsts) for place in seconds}
        cells = Counter(places)
        self.observed = math.fsum(self.weight(*cell) * n for cell, n in cells.items()) / self.number
        self.by_chance = math.fsum(self.row[place] * n for place, n in firsts.items()) / self.number
        self.imperfect = sum(n for cell, n in cells.items() if cell[0] != cell[1])

    def weight(self, first: int, second: int) -> float:
        if self._power == 0:
            return float(first == second)
        return 1 - (abs(first - second) / self._widest) ** self._power

    def _chance(self, place: int, others: Counter[int]) -> float:
        return math.fsum(self.weight(place, other) * n for other, n in others.items()) / self.number

    @property
    def kappa(self) -> float:
        return (self.observed - self.by_chance) / (1 - self.by_chance)

    def influence(self, first: int, second: int) -> float:
        """How far one item moves kappa, per item."""
        room = 1 - self.by_chance
        agreement = room * (self.weight(first, second) - self.observed)
        chance = self.row[first] + self.column[second] - 2 * self.by_chance
        return (agreement - (1 - self.observed) * chance) / room**2


def _influence_by_subject(
    table: _Agreement, places: Sequence[tuple[int, int]], subjects: Sequence[Hashable] | None
) -> list[float]:
    sums: defaultdict[Hashable, float] = defaultdict(float)
    for item, place in enumerate(places):
        sums[subjects[item] if subjects is not None else item] += table.influence(*place)
    return list(sums.values())


def _interval(table: _Agreement, groups: list[float], confidence: float) -> Interval:
    number = len(groups)
    variance = math.fsum(one * one for one in groups) / table.number**2
    room = 1 - table.by_chance
    worst = float(number)
    worth = worst
    if number > 1 and table.imperfect > 1 and variance > 0:
        z, t = normal_quantile((1 + confidence) / 2), t_quantile((1 + confidence) / 2, number - 1)
        measured = table.observed * (1 - table.observed) / (variance * room**2) * (z / t) ** 2
        weight = 1 / table.imperfect**2
        worth = 1 / ((1 - weight) / measured + weight / worst) if measured > 0 else worst
    observed = wilson_interval(table.observed, worth, confidence)
    low, high = ((end - table.by_chance) / room for end in (observed.low, observed.high))
    return Interval(table.kappa, max(low, -1.0), min(high, 1.0))
