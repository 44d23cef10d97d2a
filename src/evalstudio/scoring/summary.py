"""What a scored dataset comes to: per criterion the mean, how many, what was left out, a histogram.

Summaries of parts add up, so workers can each keep their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from ..evaluators.results import Outcome

BINS = 10


@dataclass(slots=True)
class Distribution:
    """Numbers as a count, their mean and a histogram over 0–1."""

    count: int = 0
    total: float = 0.0
    bins: list[int] = field(default_factory=lambda: [0] * BINS)

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.bins[0 if value <= 0 else BINS - 1 if value >= 1 else int(value * BINS)] += 1

    def merge(self, other: Distribution) -> None:
        self.count += other.count
        self.total += other.total
        self.bins = [a + b for a, b in zip(self.bins, other.bins, strict=True)]

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class DatasetSummary:
    """Everything known about a scored dataset without its records."""

    records: int = 0
    bad: int = 0
    unsampled: int = 0
    resumed: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(get_args(Outcome), 0))
    overall: Distribution = field(default_factory=Distribution)
    criteria: dict[str, Distribution] = field(default_factory=dict[str, Distribution])
    metrics: dict[str, Distribution] = field(default_factory=dict[str, Distribution])
    criterion_errors: dict[str, int] = field(default_factory=dict[str, int])
    errors: dict[str, int] = field(default_factory=dict[str, int])
    retries: int = 0

    @property
    def read(self) -> int:
        """How many records the dataset has been found to hold, whatever became of them."""
        return self.records + self.bad + self.unsampled

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result, as it stands in the results file."""
        self.records += 1
        self.outcomes[result["outcome"]] += 1
        overall = result.get("overallScore")
        if overall is not None:
            self.overall.add(overall)
        for name, value in result["criterionScores"].items():
            _spread(self.criteria, name).add(value)
        for name, value in result["metrics"].items():
            _spread(self.metrics, name).add(value)
        for item in result["results"]:
            if "error" in item:
                _count(self.criterion_errors, item["criterionName"])
                _count(self.errors, item["error"][:200])

    def merge(self, other: DatasetSummary) -> None:
        self.records += other.records
        self.bad += other.bad
        self.unsampled += other.unsampled
        self.retries += other.retries
        for name, count in other.outcomes.items():
            self.outcomes[name] += count
        self.overall.merge(other.overall)
        for mine, theirs in ((self.criteria, other.criteria), (self.metrics, other.metrics)):
            for name, spread in theirs.items():
                _spread(mine, name).merge(spread)
        for mine, theirs in ((self.criterion_errors, other.criterion_errors), (self.errors, other.errors)):
            for name, count in theirs.items():
                _count(mine, name, count)

    def to_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "bad": self.bad,
            "notSampled": self.unsampled,
            "resumed": self.resumed,
            "outcomes": self.outcomes,
            "overallScore": _rounded(self.overall.mean),
            "criteria": {
                name: {
                    "mean": _rounded(spread.mean),
                    "n": spread.count,
                    "coverage": spread.count / self.records if self.records else 0.0,
                    "errors": self.criterion_errors.get(name, 0),
                    "histogram": spread.bins,
                }
                for name, spread in self.criteria.items()
            },
            "metrics": {
                name: {"mean": _rounded(spread.mean), "n": spread.count}
                for name, spread in self.metrics.items()
            },
            "errors": self.errors,
            "retries": self.retries,
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 9)


def _spread(where: dict[str, Distribution], name: str) -> Distribution:
    if name not in where:
        where[name] = Distribution()
    return where[name]


# A dataset may raise a different message on every record; the rest is counted under one heading.
_MOST_MESSAGES = 50


def _count(where: dict[str, int], name: str, by: int = 1) -> None:
    if name not in where and len(where) >= _MOST_MESSAGES:
        name = "other"
    where[name] = where.get(name, 0) + by
