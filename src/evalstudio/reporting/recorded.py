"""What a scored dataset came to, with intervals, and what its requirements are held against.

Every record is its own subject: it was scored once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..scoring.summary import DatasetSummary, Distribution
from .intervals import CONFIDENCE, Interval, moments_interval, wilson_interval
from .requirements import Measured, Regression, Scope, ScopedRuns


def mean_of(spread: Distribution, confidence: float = CONFIDENCE, *, is_score: bool = True) -> Interval:
    """The mean of a criterion (from 0 to 1) or a metric, with its interval."""
    bounds = (0.0, 1.0) if is_score else None
    squares, cubes = spread.central_sums()
    return moments_interval(
        spread.count, spread.mean or 0.0, squares, cubes, bounds=bounds, confidence=confidence
    )


def means_of(summary: DatasetSummary) -> Iterator[tuple[str, int, Interval]]:
    """The overall score, every criterion and every metric: name, number of records, mean."""
    if summary.overall.count:
        yield "overall score", summary.overall.count, mean_of(summary.overall)
    for name, spread in summary.criteria.items():
        yield name, spread.count, mean_of(spread)
    for name, spread in summary.metrics.items():
        yield name, spread.count, mean_of(spread, is_score=False)


def pass_rate(outcomes: Mapping[str, int]) -> Interval:
    """The share of records that passed, of those that passed or failed; records are independent."""
    scored = outcomes["pass"] + outcomes["fail"]
    return wilson_interval(outcomes["pass"] / scored if scored else 0.0, scored)


def group_rates(summary: DatasetSummary) -> list[tuple[str, Interval]]:
    return [(name, pass_rate(group.outcomes)) for name, group in summary.groups.items()]


def summary_json(summary: DatasetSummary) -> dict[str, Any]:
    """The summary with the interval of every mean beside it."""
    whole = summary.to_json()
    whole["overallInterval"] = _ends(mean_of(summary.overall))
    whole["passRate"] = _interval(pass_rate(summary.outcomes))
    for kind, spreads in (("criteria", summary.criteria), ("metrics", summary.metrics)):
        for name, spread in spreads.items():
            whole[kind][name]["interval"] = _ends(mean_of(spread, is_score=kind == "criteria"))
    for name, group in summary.groups.items():
        whole["groups"][name]["passRate"] = _interval(pass_rate(group.outcomes))
        whole["groups"][name]["interval"] = _ends(mean_of(group.overall))
    return whole


def _ends(interval: Interval) -> list[float | None]:
    return [round(end, 9) if math.isfinite(end) else None for end in (interval.low, interval.high)]


def _interval(interval: Interval) -> dict[str, Any]:
    return {"estimate": interval.estimate, "interval": _ends(interval)}


@dataclass(slots=True)
class RecordedEvidence:
    """A scored dataset as evidence. Records have no scenario or tag, and single values are not kept."""

    summary: DatasetSummary
    noun: str = "records"

    def runs(self, scope: Scope) -> ScopedRuns:
        if str(scope):
            return ScopedRuns()
        outcomes = self.summary.outcomes
        return ScopedRuns(
            passed=outcomes["pass"],
            failed=outcomes["fail"],
            # A record that could not be read is one that was not scored.
            errored=outcomes["error"] + self.summary.bad,
            unasserted=outcomes["unasserted"],
            subjects=[(1, 1)] * outcomes["pass"] + [(0, 1)] * outcomes["fail"],
        )

    def metric(self, name: str, percentile: float | None, scope: Scope, confidence: float) -> Measured | str:
        if percentile is not None:
            return "score keeps no single values of a metric: require its mean, without percentile"
        spread = self.summary.metrics.get(name)
        if spread is None:
            return f'no record has a value of "{name}"'
        return Measured(mean_of(spread, confidence, is_score=False), spread.count)

    def criterion(self, name: str, scope: Scope, confidence: float) -> Measured | str:
        spread = self.summary.criteria.get(name)
        if spread is None:
            return f'no record has a score of "{name}"'
        return Measured(mean_of(spread, confidence), spread.count)

    def regression(self, baseline: str, scope: Scope, alpha: float) -> Regression | str:
        return "results files are compared by: evalstudio compare BASE CANDIDATE"
