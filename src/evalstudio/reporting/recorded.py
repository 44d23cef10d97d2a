"""What a scored dataset came to, with intervals, and whether it reached its thresholds and requirements.

Every record is its own subject: it was scored once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..base.text import counted
from ..project.requirements import Budget
from ..scoring.plan import ScoringPlan
from ..scoring.result_lines import BadResult
from ..scoring.spread import Distribution
from ..scoring.stored_results import (
    ResultsPlace,
    each_result,
    is_same_place,
    is_there,
    note_at,
    results_place,
)
from ..scoring.summary import DatasetSummary
from .intervals import CONFIDENCE, Interval, moments_interval, percentile_interval, wilson_interval
from .paired import Pair, compare_rates
from .requirements import Measured, Regression, RequirementResult, Scope, ScopedRuns, Standing, overall
from .spending import Role, RoleSpending, unseen


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


def spending_of_records(summary: DatasetSummary) -> list[RoleSpending]:
    """Tokens and cost of the agent and the judges over the records."""
    return [_role_spending(summary, role) for role in ("agent", "judge")]


def _role_spending(summary: DatasetSummary, role: Role) -> RoleSpending:
    tokens, cost = summary.used[f"{role}Tokens"], summary.used[f"{role}Cost"]
    return RoleSpending(
        role=role,
        runs=summary.records,
        tokens=int(tokens.total) if tokens.records else None,
        runs_with_tokens=tokens.records,
        cost=cost.total if cost.records else None,
        runs_with_cost=cost.records,
    )


def budget_notes(budget: Budget, summary: DatasetSummary) -> list[str]:
    """That a budget ended it, and what of the judges' use it could not see."""
    judges = [one for one in spending_of_records(summary) if one.role == "judge"]
    return [f"Ended by its budget: {summary.ended}"] * bool(summary.ended) + unseen(budget, judges)


def summary_json(summary: DatasetSummary) -> dict[str, Any]:
    """The summary with the interval of every mean beside it."""
    whole = summary.to_json()
    whole["overallInterval"] = _ends(mean_of(summary.overall))
    whole["passRate"] = _interval(pass_rate(summary.outcomes))
    whole["usage"] = [one.model_dump(mode="json", by_alias=True) for one in spending_of_records(summary)]
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
    """A scored dataset as evidence. Records have no scenario; single values are in its results."""

    summary: DatasetSummary
    results: ResultsPlace | None = None
    noun: str = "records"

    def runs(self, scope: Scope) -> ScopedRuns:
        if str(scope):
            return ScopedRuns()
        outcomes = self.summary.outcomes
        return ScopedRuns(
            runs=self.summary.records + self.summary.bad,
            passed=outcomes["pass"],
            failed=outcomes["fail"],
            # A record that could not be read is one that was not scored.
            errored=outcomes["error"] + self.summary.bad,
            unasserted=outcomes["unasserted"],
            subjects=[(1, 1)] * outcomes["pass"] + [(0, 1)] * outcomes["fail"],
        )

    def metric(self, name: str, percentile: float | None, scope: Scope, confidence: float) -> Measured | str:
        if percentile is not None and self.results is None:
            return "a percentile needs single values: write them to a file with --output"
        spread = self.summary.metrics.get(name)
        if spread is None:
            return f'no record has a value of "{name}"'
        if percentile is not None and self.results is not None:
            values = [[one["metrics"][name]] for one in _lines(self.results) if name in one["metrics"]]
            return Measured(percentile_interval(values, percentile, confidence), len(values))
        return Measured(mean_of(spread, confidence, is_score=False), spread.count)

    def criterion(self, name: str, scope: Scope, confidence: float) -> Measured | str:
        spread = self.summary.criteria.get(name)
        if spread is None:
            return f'no record has a score of "{name}"'
        return Measured(mean_of(spread, confidence), spread.count)

    def regression(self, baseline: str, scope: Scope, alpha: float) -> Regression | str:
        """The comparison with earlier results, record by record."""
        earlier = results_place(baseline)
        if self.results is None:
            return "noRegression needs the results of single records: write them to a file with --output"
        try:
            if problem := _not_comparable(earlier, self.results):
                return problem
            before, now = _passes(earlier), _passes(self.results)
        except BadResult as error:
            return f"{earlier} holds a line that is no result: {error}"
        except InvalidInput as error:
            return str(error)
        pairs = {record: Pair(*before[record], *counts) for record, counts in now.items() if record in before}
        if not pairs:
            return f"no record was scored both here and in {earlier}"
        comparison = compare_rates(list(pairs.values()), alpha)
        regressed = sorted(record for record, pair in pairs.items() if pair.difference < 0)
        improved = any(pair.difference > 0 for pair in pairs.values())
        return Regression(comparison, str(earlier), regressed, improved, sorted(before.keys() - now.keys()))


def _not_comparable(earlier: ResultsPlace, now: ResultsPlace) -> str | None:
    """Why earlier results say nothing about these, if so."""
    if not is_there(earlier):
        return f'there is no results file "{earlier}"'
    if is_same_place(earlier, now):
        return f"{earlier} is the file that these results are written to; keep the earlier one apart"
    plans = [note_at(place).get("plan") for place in (earlier, now)]
    if None not in plans and plans[0] != plans[1]:
        return f"{earlier} was scored by another plan: its records were asked other questions"
    return None


def _lines(results: ResultsPlace) -> Iterator[dict[str, Any]]:
    return (result for _, result in each_result(results))


def _passes(results: ResultsPlace) -> dict[str, tuple[int, int]]:
    """How often each record passed of the times it passed or failed, by its id."""
    counts: dict[str, tuple[int, int]] = {}
    for one in _lines(results):
        if one["outcome"] in ("pass", "fail"):
            passed, scored = counts.get(str(one["recordId"]), (0, 0))
            counts[str(one["recordId"])] = (passed + (one["outcome"] == "pass"), scored + 1)
    return counts


def dataset_standing(
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
