"""Whether what is required was reached: each requirement is met, missed or undecided, with its evidence.

What a requirement is held against comes as `Evidence`, so that executions and scored datasets are judged by
the same rules. `evidence.py` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, NamedTuple, Protocol

from pydantic import Field

from ..base.lazy_dataclass import dataclass
from ..base.text import counted, first_few, measure, percent, percents, points, were
from ..project.entities import Counts
from ..project.requirements import Requirement, RequirementKind, as_share
from .intervals import CONFIDENCE, Interval, rate_interval
from .paired import ALPHA, Comparison
from .repetitions import mean_pass_hat_k
from .statistics import ExecutionSummary, Figure
from .subjects import RunCounts

Standing = Literal["met", "missed", "undecided"]


class RequirementResult(Figure):
    """What became of one requirement, and why, in one sentence."""

    requirement: str
    """As it is written on the command line."""
    standing: Standing
    evidence: str
    sentence: str = Field(default="", description="What is required, in words")
    regressed: list[str] = Field(default_factory=list[str])
    """The subjects that passed less often than in the baseline, the largest drop first."""
    lost: list[str] = Field(
        default_factory=list[str], description="The subjects of the baseline without a result here"
    )


EXIT_CODES: dict[Standing, Literal[0, 1, 3]] = {"met": 0, "missed": 1, "undecided": 3}
"""The exit code of a command that ends with this."""


class ExecutionConclusion(Figure):
    """What an execution came to, or has come to so far: the verdict, and what it rests on."""

    standing: Standing
    exit_code: Literal[0, 1, 3] = Field(
        description="What `eval run` would end with: 0 met, 1 missed, 3 undecided"
    )
    requirements: list[RequirementResult] = Field(
        description="With the evidence; without any, a failure is a miss and an error leaves it undecided"
    )
    summary: ExecutionSummary
    notes: list[str] = Field(description="What the numbers do not cover, and how many runs were saved")


class Scope(NamedTuple):
    """The part of the runs that a requirement is about."""

    scenario: str | None = None
    tag: str | None = None

    def __str__(self) -> str:
        parts = (
            f'scenario "{self.scenario}"' if self.scenario else "",
            f'tag "{self.tag}"' if self.tag else "",
        )
        return " and ".join(part for part in parts if part)


@dataclass(slots=True)
class ScopedRuns(RunCounts):
    """The runs in a scope, and (passed, scored) of each subject."""

    subjects: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class Measured(NamedTuple):
    """A mean or percentile with its interval, and how many runs had a value."""

    interval: Interval
    runs: int


class Regression(NamedTuple):
    """The comparison with a baseline, its name, and which subjects dropped."""

    comparison: Comparison
    baseline: str
    regressed: list[str]
    improved: bool = False
    """Whether any subject passed more often than in the baseline."""
    lost: Sequence[str] = ()
    """What passed or failed in the baseline and has no result here."""


class Evidence(Protocol):
    """What requirements are held against."""

    noun: str

    def runs(self, scope: Scope) -> ScopedRuns: ...
    def metric(
        self, name: str, percentile: float | None, scope: Scope, confidence: float
    ) -> Measured | str: ...
    def criterion(self, name: str, scope: Scope, confidence: float) -> Measured | str: ...
    def regression(self, baseline: str, scope: Scope, alpha: float) -> Regression | str:
        """The comparison, or why there is none."""
        ...


class _Judgement(NamedTuple):
    standing: Standing
    evidence: str
    regressed: Sequence[str] = ()
    lost: Sequence[str] = ()


def judge(requirements: Sequence[Requirement], evidence: Evidence) -> list[RequirementResult]:
    """Hold each requirement against the evidence.

    Errors are nobody's pass: where no requirement says how many there may be, any leaves the whole undecided.
    """
    results = [_judged(requirement, evidence) for requirement in requirements]
    limited = any(one.max_errors is not None or one.min_coverage is not None for one in requirements)
    whole = evidence.runs(Scope())
    if requirements and not limited and whole.errored:
        of = f"{whole.errored:,} of {whole.runs:,} {evidence.noun} errored"
        advice = "they neither passed nor failed; say how many there may be by maxErrors or minCoverage"
        results.append(_result(Requirement(max_errors=0), "undecided", f"{of}: {advice}"))
    if requirements and not _is_evidence(whole, requirements):
        return [_without_evidence(one, whole, evidence.noun) for one in results]
    return results


_COUNTING: tuple[RequirementKind, ...] = ("maxErrors", "maxFlaky", "minCoverage")


def _is_evidence(whole: RunCounts, requirements: Sequence[Requirement]) -> bool:
    """Whether anything was held against the agent: how many errors there were says nothing about it."""
    if not whole.scored + whole.unasserted:
        return False
    return whole.scored > 0 or any(one.kind not in _COUNTING or one.criterion for one in requirements)


def _without_evidence(result: RequirementResult, whole: RunCounts, noun: str) -> RequirementResult:
    if result.standing != "met":
        return result
    of = f"{result.evidence}; none of {whole.runs:,} {noun} passed or failed, so nothing is shown"
    return result.model_copy(update={"standing": "undecided", "evidence": of})


def overall(results: Sequence[RequirementResult]) -> Standing:
    """The worst of them: one that is missed decides, one that is open leaves the whole open."""
    return worst_first(results)[0].standing if results else "undecided"


def worst_first(results: Sequence[RequirementResult]) -> list[RequirementResult]:
    return sorted(results, key=lambda one: _WORST_FIRST.index(one.standing))


def standing_of(counts: Counts) -> Standing:
    """The rule without requirements: any failure is a miss, any error or nothing asserted leaves it open."""
    if counts.failed:
        return "missed"
    decided = counts.passed > 0 and counts.passed + counts.unasserted == counts.total
    return "met" if decided else "undecided"


_WORST_FIRST: tuple[Standing, ...] = ("missed", "undecided", "met")


def _result(
    requirement: Requirement,
    standing: Standing,
    evidence: str,
    regressed: Sequence[str] = (),
    lost: Sequence[str] = (),
) -> RequirementResult:
    return RequirementResult(
        requirement=requirement.text,
        sentence=requirement.sentence,
        standing=standing,
        evidence=evidence,
        regressed=list(regressed),
        lost=list(lost),
    )


def _judged(requirement: Requirement, evidence: Evidence) -> RequirementResult:
    scope = Scope(requirement.scenario, requirement.tag)
    counts = evidence.runs(scope)
    if not counts.runs:
        where = f" of {scope}" if str(scope) else ""
        return _result(requirement, "undecided", f"there are no {evidence.noun}{where}")
    check = {
        "passRate": _pass_rate,
        "passHatK": _pass_hat_k,
        "noRegression": _no_regression,
        "metric": _measured,
        "criterion": _measured,
        "maxErrors": _max_errors,
        "maxFlaky": _max_flaky,
        "minCoverage": _min_coverage,
    }[requirement.kind]
    return _result(requirement, *check(requirement, counts, evidence))


def _held(interval: Interval, requirement: Requirement, least: float | None, most: float | None) -> Standing:
    """The point, or with a confidence both ends of the interval, against bounds."""
    if interval.estimate is None:
        return "undecided"
    sure = requirement.confidence is not None
    low, high = (interval.low, interval.high) if sure else (interval.estimate, interval.estimate)
    if (least is None or low >= least) and (most is None or high <= most):
        return "met"
    beyond = (least is not None and high < least) or (most is not None and low > most)
    return "missed" if beyond else "undecided"


def _pass_rate(requirement: Requirement, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    least, confidence = requirement.pass_rate or 0.0, requirement.confidence or CONFIDENCE
    interval = rate_interval(counts.subjects, confidence)
    if interval.estimate is None:
        return _Judgement("undecided", f"none of {counts.runs:,} {evidence.noun} passed or failed")
    standing = _held(interval, requirement, least, None)
    sentence = (
        f"{counts.passed:,} of {counts.scored:,} passed, {percent(interval.estimate)} "
        f"({_range(interval, confidence)})"
    )
    if not counts.left:
        return _Judgement(standing, sentence)
    # What was not run could have gone either way.
    best = (counts.passed + counts.left) / (counts.scored + counts.left)
    worst = counts.passed / (counts.scored + counts.left)
    settled = standing == ("missed" if best < least else "met" if worst >= least else None)
    sentence += f"; {counts.left:,} {evidence.noun} are not run"
    return _Judgement(standing if settled else "undecided", sentence)


def _range(interval: Interval, confidence: float) -> str:
    return f"{percent(confidence)} interval {percents(interval.low, interval.high)}"


def _pass_hat_k(requirement: Requirement, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    k, confidence = requirement.k or 1, requirement.confidence or CONFIDENCE
    passes = mean_pass_hat_k(counts.subjects, k, confidence=confidence)
    if passes.interval.estimate is None:
        return _Judgement("undecided", f"no subject was scored {k} times or more")
    standing = _held(passes.interval, requirement, requirement.pass_hat_k, None)
    sentence = (
        f"pass^{k} is {percent(passes.interval.estimate)} over {counted(passes.subjects, 'subject')} "
        f"({_range(passes.interval, confidence)})"
    )
    if passes.left_out:
        few = f"{counted(passes.left_out, 'subject')} {were(passes.left_out)} scored fewer than {k} times"
        return _Judgement("undecided", f"{sentence}; {few}")
    return _unless_left(standing, sentence, counts, evidence)


def _unless_left(standing: Standing, sentence: str, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    """Nothing is decided while runs are missing that could change it."""
    if not counts.left:
        return _Judgement(standing, sentence)
    return _Judgement("undecided", f"{sentence}; {counts.left:,} {evidence.noun} are not run")


def _no_regression(requirement: Requirement, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    alpha, effect = requirement.alpha or ALPHA, requirement.min_effect or 0.0
    scope = Scope(requirement.scenario, requirement.tag)
    regression = evidence.regression(requirement.no_regression or "", scope, alpha)
    if isinstance(regression, str):
        return _Judgement("undecided", regression)
    comparison, drop = regression.comparison, -(regression.comparison.difference.estimate or 0.0)
    sentence = _compared(regression, alpha)
    worse = comparison.p_worse <= alpha and drop > 0 and drop >= effect
    if worse:
        standing: Standing = "missed"
    elif requirement.confidence is not None and comparison.difference.low < -effect:
        standing = "undecided"
    elif drop > 0 and drop >= effect and not regression.improved:
        # Noise goes both ways, so this may well be none; comparing the two says the same.
        standing, sentence = (
            "undecided",
            f"{sentence}; all that moved got worse, too little to rule out chance",
        )
    else:
        standing = "met"
    lost = [] if requirement.allow_gone else list(regression.lost)
    if lost:
        subjects = counted(len(lost), "subject")
        sentence = f"{sentence}; {subjects} of it without a result here: {first_few(lost)}"
    if not worse:
        standing, sentence, *_ = _unless_left(standing, sentence, counts, evidence)
        standing = "undecided" if lost else standing
    return _Judgement(standing, sentence, regression.regressed, lost)


def _compared(regression: Regression, alpha: float) -> str:
    comparison = regression.comparison
    difference = comparison.difference
    ends = f"{percent(1 - alpha)} interval {points(difference.low)} to {points(difference.high)}"
    seen = comparison.detectable
    drop = "" if seen is None else f"a drop of {seen * 100:.1f} points would show"
    smallest = drop or "no drop could have been shown"
    return (
        f"{points(difference.estimate or 0.0)} against {regression.baseline} over {comparison.subjects:,} "
        f"subjects ({ends}, p for worse {comparison.p_worse:.2g}; with so many subjects {smallest})"
    )


def _measured(requirement: Requirement, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    confidence = requirement.confidence or CONFIDENCE
    scope = Scope(requirement.scenario, requirement.tag)
    if requirement.metric is not None:
        share = None if requirement.percentile is None else requirement.percentile / 100
        name, measured = requirement.metric, evidence.metric(requirement.metric, share, scope, confidence)
        what = "mean" if requirement.percentile is None else f"{requirement.percentile:g}th percentile"
    else:
        name, what = requirement.criterion or "", "mean"
        measured = evidence.criterion(name, scope, confidence)
    if isinstance(measured, str):
        return _Judgement("undecided", measured)
    interval = measured.interval
    if interval.estimate is None:
        return _Judgement("undecided", f'none of {counts.runs:,} {evidence.noun} has a value of "{name}"')
    ends = f"{percent(confidence)} interval {measure(interval.low)} to {measure(interval.high)}"
    of = f"{measured.runs:,} of {counts.runs:,} {evidence.noun}"
    standing = _held(interval, requirement, requirement.min, requirement.max)
    sentence = f"the {what} is {measure(interval.estimate)} ({ends}; {of})"
    return _unless_left(standing, sentence, counts, evidence)


def _within(amount: int | str, count: int, of: int) -> bool:
    return count <= amount if isinstance(amount, int) else count <= as_share(amount) * of


def _max_errors(requirement: Requirement, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    sentence = f"{counts.errored:,} of {counts.runs:,} {evidence.noun} errored"
    if not _within(requirement.max_errors or 0, counts.errored, counts.runs):
        return _Judgement("missed", sentence)
    return _unless_left("met", sentence, counts, evidence)


def _max_flaky(requirement: Requirement, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    repeated = [(passed, scored) for passed, scored in counts.subjects if scored > 1]
    flaky = sum(1 for passed, scored in repeated if 0 < passed < scored)
    if not repeated:
        return _Judgement(
            "undecided", f"nothing was scored more than once: repeat the {evidence.noun} to see what is flaky"
        )
    are = "is" if flaky == 1 else "are"
    sentence = f"{flaky:,} of {counted(len(repeated), 'subject')} scored more than once {are} flaky"
    if not _within(requirement.max_flaky or 0, flaky, len(repeated)):
        return _Judgement("missed", sentence)
    return _unless_left("met", sentence, counts, evidence)


def _min_coverage(requirement: Requirement, counts: ScopedRuns, evidence: Evidence) -> _Judgement:
    covered, what = counts.scored, "passed or failed"
    if requirement.criterion is not None:
        scope = Scope(requirement.scenario, requirement.tag)
        measured = evidence.criterion(requirement.criterion, scope, CONFIDENCE)
        covered = 0 if isinstance(measured, str) else measured.runs
        what = f'have a score of "{requirement.criterion}"'
    share = covered / counts.runs
    met = share >= (requirement.min_coverage or 0.0)
    sentence = f"{covered:,} of {counts.runs:,} {evidence.noun} {what}, {percent(share)}"
    return _Judgement("met" if met else "missed", sentence)
