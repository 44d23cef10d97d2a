"""The repetitions of each subject, counted: what rates, comparisons and requirements rest on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import field

from ..base.lazy_dataclass import dataclass
from ..evaluators.results import Outcome
from ..project.entities import Subject
from ..storage.contract import RunGroup
from .paired import Pair


@dataclass(slots=True)
class RunCounts:
    """Runs by what they came to. Those that did not end are in ``runs`` alone."""

    runs: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    unasserted: int = 0

    @property
    def scored(self) -> int:
        return self.passed + self.failed

    @property
    def attempted(self) -> int:
        return self.scored + self.errored

    @property
    def left(self) -> int:
        """Queued, running or cancelled: not run to the end."""
        return self.runs - self.attempted - self.unasserted

    @property
    def flaky(self) -> bool:
        """The definition of flakiness: some passed and some failed. An error is neither."""
        return self.passed > 0 and self.failed > 0

    def add(self, outcome: Outcome | None, runs: int = 1) -> None:
        self.runs += runs
        match outcome:
            case "pass":
                self.passed += runs
            case "fail":
                self.failed += runs
            case "error":
                self.errored += runs
            case "unasserted":
                self.unasserted += runs
            case None:
                pass

    def include(self, other: RunCounts) -> None:
        self.runs += other.runs
        self.passed += other.passed
        self.failed += other.failed
        self.errored += other.errored
        self.unasserted += other.unasserted


@dataclass(slots=True)
class SubjectRuns(RunCounts):
    """The repetitions of one subject in one execution."""

    subject: Subject = field(kw_only=True)


def _in_one_execution(group: RunGroup) -> Hashable:
    return group.execution_id, *group.subject.key


def by_subject(
    groups: Iterable[RunGroup], key: Callable[[RunGroup], Hashable] = _in_one_execution
) -> dict[Hashable, SubjectRuns]:
    """Runs counted per subject; `key` says what makes two groups one subject."""
    subjects: dict[Hashable, SubjectRuns] = {}
    for group in groups:
        runs = subjects.setdefault(key(group), SubjectRuns(subject=group.subject))
        runs.add(group.outcome, group.runs)
    return subjects


def scored_counts(subjects: Iterable[SubjectRuns]) -> list[tuple[int, int]]:
    """(passed, scored) of each subject that was scored, as the intervals of rates take them."""
    return [(one.passed, one.scored) for one in subjects if one.scored]


def pairs_of(
    base: dict[Hashable, SubjectRuns], candidate: dict[Hashable, SubjectRuns]
) -> dict[Hashable, Pair]:
    """The subjects that were scored on both sides."""
    return {
        key: Pair(base[key].passed, base[key].scored, after.passed, after.scored)
        for key, after in candidate.items()
        if key in base and base[key].scored and after.scored
    }
