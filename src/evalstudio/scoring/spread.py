"""Numbers of many records as a count, their mean and spread, and a histogram, which add up over parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..base.lazy_dataclass import dataclass

BINS = 10


@dataclass(slots=True)
class Distribution:
    """Numbers as a count, their mean and spread, and a histogram over 0–1.

    Powers are summed of the distance to the first number: sums of large numbers would cancel each other out.
    """

    count: int = 0
    total: float = 0.0
    origin: float = 0.0
    sums: tuple[float, float, float] = (0.0, 0.0, 0.0)
    bins: list[int] = field(default_factory=lambda: [0] * BINS)

    def add_all(self, values: Sequence[float]) -> None:
        """Take numbers, one after the other."""
        if not values:
            return
        origin = self.origin if self.count else values[0]
        first, second, third = self.sums
        total, bins = self.total, self.bins
        for value in values:
            distance = value - origin
            square = distance * distance
            first += distance
            second += square
            third += square * distance
            total += value
            bins[0 if value <= 0 else BINS - 1 if value >= 1 else int(value * BINS)] += 1
        self.origin, self.sums, self.total = origin, (first, second, third), total
        self.count += len(values)

    def merge(self, other: Distribution) -> None:
        if not self.count:
            self.origin = other.origin
        moved = _moved(other.sums, other.count, other.origin - self.origin)
        self.sums = (self.sums[0] + moved[0], self.sums[1] + moved[1], self.sums[2] + moved[2])
        self.count += other.count
        self.total += other.total
        self.bins = [a + b for a, b in zip(self.bins, other.bins, strict=True)]

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def central_sums(self) -> tuple[float, float]:
        """The sums of the squared and the cubed deviations from the mean."""
        if not self.count:
            return 0.0, 0.0
        _, second, third = _moved(self.sums, self.count, -self.sums[0] / self.count)
        return max(second, 0.0), third


def _moved(sums: tuple[float, float, float], count: int, by: float) -> tuple[float, float, float]:
    """Sums of powers of distances that have all grown by a number."""
    first, second, third = sums
    return (
        first + count * by,
        second + 2 * by * first + count * by * by,
        third + 3 * by * second + 3 * by * by * first + count * by**3,
    )
