"""How a scenario or an evaluator did over executions: figures for their pages."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from pydantic import Field

from ..base.lazy_dataclass import dataclass
from ..evaluators.contract import Kind
from ..project.entities import Execution, Moment, Subject
from ..storage.contract import RunGroup
from .intervals import mean_interval
from .statistics import Figure, FlakyHistory, Rate, clustered_rate, flakiest
from .subjects import by_subject, scored_counts

_FLAKIEST = 10
_LISTED_FAILURES = 20


class HistoryPoint(Figure):
    """One execution: the share that passed, or the mean of what was measured."""

    execution_id: str
    created_at: Moment
    labels: dict[str, Any]
    rate: Rate | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    values: int = Field(default=0, description="How many runs had a value")
    errored: int = 0


class ConnectorHistory(Figure):
    """One scenario on one connector."""

    connector_id: str | None
    connector_name: str | None
    rate: Rate
    errored: int
    points: list[HistoryPoint]


class ScenarioHistory(Figure):
    """How a scenario did over the newest executions that it was in."""

    connectors: list[ConnectorHistory]
    flaky: list[FlakyHistory]
    executions: int


def scenario_history(groups: Sequence[RunGroup], executions: Mapping[str, Execution]) -> ScenarioHistory:
    """By connector; groups come with the oldest execution first."""
    known = [group for group in groups if group.execution_id in executions]
    by_connector: dict[tuple[str | None, str | None], list[RunGroup]] = defaultdict(list)
    for group in known:
        by_connector[group.subject.connector_id, group.subject.connector_name].append(group)
    return ScenarioHistory(
        connectors=[_of_connector(key, own, executions) for key, own in by_connector.items()],
        flaky=flakiest(known, _FLAKIEST),
        executions=len({group.execution_id for group in known}),
    )


def _of_connector(
    connector: tuple[str | None, str | None], groups: Sequence[RunGroup], executions: Mapping[str, Execution]
) -> ConnectorHistory:
    of_execution: dict[str, list[RunGroup]] = defaultdict(list)
    for group in groups:
        of_execution[group.execution_id].append(group)
    return ConnectorHistory(
        connector_id=connector[0],
        connector_name=connector[1],
        rate=_rate(groups),
        errored=_errored(groups),
        points=[
            HistoryPoint(**_named(executions[one]), rate=_rate(own), errored=_errored(own))
            for one, own in sorted(of_execution.items())
        ],
    )


def _named(execution: Execution) -> dict[str, Any]:
    return {"execution_id": execution.id, "created_at": execution.created_at, "labels": execution.labels}


def _rate(groups: Iterable[RunGroup]) -> Rate:
    return clustered_rate(scored_counts(by_subject(groups).values()))


def _errored(groups: Iterable[RunGroup]) -> int:
    return sum(group.runs for group in groups if group.outcome == "error")


class EvaluatorFailure(Figure):
    """A run that an evaluator failed, or in which it broke."""

    run_id: str
    execution_id: str
    subject: Subject
    created_at: Moment
    name: str
    reason: str
    error: bool


class EvaluatorUsage(Figure):
    """A scenario that has an evaluator."""

    scenario_id: str
    scenario_name: str
    times: int


class EvaluatorHistory(Figure):
    """What an evaluator said in the newest executions."""

    kind: Kind | None = Field(description="None if it said nothing in them")
    rate: Rate | None = Field(
        description="Of an assertion: the share of results that passed, over all points"
    )
    points: list[HistoryPoint]
    failures: list[EvaluatorFailure]
    uses: list[EvaluatorUsage]
    runs_read: int
    more_runs: bool = Field(description="Whether older runs were left out")


@dataclass(slots=True)
class EvaluatorResults:
    """What one type of evaluator said, gathered execution by execution."""

    type: str
    kind: Kind | None = None
    points: list[HistoryPoint] = field(default_factory=list[HistoryPoint])
    failures: list[EvaluatorFailure] = field(default_factory=list[EvaluatorFailure])
    all_subjects: dict[tuple[Any, ...], tuple[int, int]] = field(default_factory=dict[Any, Any])

    def add_execution(
        self, execution: Execution, results: Iterable[tuple[str, Subject, Sequence[Mapping[str, Any]]]]
    ) -> None:
        """The findings of each run; only those of this type count, and skipped ones do not."""
        subjects: dict[tuple[Any, ...], tuple[int, int]] = {}
        values: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        errored = 0
        for run_id, subject, findings in results:
            for finding in findings:
                if finding.get("type") != self.type or finding.get("skipped"):
                    continue
                self.kind = finding["kind"]
                if finding.get("error") is not None:
                    errored += 1
                    self._failed(execution, run_id, subject, finding)
                elif finding["kind"] == "assertion":
                    key = (*subject.key, finding["name"])
                    passed, scored = subjects.get(key, (0, 0))
                    subjects[key] = passed + bool(finding["success"]), scored + 1
                    if not finding["success"]:
                        self._failed(execution, run_id, subject, finding)
                elif finding.get("value") is not None:
                    values[subject.key].append(float(finding["value"]))
        self._point(execution, subjects, values, errored)

    def _failed(
        self, execution: Execution, run_id: str, subject: Subject, finding: Mapping[str, Any]
    ) -> None:
        if len(self.failures) < _LISTED_FAILURES:
            self.failures.append(
                EvaluatorFailure(
                    run_id=run_id,
                    execution_id=execution.id,
                    subject=subject,
                    created_at=execution.created_at,
                    name=finding["name"],
                    reason=str(finding.get("error") or finding.get("reason") or ""),
                    error=finding.get("error") is not None,
                )
            )

    def _point(
        self,
        execution: Execution,
        subjects: Mapping[tuple[Any, ...], tuple[int, int]],
        values: Mapping[tuple[Any, ...], list[float]],
        errored: int,
    ) -> None:
        if not subjects and not values and not errored:
            return
        self.all_subjects |= {(execution.id, *key): counts for key, counts in subjects.items()}
        point = HistoryPoint(
            **_named(execution),
            **mean_fields(list(values.values())),
            errored=errored,
            rate=clustered_rate(subjects.values()) if subjects else None,
        )
        self.points.append(point)

    @property
    def rate(self) -> Rate | None:
        """Over all executions; a subject counts once in each."""
        return clustered_rate(self.all_subjects.values()) if self.all_subjects else None


def _end(value: float) -> float | None:
    """The end of an interval; none where the data do not bound it."""
    return value if math.isfinite(value) else None


def mean_fields(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """What was measured of each subject, as fields of a point."""
    interval, number = mean_interval(values), sum(len(own) for own in values)
    if not number:
        return {}
    return {
        "mean": interval.estimate,
        "low": _end(interval.low),
        "high": _end(interval.high),
        "values": number,
    }
