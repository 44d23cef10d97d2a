"""The repetitions of each subject, counted: what rates, comparisons and requirements rest on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from ..project.entities import Subject
from ..storage.contract import RunGroup
from .paired import Pair


@dataclass(slots=True)
class SubjectRuns:
    """The repetitions of one subject in one execution."""

    subject: Subject
    runs: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    unasserted: int = 0

    @property
    def scored(self) -> int:
        return self.passed + self.failed

    @property
    def flaky(self) -> bool:
        """The definition of flakiness: some passed and some failed. An error is neither."""
        return self.passed > 0 and self.failed > 0

    def add(self, group: RunGroup) -> None:
        self.runs += group.runs
        match group.outcome:
            case "pass":
                self.passed += group.runs
            case "fail":
                self.failed += group.runs
            case "error":
                self.errored += group.runs
            case "unasserted":
                self.unasserted += group.runs
            case None:
                pass


def _in_one_execution(group: RunGroup) -> Hashable:
    return group.execution_id, *group.subject.key


def by_subject(
    groups: Iterable[RunGroup], key: Callable[[RunGroup], Hashable] = _in_one_execution
) -> dict[Hashable, SubjectRuns]:
    """Runs counted per subject; `key` says what makes two groups one subject."""
    subjects: dict[Hashable, SubjectRuns] = {}
    for group in groups:
        subjects.setdefault(key(group), SubjectRuns(group.subject)).add(group)
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
