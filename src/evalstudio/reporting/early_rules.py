"""How each kind of requirement is decided while repetitions come in, by the sequences of `sequential`.

| requirement | its rule |
|---|---|
| passRate | the rate of passes |
| passHatK | repetitions in blocks of k: the rate of blocks in which all passed |
| metric with percentile | the rate of values on the right side of the limit, against the percentile's share |
| criterion | the mean of scores, which lie between 0 and 1 |
| metric without percentile | of latency, tokens and turns that the mean is above a limit; of others nothing |
| noRegression | the confidence sequences of both rates; the baseline is not repeated |
| maxFlaky | missed as soon as there are too many; no rule shows that more repetitions would find no more |
| maxErrors, minCoverage | what was run is counted; nothing is inferred, so they keep nothing going |

A bound on either side gets half of alpha. What a rule leaves open is judged as usual when all ran.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import field

from ..base.lazy_dataclass import dataclass
from ..base.text import counted, percents
from ..evaluators.results import Outcome
from ..project.requirements import Requirement, as_share
from .evidence import OF_RUNS, Baseline
from .intervals import Interval
from .paired import ALPHA
from .sequential import Decision, GrowingMean, MeanSequence, RateSequence


@dataclass(frozen=True, slots=True)
class Observation:
    """One run of a round: what it came to, and the metric or criterion that a requirement is about."""

    outcome: Outcome | None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    criteria: Mapping[str, float] = field(default_factory=dict[str, float])


Round = Mapping[Hashable, Observation]
_PASSED: dict[Outcome | None, float | None] = {"pass": 1.0, "fail": 0.0}


class Rule:
    """Decides one requirement, round by round; the rules below say how."""

    decision: Decision | None = None
    rounds: int = 0
    open_because: str = ""
    """Why it can stay open however clear it looks; empty where both decisions can be taken early."""

    def add_round(self, runs: Round) -> None:
        """Look at one repetition of all subjects that the requirement is about."""
        self.rounds += 1

    def repeats(self, key: Hashable) -> bool:
        """Whether another run of this subject may decide it."""
        return self.decision is None

    @property
    def text(self) -> str:
        return f"decided after {counted(self.rounds, 'repetition')}"


class CountedRule(Rule):
    """What was run is counted: nothing that was not run can change it."""

    def repeats(self, key: Hashable) -> bool:
        return False


class UnknownRule(Rule):
    """There is no rule, for a reason."""

    def __init__(self, reason: str) -> None:
        self.open_because = reason


class RateRule(Rule):
    """The rate of passes; with k, of k passes in a row."""

    def __init__(self, bound: float, alpha: float, k: int = 1) -> None:
        self._sequence = RateSequence(bound, alpha)
        self._k = k
        self._block: dict[Hashable, list[float | None]] = {}

    def add_round(self, runs: Round) -> None:
        super().add_round(runs)
        for key, run in runs.items():
            if run.outcome != "unasserted":
                self._block.setdefault(key, []).append(_PASSED.get(run.outcome))
        if self.rounds % self._k:
            return
        blocks = [_all_passed(block) if len(block) == self._k else None for block in self._block.values()]
        self._sequence.add_round([one for one in blocks if one is not None], blocks.count(None))
        self._block.clear()
        self.decision = self._sequence.decision

    @property
    def text(self) -> str:
        blocks = f" in blocks of {self._k}" if self._k > 1 else ""
        return f"{super().text}{blocks}: {_ends(self._sequence.interval)} is left for these subjects"


def _all_passed(block: list[float | None]) -> float | None:
    """One that failed decides a block, whatever an errored one would have been."""
    if 0.0 in block:
        return 0.0
    return None if None in block else 1.0


def _ends(interval: Interval) -> str:
    return percents(interval.low, interval.high)


@dataclass(slots=True)
class _Values:
    """The value of each subject in a round. One that ran to its end without a value does not have it."""

    read: Callable[[Observation], float | None]
    _has: dict[Hashable, bool] = field(default_factory=dict[Hashable, bool])

    def of(self, runs: Round) -> tuple[list[float], int]:
        values: list[float] = []
        missing = 0
        for key, run in runs.items():
            value = self.read(run)
            if value is not None:
                self._has[key] = True
                values.append(value)
            elif run.outcome in (None, "error"):
                missing += self._has.get(key, True)
            else:
                missing += self._has.setdefault(key, False)
        return values, missing


class ValueRule(Rule):
    """Values held by bounds, each a mean of something between 0 and 1 that must be large enough."""

    def __init__(
        self,
        read: Callable[[Observation], float | None],
        bounds: list[tuple[MeanSequence, Callable[[float], float]]],
        what: str,
    ) -> None:
        self._values, self._bounds, self._what = _Values(read), bounds, what

    def add_round(self, runs: Round) -> None:
        super().add_round(runs)
        values, missing = self._values.of(runs)
        for sequence, brought in self._bounds:
            sequence.add_round(map(brought, values), missing)
        decisions = {sequence.decision for sequence, _ in self._bounds}
        if "missed" in decisions:
            self.decision = "missed"
        elif decisions == {"met"}:
            self.decision = "met"

    @property
    def text(self) -> str:
        ends = " and ".join(_ends(sequence.interval) for sequence, _ in self._bounds)
        return f"{super().text}: {ends} is left for {self._what}"


class GrowingRule(Rule):
    """The mean of what is never negative and has no largest value."""

    def __init__(
        self,
        read: Callable[[Observation], float | None],
        least: float | None,
        most: float | None,
        alpha: float,
    ) -> None:
        self._values = _Values(read)
        self._least = GrowingMean(least, alpha) if least is not None and least > 0 else None
        self._most = GrowingMean(most, alpha) if most is not None and most > 0 else None
        if self._most is not None:
            self.open_because = "that a mean is small enough shows only at the end: one value may be huge"
        elif self._least is not None:
            self.open_because = "that a mean is too small shows only at the end: one value may be huge"

    def add_round(self, runs: Round) -> None:
        super().add_round(runs)
        values, missing = self._values.of(runs)
        for one in (self._least, self._most):
            if one is not None:
                one.add_round(values, missing)
        if self._most is not None:
            self.decision = "missed" if self._most.above else None
        elif self._least is None or self._least.above:
            self.decision = "met"


class RegressionRule(Rule):
    """The pass rate of the subjects that the baseline has too, against the baseline's."""

    def __init__(self, base: Baseline, effect: float, alpha: float) -> None:
        self._base, self._effect = base, effect
        # Half of alpha is left for the test at the end, and a sequence of either side takes half of the rest.
        self._alpha = alpha / 4
        self._theirs: Interval | None = None
        self._ours = RateSequence(0.5, self._alpha)
        self._keys: list[Hashable] = []
        if not effect:
            self.open_because = "that nothing got worse shows only at the end; minEffect says what may"

    def add_round(self, runs: Round) -> None:
        super().add_round(runs)
        if self._theirs is None:
            self._keys = [key for key in runs if self._base.outcomes(key)]
            self._theirs = self._base_interval()
        if not self._keys:
            self.open_because = f"no subject is both here and in {self._base.name}"
            return
        outcomes = [_PASSED.get(runs[key].outcome) if key in runs else None for key in self._keys]
        self._ours.add_round([one for one in outcomes if one is not None], outcomes.count(None))
        if self._ours.is_below(self._theirs.low - self._effect):
            self.decision = "missed"
        elif self._ours.is_above(self._theirs.high - self._effect):
            self.decision = "met"

    def _base_interval(self) -> Interval:
        """The rounds that all subjects of the baseline have: it may itself have stopped early."""
        sequence = RateSequence(0.5, self._alpha)
        sides = [self._base.outcomes(key) for key in self._keys]
        for outcomes in zip(*sides, strict=False):
            values = [_PASSED.get(one) for one in outcomes]
            sequence.add_round([one for one in values if one is not None], values.count(None))
        return sequence.interval

    @property
    def text(self) -> str:
        assert self._theirs is not None
        ours, theirs = _ends(self._ours.interval), _ends(self._theirs)
        return f"{super().text}: {ours} is left here and {theirs} for the baseline"


