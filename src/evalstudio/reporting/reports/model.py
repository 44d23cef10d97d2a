"""What every report shows: the head, with all numbers, and the runs one after the other.

The head has a line per subject; runs are streamed, so that a report of many stays in bounded memory.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import field
from typing import IO, Literal, Protocol, get_args

from ...base.lazy_dataclass import dataclass
from ...project.entities import Counts
from ..intervals import Interval
from ..requirements import RequirementResult, Standing
from ..spending import RoleSpending

Format = Literal["terminal", "json", "jsonl", "csv", "md", "junit", "html", "github"]
FORMATS: tuple[Format, ...] = get_args(Format)
# Logarithmic bins, four to a factor of ten, from 1 ms to a quarter of an hour.
BINS = 25


@dataclass(slots=True)
class SubjectLine:
    """One subject with how often it came to what. Of recorded results: a record that did not pass."""

    label: str
    group: str
    """The scenario, which charts gather subjects by."""
    passed: int = 0
    failed: int = 0
    errored: int = 0
    unasserted: int = 0
    left: int = 0
    reason: str = ""
    """Why it did not pass, the first time that it did not."""

    @property
    def scored(self) -> int:
        return self.passed + self.failed

    @property
    def flaky(self) -> bool:
        return self.passed > 0 and self.failed > 0

    @property
    def word(self) -> str:
        """All of its runs in one word, the worst first."""
        if self.flaky:
            return "flaky"
        words = (
            (self.failed, "fail"),
            (self.errored, "error"),
            (self.left, "not run"),
            (self.passed, "pass"),
        )
        return next((word for number, word in words if number), "unasserted")

    @property
    def rank(self) -> tuple[int, str]:
        """What a reader wants to see first: failures, then errors, then what is flaky."""
        return ("fail", "error", "flaky", "not run", "unasserted", "pass").index(self.word), self.label


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric, criterion or the latency over all runs."""

    name: str
    runs: int
    mean: Interval


@dataclass(slots=True)
class ReportHead:
    """Everything but the single runs."""

    title: str
    noun: Literal["runs", "records"]
    standing: Standing
    counts: Counts
    rate: Interval
    """The pass rate with its 95% interval."""
    rates: list[tuple[str, Interval]] = field(default_factory=list[tuple[str, Interval]])
    """The same by scenario, or by group of records."""
    facts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    subjects: list[SubjectLine] = field(default_factory=list[SubjectLine])
    requirements: list[RequirementResult] = field(default_factory=list[RequirementResult])
    usage: list[RoleSpending] = field(default_factory=list[RoleSpending])
    measures: list[Measure] = field(default_factory=list[Measure])
    latencies: list[int] = field(default_factory=lambda: [0] * BINS)
    notes: list[str] = field(default_factory=list[str])
    """What a reader must know to read the numbers: that it was stopped, ran out of budget, left lines out."""

    @property
    def regressed(self) -> list[str]:
        labels = [label for one in self.requirements for label in one.regressed if one.standing == "missed"]
        return list(dict.fromkeys(labels))


def latency_bin(milliseconds: float) -> int:
    return min(max(int(math.log10(max(milliseconds, 1.0)) * 4), 0), BINS - 1)


def latency_edge(place: int) -> float:
    """Where a bin of latencies begins, in milliseconds."""
    return 10 ** (place / 4)


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """One assertion that did not hold, or could not be made."""

    name: str
    word: str
    reason: str
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class ReportRun:
    """One run or record."""

    id: str
    label: str
    group: str
    outcome: str
    """pass, fail, error or unasserted; queued, running or cancelled where there is none."""
    repetition: int = 1
    attempt: int = 1
    case: str | None = None
    persona: str | None = None
    connector: str | None = None
    fault: str | None = None
    reason: str = ""
    latency_ms: float | None = None
    tokens: int | None = None
    score: float | None = None
    turns: int | None = None
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    findings: Sequence[ReportFinding] = ()

    @property
    def bad(self) -> bool:
        return self.outcome in ("fail", "error")


Transcript = Sequence[tuple[str, str]]
"""Who said what."""


class ReportSource(Protocol):
    """Where a report comes from: an execution or a results file."""

    @property
    def head(self) -> ReportHead: ...
    def runs(self) -> AsyncIterator[ReportRun]: ...
    async def transcript(self, run: ReportRun) -> Transcript: ...


class ReportWriter(Protocol):
    """Writes one format. ``transcripts`` is for how many bad runs it wants to have what was said; runs beyond
    these it needs only with ``every_run``."""

    transcripts: int
    every_run: bool

    def __init__(self, output: IO[str]) -> None: ...
    def begin(self, head: ReportHead) -> None: ...
    def add(self, run: ReportRun, transcript: Transcript | None) -> None: ...
    def end(self) -> None: ...


async def write_reports(source: ReportSource, writers: Sequence[ReportWriter]) -> None:
    """Write several reports in one pass over the runs."""
    for writer in writers:
        writer.begin(source.head)
    bad = source.head.counts.failed + source.head.counts.errored
    left = min(max((writer.transcripts for writer in writers), default=0), bad)
    runs = source.runs()
    while any(writer.every_run for writer in writers) or left > 0:
        run = await anext(runs, None)
        if run is None:
            break
        transcript = None
        if run.bad and left > 0:
            transcript, left = await source.transcript(run), left - 1
        for writer in writers:
            writer.add(run, transcript)
    for writer in writers:
        writer.end()
