"""Which subjects are still worth repeating, asked after every repetition of all that are.

A pass rate is decided by `sequential.RateSequence`, which stays valid however often one looks. Errors,
coverage and flakiness keep nothing going by themselves; what else is required needs all repetitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..project.entities import RunSummary
from ..project.requirements import Requirement
from .paired import ALPHA
from .requirements import RequirementResult
from .sequential import RateSequence

SubjectKey = tuple[str, str | None, str | None, str]
_NEEDS_NO_MORE = ("maxErrors", "maxFlaky", "minCoverage")


def subject_key(run: RunSummary) -> SubjectKey:
    return str(run.scenario_id), run.persona_id, run.case_name, str(run.connector_id)


@dataclass(slots=True)
class EarlyDecisions:
    """The requirements of an execution while its repetitions come in."""

    requirements: Sequence[Requirement]
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    rounds: int = 0
    runs: int = 0
    _sequences: dict[int, RateSequence] = field(default_factory=dict[int, RateSequence])
    _names: dict[SubjectKey, str] = field(default_factory=dict[SubjectKey, str])
    _failed: set[SubjectKey] = field(default_factory=set[SubjectKey])

    def __post_init__(self) -> None:
        for place, one in enumerate(self.requirements):
            if one.pass_rate is not None:
                alpha = ALPHA if one.confidence is None else 1 - one.confidence
                self._sequences[place] = RateSequence(one.pass_rate, alpha)

    def add_round(self, runs: Sequence[RunSummary]) -> None:
        """Add one repetition of all subjects that are open."""
        self.rounds += 1
        self.runs += len(runs)
        outcomes: dict[SubjectKey, str | None] = {}
        for run in runs:
            key = subject_key(run)
            self._names[key] = run.scenario_name
            outcomes[key] = run.result.outcome if run.result else None
            if outcomes[key] == "fail":
                self._failed.add(key)
        for place, sequence in self._sequences.items():
            if sequence.decision is None:
                words = [
                    word for key, word in outcomes.items() if self._covers(self.requirements[place], key)
                ]
                scored = [word for word in words if word != "unasserted"]
                passed, failed = scored.count("pass"), scored.count("fail")
                sequence.add_round(passed, failed, len(scored) - passed - failed)

    def open_subjects(self) -> frozenset[SubjectKey]:
        """The subjects that something open is about. Without requirements a failure decides its subject."""
        if not self.requirements:
            return frozenset(self._names.keys() - self._failed)
        waiting = [one for place, one in enumerate(self.requirements) if self._open(place, one)]
        return frozenset(key for key in self._names if any(self._covers(one, key) for one in waiting))

    def _open(self, place: int, requirement: Requirement) -> bool:
        if place in self._sequences:
            return self._sequences[place].decision is None
        return requirement.kind not in _NEEDS_NO_MORE

    def _covers(self, requirement: Requirement, key: SubjectKey) -> bool:
        scenario, tag = requirement.scenario, requirement.tag
        named = scenario is None or self._names[key].casefold() == scenario.casefold()
        return named and (tag is None or key[0] in self.tags.get(tag, frozenset[str]()))

    def settled(self, results: Sequence[RequirementResult]) -> list[RequirementResult]:
        """The results with what was decided of rates: repeating ended when that was shown."""
        final = list(results)
        for place, sequence in self._sequences.items():
            if sequence.decision is not None:
                ends = f"{sequence.interval.low:.0%}–{sequence.interval.high:.0%}"
                how = f"decided after {sequence.rounds:,} repetitions: {ends} is left for these subjects"
                evidence = f"{results[place].evidence}; {how}"
                change = {"standing": sequence.decision, "evidence": evidence}
                final[place] = results[place].model_copy(update=change)
        return final

    def saved_text(self, most: int) -> str:
        """How many runs all repetitions would have been, and how many were enough."""
        total = most * len(self._names)
        return f"{self.runs:,} of {total:,} runs were enough; {total - self.runs:,} were saved"
