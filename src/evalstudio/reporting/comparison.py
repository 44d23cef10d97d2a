"""Two executions, or two files of scored records, compared: what regressed, how sure that is, what changed.

The shapes that the command line, the API, reports and the web page show. `comparing.py` computes them;
docs/comparing.md explains them.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field

from ..project.entities import ExecutionSource, Moment, Subject, reasons_of
from .comparison_rows import MeasureKind
from .flakiness import DropVerdict
from .paired import TestName
from .statistics import Figure, Rate, clustered_rate
from .subjects import RunCounts

Category = Literal[
    "regressed", "errored", "gone", "changed", "flaky", "fixed", "new", "unasserted", "unchanged"
]
Decision = Literal["regressed", "undecided", "none"]
Part = Literal[
    "answer",
    "scenario",
    "case",
    "persona",
    "evaluators",
    "connector",
    "evaluator code",
    "connector code",
    "judge model",
    "judge prompts",
    "simulator model",
    "embedding model",
    "version",
]
# The order in which subjects are listed: what matters most to somebody who changed the agent comes first.
CATEGORIES: tuple[Category, ...] = (
    "regressed",
    "errored",
    "gone",
    "changed",
    "flaky",
    "fixed",
    "new",
    "unasserted",
    "unchanged",
)
MOST_LISTED = 1000
_HASH = re.compile("[0-9a-f]{40}")


# Chosen beforehand, so that what was left out is not an accident.
_CHOSEN_PARTS = frozenset({"only", "connectors", "last-failed"})


def is_chosen_part(partial: str | None) -> bool:
    """Whether an execution is part of its eval because somebody chose so."""
    return not _CHOSEN_PARTS.isdisjoint(reasons_of(partial))


def unchosen_parts(partial: str | None) -> str:
    """Why an execution is not whole, without what somebody chose to leave out."""
    return ", ".join(word for word in reasons_of(partial) if word not in _CHOSEN_PARTS)


class Change(Figure):
    """Something that differs between the two sides, told by hashes of content."""

    what: Part
    name: str | None = Field(default=None, description="Which evaluator or connector type")
    base: str | None = None
    candidate: str | None = None

    @property
    def text(self) -> str:
        named = f"{self.what} ({self.name})" if self.name else self.what
        return f"{named}: {_short(self.base)} → {_short(self.candidate)}"


def _short(text: str | None) -> str:
    """A hash by its first characters."""
    return "none" if text is None else text[:10] if _HASH.fullmatch(text) else text


class Difference(Figure):
    """Candidate minus base over the subjects that both sides have, with its 95% interval.

    An end that the data do not bound is null.
    """

    subjects: int
    base: float | None = Field(description="Mean over the subjects")
    candidate: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float = Field(description="Two-sided")
    p_worse: float = Field(description="Whether the candidate is lower, one-sided")
    adjusted_p: float | None = Field(
        default=None, description="Corrected for how many measures are compared (Benjamini and Hochberg)"
    )
    test: TestName
    detectable: float | None = Field(
        description="The smallest difference that so many subjects would show four times in five"
    )


class MeasureDelta(Difference):
    """The difference of one evaluator's pass share, a criterion, a metric, the latency or the tokens."""

    kind: MeasureKind
    name: str


class SideRuns(Figure):
    """The runs of a subject, or of a whole side, by what they came to."""

    runs: int
    passed: int
    failed: int
    errored: int
    unasserted: int

    @classmethod
    def of(cls, counts: RunCounts) -> SideRuns:
        return cls(**{name: getattr(counts, name) for name in cls.model_fields})


class SubjectDrop(Figure):
    """Whether the candidate's drop is more than the subject's known flakiness explains."""

    verdict: DropVerdict
    p: float
    adjusted_p: float
    history_passed: int = Field(description="Of its earlier runs, those of the base included")
    history_scored: int


class ComparedSubject(Figure):
    """One subject on both sides."""

    subject: Subject
    category: Category
    base: SideRuns | None
    candidate: SideRuns | None
    drop: SubjectDrop | None = None
    changes: list[Change] = Field(default_factory=list[Change])


class ComparedSide(Figure):
    """One of the two things compared."""

    id: str = Field(description="Of the execution, or the path of the results file")
    is_results_file: bool = Field(default=False, description="A results file of scoring, no execution")
    eval_id: str | None = None
    eval_name: str | None = None
    created_at: Moment | None = None
    status: str = "completed"
    labels: dict[str, Any] = Field(default_factory=dict[str, Any])
    partial: str | None = None
    replayed: bool = False
    source: ExecutionSource = "live"
    rescored_from: str | None = None
    connector: str | None = Field(default=None, description="Where connectors of one execution are compared")
    counts: SideRuns = Field(default_factory=lambda: SideRuns.of(RunCounts()))
    pass_rate: Rate = Field(default_factory=lambda: clustered_rate(()))


class ComparisonResult(Figure):
    """What a comparison came to."""

    base: ComparedSide
    candidate: ComparedSide
    alpha: float
    decision: Decision
    reasons: list[str] = Field(description="Why this decision")
    notes: list[str] = Field(description="What else a reader must know: what was not compared, and why")
    overall: Difference
    counts: dict[Category, int]
    subjects: list[ComparedSubject] = Field(
        description="What regressed first; unchanged ones are only counted"
    )
    not_listed: int = Field(description="How many more there are, beyond the first thousand")
    measures: list[MeasureDelta]
    changes: list[Change] = Field(description="What the two sides ran with, where it differs")
