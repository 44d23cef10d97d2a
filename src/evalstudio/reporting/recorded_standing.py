"""Whether a scored dataset reached what its plan and its requirements ask for, with the reasons in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.text import counted
from ..scoring.plan import ScoringPlan
from ..scoring.summary import DatasetSummary
from .requirements import RequirementResult, Standing, overall


def standing_of(
    summary: DatasetSummary,
    plan: ScoringPlan,
    fail_under: float | None = None,
    results: Sequence[RequirementResult] = (),
) -> tuple[Standing, list[str]]:
    """Met, missed, or not decided: records errored, or nothing was held against anything."""
    if not summary.records:
        return "undecided", ["Not decided: nothing was scored, because no record is in the sample."]
    misses = _misses(summary, plan, fail_under)
    if misses or (results and overall(results) == "missed"):
        return "missed", misses
    if results:
        return overall(results), []
    if errored := summary.outcomes["error"]:
        advice = "see the errors, or say how many there may be: --require maxErrors=1%"
        decided = "" if summary.decided else " and no record passed or failed"
        counts = f"{errored:,} of {counted(summary.records, 'record')} errored{decided}"
        return "undecided", [f"Not decided: {counts}; {advice}"]
    has_bar = bool(plan.thresholds) or plan.fail_under is not None or fail_under is not None
    if summary.decided or has_bar:
        return "met", []
    advice = "Metrics only measure; add an evaluator that can fail, or a threshold."
    return "undecided", [f"Not decided: nothing was asserted. {advice}"]


def _misses(summary: DatasetSummary, plan: ScoringPlan, fail_under: float | None) -> list[str]:
    """Every threshold that was not reached, in words."""
    misses: list[str] = []
    bar = fail_under if fail_under is not None else plan.fail_under
    mean = summary.overall.mean
    if bar is not None and (mean is None or mean < bar):
        reached = "there is none" if mean is None else f"it is {_below(mean, bar)}"
        misses.append(f"The overall score must be at least {bar:g}; {reached}.")
    for name, least in plan.thresholds.items():
        spread = summary.criteria.get(name)
        if spread is None or spread.mean is None:
            misses.append(f'"{name}" must be at least {least:g}; it has no score.')
        elif spread.mean < least:
            misses.append(f'"{name}" must be at least {least:g}; it is {_below(spread.mean, least)}.')
    return misses


def _below(mean: float, bar: float) -> str:
    """A mean in so many digits that it is seen to be below the bar."""
    text = f"{mean:.3f}"
    return text if float(text) < bar else f"{mean:.9g}"
