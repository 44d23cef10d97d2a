"""Numbers over runs: rates with how many they cover and their interval, flakiness, what was slow.

The command line, the API and the web page all show what is computed here. An error is never a failure and
never a pass: rates show passed of scored and passed of attempted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, computed_field

from ..project.entities import Counts, RunSummary, Subject
from ..storage.contract import COUNT_OF, RepetitionCounts, RunGroup
from .intervals import rate_interval
from .spending import RoleSpending, spending_by_role, spending_of
from .subjects import SubjectRuns, by_subject

_SLOWEST = 3


class Figure(BaseModel):
    """What all figures share: camelCase in JSON, sent whole."""

    model_config = Subject.model_config


class Rate(Figure):
    """A share with what it rests on and its 95% interval, for which runs of one subject count as related."""

    passed: int
    of: int
    low: float
    high: float

    @computed_field
    @property
    def rate(self) -> float | None:
        return self.passed / self.of if self.of else None


def clustered_rate(subjects: Iterable[tuple[int, int]] | Mapping[tuple[int, int], int]) -> Rate:
    """The rate over subjects, each given as (passed, runs), or as how many there are of each kind."""
    kinds = Counter(subjects)
    interval = rate_interval(kinds)
    return Rate(
        passed=sum(passed * times for (passed, _), times in kinds.items()),
        of=sum(runs * times for (_, runs), times in kinds.items()),
        low=interval.low,
        high=interval.high,
    )


def rates_of(clusters: Mapping[RepetitionCounts, int]) -> tuple[Rate, Rate]:
    """Passed of scored and passed of attempted; unasserted and cancelled runs are in neither."""
    scored: Counter[tuple[int, int]] = Counter()
    attempted: Counter[tuple[int, int]] = Counter()
    for (passed, failed, errored), times in clusters.items():
        scored[passed, passed + failed] += times
        attempted[passed, passed + failed + errored] += times
    return clustered_rate(scored), clustered_rate(attempted)


class FlakySubject(Figure):
    """A subject of one execution whose repetitions did not agree: some passed and some failed."""

    subject: Subject
    runs: int
    passed: int
    failed: int


class SlowSubject(Figure):
    """A subject with its slowest run."""

    subject: Subject
    latency_ms: float


class FlakyHistory(Figure):
    """In how many executions a subject was flaky, of those in which it was scored at least twice."""

    subject: Subject
    flaky_executions: int
    executions: int


class ExecutionSummary(Figure):
    """What an execution came to, or has come to so far."""

    counts: Counts
    errors_by_fault: dict[str, int]
    pass_rate_of_scored: Rate
    pass_rate_of_attempted: Rate
    flaky: list[FlakySubject]
    flaky_runs: int
    slowest: list[SlowSubject]
    tokens: int | None
    runs_with_tokens: int
    usage: list[RoleSpending]


def group_of(run: RunSummary) -> RunGroup:
    """A single run as a group of its own."""
    result = run.result
    return RunGroup(
        execution_id=run.execution_id,
        subject=Subject.of(run),
        status=run.status,
        outcome=result.outcome if result else None,
        fault=result.fault if result else None,
        runs=1,
        max_latency_ms=run.latency_ms,
        tokens=run.total_tokens,
        runs_with_tokens=0 if run.total_tokens is None else 1,
        spent=spending_of(run),
    )


def summarize(groups: Iterable[RunGroup], *, agent_errors_fail: bool = False) -> ExecutionSummary:
    """Count runs. Those without an outcome are in no rate."""
    counted = [as_failure(group) if agent_errors_fail else group for group in groups]
    counts = count(counted)
    faults: Counter[str] = Counter()
    for group in counted:
        if group.outcome == "error":
            faults[group.fault or "system"] += group.runs
    subjects = by_subject(counted).values()
    scored, attempted = rates_of(Counter(_repetitions(one) for one in subjects))
    flaky = flaky_subjects(counted)
    with_tokens = sum(group.runs_with_tokens for group in counted)
    return ExecutionSummary(
        counts=counts,
        errors_by_fault=dict(faults),
        pass_rate_of_scored=scored,
        pass_rate_of_attempted=attempted,
        flaky=flaky,
        flaky_runs=sum(one.runs for one in flaky),
        slowest=_slowest(counted),
        tokens=sum(group.tokens or 0 for group in counted) if with_tokens else None,
        runs_with_tokens=with_tokens,
        usage=spending_by_role(counted),
    )


def _repetitions(runs: SubjectRuns) -> RepetitionCounts:
    return RepetitionCounts(runs.passed, runs.failed, runs.errored)


def as_failure(group: RunGroup) -> RunGroup:
    if group.outcome == "error" and group.fault == "agent":
        return replace(group, outcome="fail", fault=None)
    return group


def count(groups: Iterable[RunGroup]) -> Counts:
    """Runs by where they stand."""
    numbers: Counter[str] = Counter()
    for group in groups:
        numbers["total"] += group.runs
        numbers[COUNT_OF[group.outcome] if group.outcome else group.status] += group.runs
    return Counts(**numbers)


def flaky_subjects(groups: Iterable[RunGroup]) -> list[FlakySubject]:
    """What passed in some repetitions and failed in others."""
    flaky = [
        FlakySubject(subject=one.subject, runs=one.runs, passed=one.passed, failed=one.failed)
        for one in by_subject(groups).values()
        if one.flaky
    ]
    return sorted(flaky, key=lambda one: one.subject.label)


def flakiest(groups: Iterable[RunGroup], most: int) -> list[FlakyHistory]:
    """The subjects that were flaky in the largest share of their executions, then in the most of them."""
    histories: dict[tuple[Any, ...], list[SubjectRuns]] = defaultdict(list)
    for one in by_subject(groups).values():
        if one.passed + one.failed > 1:
            histories[one.subject.key].append(one)
    flaky = [
        FlakyHistory(subject=history[-1].subject, flaky_executions=number, executions=len(history))
        for history in histories.values()
        if (number := sum(one.flaky for one in history))
    ]
    flaky.sort(
        key=lambda one: (-one.flaky_executions / one.executions, -one.flaky_executions, one.subject.label)
    )
    return flaky[:most]


def _slowest(groups: Iterable[RunGroup]) -> list[SlowSubject]:
    """Each subject once, by its slowest run."""
    longest: dict[tuple[Any, ...], tuple[float, Subject]] = {}
    for group in groups:
        latency = group.max_latency_ms
        if latency is not None and latency > longest.get(group.subject.key, (-1.0, None))[0]:
            longest[group.subject.key] = latency, group.subject
    ordered = sorted(longest.values(), key=lambda one: (-one[0], one[1].label))
    return [SlowSubject(subject=subject, latency_ms=latency) for latency, subject in ordered[:_SLOWEST]]
