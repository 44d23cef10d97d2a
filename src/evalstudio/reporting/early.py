"""Which subjects are still worth repeating, asked after every repetition of all that are.

`early_rules` says how each requirement is decided. The same runs, read again later, give the same decisions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field

from ..base.lazy_dataclass import dataclass
from ..base.text import counted, were
from ..evaluators.results import RunOutput
from ..project.entities import RunSummary, Subject
from ..project.requirements import Requirement
from .early_rules import Observation, Rule, rule_for
from .evidence import Baseline, criteria_of, metrics_of, outcome_of
from .paired import ALPHA
from .requirements import RequirementResult

SubjectKey = tuple[str, str | None, str | None, str]


def _as_requested(subject: Subject) -> SubjectKey:
    return str(subject.scenario_id), subject.persona_id, subject.case_name, str(subject.connector_id)


@dataclass(slots=True)
class EarlyDecisions:
    """The requirements of an execution while repetitions come in: add runs in order, close each round."""

    requirements: Sequence[Requirement]
    most: int
    """So many repetitions at most."""
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    baselines: Mapping[str, Baseline | str] = field(default_factory=dict[str, "Baseline | str"])
    agent_errors_fail: bool = False
    rounds: int = 0
    runs: int = 0
    repetition: int = 1
    """That of the runs that were added last."""
    _rules: list[Rule] = field(default_factory=list[Rule])
    _round: dict[Hashable, Observation] = field(default_factory=dict[Hashable, Observation])
    _subjects: dict[Hashable, Subject] = field(default_factory=dict[Hashable, Subject])
    _failed: set[Hashable] = field(default_factory=set[Hashable])

    def __post_init__(self) -> None:
        self._rules = [rule_for(one, self.baselines) for one in self.requirements]

    def add(self, run: RunSummary, output: RunOutput | None = None) -> None:
        """Add a run; the first one of another repetition closes the round."""
        if run.repetition != self.repetition:
            self.close_round()
            self.repetition = run.repetition
        key, outcome = Subject.key_of(run), outcome_of(run, agent_errors_fail=self.agent_errors_fail)
        if key not in self._subjects:
            self._subjects[key] = Subject.of(run)
        self._round[key] = Observation(outcome, metrics_of(run, output), criteria_of(output))
        if outcome == "fail":
            self._failed.add(key)

    def close_round(self) -> None:
        """Look at what this repetition of all subjects that are open came to."""
        if not self._round:
            return
        self.rounds += 1
        self.runs += len(self._round)
        for requirement, rule in zip(self.requirements, self._rules, strict=True):
            if rule.decision is None:
                rule.add_round({k: one for k, one in self._round.items() if self._covers(requirement, k)})
        self._round = {}

    def open_subjects(self) -> frozenset[SubjectKey]:
        """The subjects that something open is about. Without requirements a failure decides its subject."""
        return frozenset(_as_requested(one) for key, one in self._subjects.items() if self._open(key))

    def _open(self, key: Hashable) -> bool:
        if not self.requirements:
            return key not in self._failed
        rules = zip(self.requirements, self._rules, strict=True)
        return any(rule.repeats(key) and self._covers(one, key) for one, rule in rules)

    def _covers(self, requirement: Requirement, key: Hashable) -> bool:
        scenario, tag, subject = requirement.scenario, requirement.tag, self._subjects[key]
        named = scenario is None or subject.scenario_name.casefold() == scenario.casefold()
        return named and (tag is None or subject.scenario_id in self.tags.get(tag, frozenset[str]()))

    def for_the_end(self) -> list[Requirement]:
        """The requirements as what is left open is judged: after looking, half of an alpha is left."""
        return [
            one if one.no_regression is None else one.model_copy(update={"alpha": (one.alpha or ALPHA) / 2})
            for one in self.requirements
        ]

    def settled(self, results: Sequence[RequirementResult]) -> list[RequirementResult]:
        """The results with what was decided early: repeating ended when that was shown."""
        final = list(results)
        for place, (requirement, rule) in enumerate(zip(self.requirements, self._rules, strict=True)):
            change: dict[str, object] = {"requirement": requirement.text}
            # What the baseline had and this has not is known only at the end.
            if rule.decision == "missed" or (rule.decision is not None and not results[place].lost):
                evidence = f"{results[place].evidence}; {rule.text}"
                change |= {"standing": rule.decision, "evidence": evidence}
            final[place] = results[place].model_copy(update=change)
        return final

    def notes(self) -> list[str]:
        """How many runs were saved, and what could not be decided before all repetitions ran."""
        total = self.most * len(self._subjects)
        left = total - self.runs
        enough = f"{self.runs:,} of {counted(total, 'run')} {were(self.runs)} enough"
        saved = f"{enough}; {left:,} {were(left)} saved"
        notes = [f"{self.rounds:,} of at most {counted(self.most, 'repetition')}: {saved}"]
        for requirement, rule in zip(self.requirements, self._rules, strict=True):
            if rule.decision is None and rule.open_because:
                notes.append(f"{requirement.text} stayed open for all repetitions: {rule.open_because}")
        return notes
