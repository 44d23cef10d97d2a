"""Runs by evaluator, and how their scores and latencies are spread: figures for the page of an execution."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from pydantic import Field, TypeAdapter

from ..base.lazy_dataclass import dataclass
from ..evaluators.contract import Kind
from ..evaluators.results import Finding
from ..project.entities import RunSummary, Subject
from .histories import mean_fields
from .reports.model import BINS, latency_bin, latency_edge
from .statistics import Figure, Rate, clustered_rate

_SCORE_BINS = 10


class EvaluatorFigures(Figure):
    """What one evaluator said over many runs."""

    type: str
    name: str
    kind: Kind
    rate: Rate | None = Field(default=None, description="Of an assertion: the share of results that passed")
    failed: int = Field(default=0, description="Results that did not pass; errors are counted apart")
    errored: int = 0
    mean: float | None = Field(default=None, description="Of a metric")
    low: float | None = None
    high: float | None = None
    values: int = Field(default=0, description="How many runs had a value")


class EvaluatorsFigures(Figure):
    """Evaluators, those that failed most first."""

    evaluators: list[EvaluatorFigures]
    runs_read: int
    more_runs: bool = Field(description="Whether older runs were left out")


@dataclass(slots=True)
class EvaluatorCounts:
    """What one evaluator said, subject by subject."""

    kind: Kind
    errored: int = 0
    subjects: dict[tuple[Any, ...], tuple[int, int]] = field(default_factory=dict[Any, Any])
    values: dict[tuple[Any, ...], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: tuple[Any, ...], finding: Mapping[str, Any]) -> None:
        if finding.get("error") is not None:
            self.errored += 1
        elif finding["kind"] == "assertion":
            passed, scored = self.subjects.get(key, (0, 0))
            self.subjects[key] = passed + bool(finding["success"]), scored + 1
        elif finding.get("value") is not None:
            self.values[key].append(float(finding["value"]))

    def figures(self, type_name: str, name: str) -> EvaluatorFigures:
        return EvaluatorFigures(
            type=type_name,
            name=name,
            kind=self.kind,
            rate=clustered_rate(self.subjects.values()) if self.subjects else None,
            failed=sum(scored - passed for passed, scored in self.subjects.values()),
            errored=self.errored,
            **mean_fields(list(self.values.values())),
        )


@dataclass(slots=True)
class EvaluatorTable:
    """Every evaluator that said something, gathered run by run; what was skipped does not count."""

    counts: dict[tuple[str, str], EvaluatorCounts] = field(default_factory=dict[Any, Any])

    def add(self, execution_id: str, subject: Subject, findings: Sequence[Mapping[str, Any]]) -> None:
        for finding in findings:
            if finding.get("skipped"):
                continue
            evaluator = finding["type"], finding["name"]
            if evaluator not in self.counts:
                self.counts[evaluator] = EvaluatorCounts(finding["kind"])
            self.counts[evaluator].add((execution_id, *subject.key), finding)

    def rows(self) -> list[EvaluatorFigures]:
        rows = [counts.figures(*evaluator) for evaluator, counts in self.counts.items()]
        return sorted(rows, key=lambda one: (one.kind, -one.failed, -one.errored, one.name))


class FindingCell(Figure):
    """What one evaluator found in one run, in a word and, where there is one, a number."""

    word: str = Field(description="pass, fail, error, skipped, pending, measured or missing")
    value: float | None = Field(description="What a metric measured, or the score of an assertion")
    unit: str | None
    reason: str


class RunFindings(Figure):
    """What the evaluators asked for found in one run, in that order; null where one was not used."""

    run_id: str
    findings: list[FindingCell | None]


_FINDING = TypeAdapter(Finding)
# Where an evaluator found several things in one run, the one that decides is shown.
_WORST_FIRST = ("error", "fail", "pending", "missing", "skipped", "measured", "pass")


def findings_of(run_id: str, results: Sequence[Mapping[str, Any]], evaluators: Sequence[str]) -> RunFindings:
    """A row of the columns that a table of runs shows; an evaluator is named by its name or its type."""
    findings = [_FINDING.validate_python(dict(result)) for result in results]
    return RunFindings(run_id=run_id, findings=[_cell(findings, name) for name in evaluators])


def _cell(findings: Sequence[Finding], evaluator: str) -> FindingCell | None:
    named = [one for one in findings if one.name == evaluator]
    own = named or [one for one in findings if one.type == evaluator]
    if not own:
        return None
    worst = min(own, key=lambda one: _WORST_FIRST.index(one.word))
    return FindingCell(
        word=worst.word, value=worst.value, unit=worst.unit, reason=worst.error or worst.reason
    )


class Bin(Figure):
    """Runs whose value is at least ``low`` and less than ``high``; the last bin holds what is larger too."""

    low: float
    high: float
    runs: int


class Distributions(Figure):
    """How the runs of an execution are spread; bins at both ends that hold nothing are left out."""

    scores: list[Bin]
    latencies: list[Bin] = Field(description="In milliseconds, four bins to a factor of ten")


def distributions(runs: Iterable[RunSummary]) -> Distributions:
    """Of all runs that have a score or a latency."""
    scores, latencies = [0] * _SCORE_BINS, [0] * BINS
    for run in runs:
        if run.result is not None and run.result.score is not None:
            scores[min(max(int(run.result.score * _SCORE_BINS), 0), _SCORE_BINS - 1)] += 1
        if run.latency_ms is not None:
            latencies[latency_bin(run.latency_ms)] += 1
    edges = [place / _SCORE_BINS for place in range(_SCORE_BINS + 1)]
    return Distributions(
        scores=_bins(scores, edges) if any(scores) else [],
        latencies=_used(_bins(latencies, [latency_edge(place) for place in range(BINS + 1)])),
    )


def _bins(numbers: Sequence[int], edges: Sequence[float]) -> list[Bin]:
    return [Bin(low=edges[at], high=edges[at + 1], runs=runs) for at, runs in enumerate(numbers)]


def _used(bins: Sequence[Bin]) -> list[Bin]:
    places = [place for place, one in enumerate(bins) if one.runs]
    return list(bins[places[0] : places[-1] + 1]) if places else []
