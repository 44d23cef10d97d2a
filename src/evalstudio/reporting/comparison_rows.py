"""What a comparison is made from: the runs of both sides as they are read, counted per subject.

Memory grows with the subjects and the names of measures, not with the runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Literal, NamedTuple

from ..base.lazy_dataclass import dataclass
from ..evaluators.results import Outcome
from .paired import Pair
from .subjects import RunCounts

MeasureKind = Literal["evaluator", "criterion", "metric", "score", "latency", "tokens", "cost"]
MeasureKey = tuple[MeasureKind, str]
SideName = Literal["base", "candidate"]
# Of so many different answers of one subject each is remembered; with more of them "it answers differently
# every time" is all there is to say.
MOST_ANSWERS = 64


class Parts(NamedTuple):
    """What a subject consisted of, as hashes of content, and what of the environment it depends on."""

    scenario: str | None = None
    case: str | None = None
    persona: str | None = None
    evaluators: str | None = None
    connector: str | None = None
    evaluator_types: frozenset[str] = frozenset()
    connector_type: str | None = None
    simulated: bool = False

    @property
    def question(self) -> tuple[str | None, ...]:
        """Two sides that differ in this were asked, or judged by, something else."""
        return self.scenario, self.case, self.persona, self.evaluators


QUESTION_PARTS = ("scenario", "case", "persona", "evaluators")
NO_PARTS = Parts()


@dataclass(slots=True)
class ComparedRow:
    """One run of an execution, or one record of a results file."""

    key: Hashable
    names: Sequence[str | None]
    outcome: Outcome | None
    parts: Parts = NO_PARTS
    answer: str | None = None
    measures: Iterable[tuple[MeasureKey, float]] = ()


@dataclass(slots=True)
class SideCounts(RunCounts):
    """The runs of one subject on one side."""

    parts: Parts = NO_PARTS
    answers: frozenset[str] | None = frozenset()

    @property
    def ended(self) -> bool:
        return self.passed + self.failed + self.errored + self.unasserted > 0

    def add_answer(self, answer: str | None) -> None:
        """Runs of an earlier version have no answer to compare; then nothing is said of it."""
        if answer is None or self.answers is None or len(self.answers) >= MOST_ANSWERS:
            self.answers = None
        elif answer not in self.answers:
            self.answers |= {answer}


@dataclass(slots=True)
class SubjectPair:
    """One subject on both sides, with its runs in earlier executions."""

    number: int
    names: Sequence[str | None]
    base: SideCounts | None = None
    candidate: SideCounts | None = None
    history_passed: int = 0
    history_scored: int = 0

    @property
    def sides(self) -> tuple[SideCounts, SideCounts] | None:
        return (self.base, self.candidate) if self.base is not None and self.candidate is not None else None

    @property
    def same_question(self) -> bool:
        sides = self.sides
        return sides is not None and sides[0].parts.question == sides[1].parts.question

    @property
    def scored(self) -> bool:
        """Whether both sides came to passes and failures, and not mostly to errors."""
        sides = self.sides
        return sides is not None and all(side.scored > 0 and side.scored >= side.errored for side in sides)


@dataclass(slots=True)
class MeasureColumn:
    """The sums of one measure for every subject by its number, and how many values they are of."""

    base: array[float] = field(default_factory=lambda: array("d"))
    base_count: array[int] = field(default_factory=lambda: array("I"))
    candidate: array[float] = field(default_factory=lambda: array("d"))
    candidate_count: array[int] = field(default_factory=lambda: array("I"))

    def add(self, side: SideName, number: int, value: float) -> None:
        if side == "base":
            sums, counts = self.base, self.base_count
        else:
            sums, counts = self.candidate, self.candidate_count
        if number >= len(sums):
            room = number + 1 - len(sums)
            sums.frombytes(bytes(room * sums.itemsize))
            counts.frombytes(bytes(room * counts.itemsize))
        sums[number] += value
        counts[number] += 1

    def means(self, number: int) -> tuple[float, float] | None:
        """The subject's mean on both sides, where both have any value."""
        if number >= len(self.base) or number >= len(self.candidate):
            return None
        base, candidate = self.base_count[number], self.candidate_count[number]
        if not (base and candidate):
            return None
        return self.base[number] / base, self.candidate[number] / candidate

    def pairs(self, numbers: Iterable[int]) -> Iterator[Pair]:
        """What the values of these subjects count where each is 1 or 0, on both sides."""
        for number in numbers:
            if self.means(number) is not None:
                yield Pair(
                    round(self.base[number]),
                    self.base_count[number],
                    round(self.candidate[number]),
                    self.candidate_count[number],
                )


class ComparisonTable:
    """Both sides, subject by subject."""

    def __init__(self) -> None:
        self.pairs: dict[Hashable, SubjectPair] = {}
        self.measures: dict[MeasureKey, MeasureColumn] = {}

    def add(self, side: SideName, row: ComparedRow) -> None:
        pair = self.pairs.get(row.key)
        if pair is None:
            pair = self.pairs[row.key] = SubjectPair(len(self.pairs), row.names)
        counts: SideCounts | None = getattr(pair, side)
        if counts is None:
            counts = SideCounts(parts=row.parts)
            setattr(pair, side, counts)
        if side == "candidate":
            # Names may have changed between the two; the newer ones are shown.
            pair.names = row.names
        counts.add(row.outcome)
        if row.outcome is not None:
            counts.add_answer(row.answer)
        for key, value in row.measures:
            column = self.measures.get(key)
            if column is None:
                column = self.measures[key] = MeasureColumn()
            column.add(side, pair.number, value)

    def add_history(self, key: Hashable, question: tuple[str | None, ...], passed: int, scored: int) -> None:
        """Earlier runs of a subject; those of another question say nothing about this one."""
        pair = self.pairs.get(key)
        if pair is not None and pair.base is not None and pair.base.parts.question == question:
            pair.history_passed += passed
            pair.history_scored += scored