class FlakyRule(Rule):
    """Too many flaky subjects stay too many; a flaky one is not repeated for it."""

    open_because = "further repetitions may find a flaky subject as long as there are any"

    def __init__(self, most: int | str) -> None:
        self._most = most
        self._outcomes: dict[Hashable, set[Outcome | None]] = {}

    def add_round(self, runs: Round) -> None:
        super().add_round(runs)
        for key, run in runs.items():
            self._outcomes.setdefault(key, set()).add(run.outcome)
        flaky = sum(map(self._flaky, self._outcomes))
        # Of all subjects at most: those that were not scored twice are in no share yet.
        most = self._most if isinstance(self._most, int) else as_share(self._most) * len(self._outcomes)
        self.decision = "missed" if flaky > most else None

    def _flaky(self, key: Hashable) -> bool:
        return {"pass", "fail"} <= self._outcomes.get(key, set())

    def repeats(self, key: Hashable) -> bool:
        return self.decision is None and not self._flaky(key)


def rule_for(requirement: Requirement, baselines: Mapping[str, Baseline | str]) -> Rule:
    """The rule that a requirement is decided by while its repetitions come in."""
    alpha = ALPHA if requirement.confidence is None else 1 - requirement.confidence
    match requirement.kind:
        case "passRate":
            return RateRule(requirement.pass_rate or 0.0, alpha)
        case "passHatK":
            return RateRule(requirement.pass_hat_k or 0.0, alpha, requirement.k or 1)
        case "noRegression":
            base = baselines.get(requirement.no_regression or "", "there is no such baseline")
            if isinstance(base, str):
                return UnknownRule(base)
            return RegressionRule(base, requirement.min_effect or 0.0, requirement.alpha or ALPHA)
        case "metric":
            return _metric_rule(requirement, requirement.metric or "", alpha)
        case "criterion":
            return _criterion_rule(requirement, requirement.criterion or "", alpha)
        case "maxFlaky":
            return FlakyRule(requirement.max_flaky or 0)
        case "maxErrors" | "minCoverage":
            return CountedRule()


