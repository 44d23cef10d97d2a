"""What a scored dataset comes to: per criterion the mean, how many, what was left out, a histogram.

Summaries of parts add up, so workers can each keep their own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, get_args

from ..base.lazy_dataclass import dataclass
from ..evaluators.results import Outcome
from .spread import Distribution

EvaluatorRow = tuple[str, str, str, float | None]
"""What one evaluator came to on a record: its name, its kind, the outcome in a word, and the value."""
Numbers = Mapping[str, float]
Usage = Mapping[str, float | None]
RecordCount = tuple[str, float | None, Numbers, Numbers, Sequence[EvaluatorRow], str | None, Usage]
"""What is counted of a result: its outcome, the overall score, those of the criteria, the metrics, what its
evaluators came to, its group, and the tokens and costs, some of which may not be known."""
ASSERTION_OUTCOMES = ("pass", "fail", "error", "skipped")
METRIC_OUTCOMES = ("measured", "missing", "error")
# Ids are remembered as numbers, and so many at most: memory must not grow with the dataset.
MOST_IDS = 100_000
_MOST_EXAMPLES = 3
_MOST_LEFT_OUT = 100
_MOST_GROUPS = 1_000
OTHER_GROUPS = "(other groups)"


@dataclass(slots=True)
class Duplicates:
    """Record ids that occur more than once, among the first ``MOST_IDS`` different ones."""

    count: int = 0
    examples: list[str] = field(default_factory=list[str])
    _seen: set[int] = field(default_factory=set[int])

    def add_all(self, records: Sequence[tuple[str, int]]) -> None:
        """Take the ids and lines of some records."""
        keys = {hash(record_id) for record_id, _ in records}
        if len(keys) == len(records) <= MOST_IDS - len(self._seen) and self._seen.isdisjoint(keys):
            self._seen |= keys
            return
        for record_id, line in records:
            self.add(record_id, line)

    def add(self, record_id: str, line: int) -> None:
        key = hash(record_id)
        if key in self._seen:
            self.count += 1
            if len(self.examples) < _MOST_EXAMPLES:
                self.examples.append(f'"{record_id}" (line {line})')
        elif len(self._seen) < MOST_IDS:
            self._seen.add(key)


@dataclass(slots=True)
class GroupTally:
    """The records of one group: their outcomes, and their overall score."""

    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(get_args(Outcome), 0))
    overall: Distribution = field(default_factory=Distribution)

    @property
    def records(self) -> int:
        return sum(self.outcomes.values())

    def add(self, outcome: str, overall: float | None) -> None:
        self.outcomes[outcome] += 1
        if overall is not None:
            self.overall.add_all((overall,))

    def merge(self, other: GroupTally) -> None:
        for name, count in other.outcomes.items():
            self.outcomes[name] += count
        self.overall.merge(other.overall)

    def to_json(self) -> dict[str, Any]:
        mean = _rounded(self.overall.mean)
        return {"records": self.records, "outcomes": self.outcomes, "overallScore": mean}


@dataclass(slots=True)
class EvaluatorTally:
    """What one evaluator came to over the records: its outcomes, and the mean of its values."""

    kind: str
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    count: int = 0
    total: float = 0.0

    def add_all(self, rows: Sequence[EvaluatorRow]) -> None:
        for outcome, count in Counter([row[2] for row in rows]).items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        values = [value for row in rows if (value := row[3]) is not None]
        self.count += len(values)
        self.total = sum(values, self.total)

    def merge(self, other: EvaluatorTally) -> None:
        self.count += other.count
        self.total += other.total
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def of(self, outcome: str) -> int:
        return self.outcomes.get(outcome, 0)

    def to_json(self) -> dict[str, Any]:
        words = ASSERTION_OUTCOMES if self.kind == "assertion" else METRIC_OUTCOMES
        counts = {word: self.of(word) for word in words}
        return {"kind": self.kind, **counts, "mean": _rounded(self.mean), "n": self.count}


@dataclass(slots=True)
class KnownSum:
    """A sum over the records of which the number is known."""

    records: int = 0
    total: float = 0.0

    def add_all(self, values: Sequence[float]) -> None:
        self.records += len(values)
        self.total = sum(values, self.total)

    def merge(self, other: KnownSum) -> None:
        self.records += other.records
        self.total += other.total


USED = ("agentTokens", "agentCost", "judgeTokens", "judgeCost")


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
    evaluators: dict[str, EvaluatorTally] = field(default_factory=dict[str, EvaluatorTally])
    duplicates: Duplicates = field(default_factory=Duplicates)
    criterion_errors: dict[str, int] = field(default_factory=dict[str, int])
    errors: dict[str, int] = field(default_factory=dict[str, int])
    groups: dict[str, GroupTally] = field(default_factory=dict[str, GroupTally])
    left_out: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """The first unreadable records: line and reason."""
    used: dict[str, KnownSum] = field(default_factory=lambda: {name: KnownSum() for name in USED})
    """Tokens and cost of the agent and the judges."""
    retries: int = 0
    retried: int = 0
    """Records that had errored and were scored once more."""
    ended: str | None = None
    """Why no further record was scored, where a budget ended it."""

    @property
    def read(self) -> int:
        """How many records the dataset has been found to hold, whatever became of them."""
        return self.records + self.bad + self.unsampled

    @property
    def decided(self) -> int:
        """How many records came to a pass or a failure."""
        return self.outcomes["pass"] + self.outcomes["fail"]

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result, as it stands in the results file."""
        self.count_all((_counted(result),))
        for item in result["results"]:
            if "error" in item:
                _count(self.criterion_errors, item["criterionName"])
                _count(self.errors, item["error"][:200])

    def count_all(self, results: Sequence[RecordCount]) -> None:
        """Count results without their errors, in their order."""
        self.records += len(results)
        for outcome, count in Counter([result[0] for result in results]).items():
            self.outcomes[outcome] += count
        for name, rows in _by_evaluator([result[4] for result in results]):
            _tally(self.evaluators, name, rows[0][1]).add_all(rows)
        for outcome, overall, _, _, _, group, _ in results:
            if group is not None:
                self._group(group).add(outcome, overall)
        self.overall.add_all([result[1] for result in results if result[1] is not None])
        for name, values in _by_name([scores for result in results if (scores := result[2])]):
            _spread(self.criteria, name).add_all(values)
        for name, values in _by_name([metrics for result in results if (metrics := result[3])]):
            _spread(self.metrics, name).add_all(values)
        usages = [result[6] for result in results]
        if len(set(map(id, usages))) == 1:
            # Nothing is known of any of them, and who asks no model uses nothing.
            usages = [usages[0]]
        times = len(results) // len(usages) if usages else 0
        for name, known in self.used.items():
            known.add_all([value for usage in usages if (value := usage.get(name)) is not None] * times)

    def forget_results(self) -> None:
        """Count results from the start again; what the results file does not hold is kept."""
        fresh = DatasetSummary(criteria={name: Distribution() for name in self.criteria})
        for name in (
            "records",
            "outcomes",
            "overall",
            "criteria",
            "metrics",
            "evaluators",
            "groups",
            "criterion_errors",
            "errors",
            "used",
        ):
            setattr(self, name, getattr(fresh, name))

    def leave_out(self, line: int, reason: str) -> None:
        """Count a record that could not be read."""
        self.bad += 1
        if len(self.left_out) < _MOST_LEFT_OUT:
            self.left_out.append((line, reason))

    def _group(self, name: str) -> GroupTally:
        if name not in self.groups and len(self.groups) >= _MOST_GROUPS:
            name = OTHER_GROUPS
        return self.groups.setdefault(name, GroupTally())

    def merge(self, other: DatasetSummary) -> None:
        self.left_out = [*self.left_out, *other.left_out][:_MOST_LEFT_OUT]
        for name, group in other.groups.items():
            self._group(name).merge(group)
        self.records += other.records
        self.bad += other.bad
        self.unsampled += other.unsampled
        self.retries += other.retries
        for name, count in other.outcomes.items():
            self.outcomes[name] += count
        self.overall.merge(other.overall)
        for name, known in other.used.items():
            self.used[name].merge(known)
        for mine, theirs in ((self.criteria, other.criteria), (self.metrics, other.metrics)):
            for name, spread in theirs.items():
                _spread(mine, name).merge(spread)
        for name, tally in other.evaluators.items():
            _tally(self.evaluators, name, tally.kind).merge(tally)
        for mine, theirs in ((self.criterion_errors, other.criterion_errors), (self.errors, other.errors)):
            for name, count in theirs.items():
                _count(mine, name, count)

    def to_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "bad": self.bad,
            "notSampled": self.unsampled,
            "partial": "budget" if self.ended else None,
            "resumed": self.resumed,
            "retried": self.retried,
            "outcomes": self.outcomes,
            "evaluators": {name: tally.to_json() for name, tally in self.evaluators.items()},
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
            "groups": {name: group.to_json() for name, group in self.groups.items()},
            "leftOut": [{"line": line, "reason": reason} for line, reason in self.left_out],
            "errors": self.errors,
            "duplicateIds": self.duplicates.count,
            "retries": self.retries,
        }