def _metric_rule(requirement: Requirement, name: str, alpha: float) -> Rule:
    least, most = requirement.min, requirement.max

    def read(run: Observation) -> float | None:
        return run.metrics.get(name)

    if requirement.percentile is None:
        if name in OF_RUNS:
            return GrowingRule(read, least, most, alpha)
        return UnknownRule("the values of a metric have no known ends, so no mean of few shows that of all")
    share, each = requirement.percentile / 100, _each(requirement, alpha)
    bounds: list[tuple[MeanSequence, Callable[[float], float]]] = []
    if most is not None:
        bounds.append((RateSequence(share, each), lambda value: float(value <= most)))
    if least is not None:
        bounds.append((RateSequence(1 - share, each), lambda value: float(value >= least)))
    return ValueRule(read, bounds, "the share of runs on the right side")


def _criterion_rule(requirement: Requirement, name: str, alpha: float) -> Rule:
    least, most, each = requirement.min, requirement.max, _each(requirement, alpha)

    def read(run: Observation) -> float | None:
        score = run.criteria.get(name)
        return score if score is not None and 0 <= score <= 1 else None

    bounds: list[tuple[MeanSequence, Callable[[float], float]]] = []
    if least is not None:
        bounds.append((MeanSequence(least, each), lambda value: value))
    if most is not None:
        bounds.append((MeanSequence(1 - most, each), lambda value: 1 - value))
    return ValueRule(read, bounds, "the mean" if most is None else "the mean's distance to its limits")


def _each(requirement: Requirement, alpha: float) -> float:
    """The alpha of each bound: two of them share it."""
    return alpha / 2 if requirement.min is not None and requirement.max is not None else alpha