def _counted(result: Mapping[str, Any]) -> RecordCount:
    """What is counted of a result as it stands in the results file."""
    rows = result["evaluatorResults"]
    return (
        result["outcome"],
        result.get("overallScore"),
        result["criterionScores"],
        result["metrics"],
        [(row["name"], row["kind"], row["outcome"], row["value"]) for row in rows],
        result.get("group"),
        result.get("usage") or {},
    )


def _by_evaluator(
    records: Sequence[Sequence[EvaluatorRow]],
) -> Iterable[tuple[str, Sequence[EvaluatorRow]]]:
    """The rows of each evaluator. As a rule every record has one of each, in the same order."""
    if len(set(map(len, records))) == 1:
        columns = list(zip(*records, strict=True))
        if all(len({row[0] for row in column}) == 1 for column in columns):
            return [(column[0][0], column) for column in columns]
    rows: defaultdict[str, list[EvaluatorRow]] = defaultdict(list)
    for row in chain.from_iterable(records):
        rows[row[0]].append(row)
    return rows.items()


def _by_name(numbers: Iterable[Mapping[str, float]]) -> Iterable[tuple[str, list[float]]]:
    """The numbers of each name."""
    columns: defaultdict[str, list[float]] = defaultdict(list)
    for one in numbers:
        for name, value in one.items():
            columns[name].append(value)
    return columns.items()


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 9)


def _spread(where: dict[str, Distribution], name: str) -> Distribution:
    if name not in where:
        where[name] = Distribution()
    return where[name]


def _tally(where: dict[str, EvaluatorTally], name: str, kind: str) -> EvaluatorTally:
    if name not in where:
        where[name] = EvaluatorTally(kind)
    return where[name]


# A dataset may raise a different message on every record; the rest is counted under one heading.
_MOST_MESSAGES = 50


def _count(where: dict[str, int], name: str, by: int = 1) -> None:
    if name not in where and len(where) >= _MOST_MESSAGES:
        name = "other"
    where[name] = where.get(name, 0) + by
