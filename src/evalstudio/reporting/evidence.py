"""What an execution's requirements are held against, gathered run by run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter

from ..base.lazy_dataclass import dataclass
from ..evaluators.results import Outcome, RunOutput
from ..project.entities import RunSummary, Subject
from ..project.requirements import Requirement
from ..storage.contract import Records, RunGroup, Spending
from .intervals import mean_interval, percentile_interval
from .paired import compare_rates
from .requirements import Measured, Regression, Scope, ScopedRuns
from .spending import USED, add_spending
from .statistics import group_of
from .subjects import SubjectRuns, pairs_of, scored_counts

# What every run has, beside the metrics of its evaluators.
OF_RUNS = {"latencyMs": "latency_ms", "totalTokens": "total_tokens", "turns": "turn_count"}
_Values = dict[Hashable, list[float]]


def metrics_of(run: RunSummary, output: RunOutput | None) -> dict[str, float]:
    """What was measured of a run, by name."""
    own = {name: value for name, field in OF_RUNS.items() if (value := getattr(run, field)) is not None}
    return {**(output.get("metrics", {}) if output else {}), **own}


def criteria_of(output: RunOutput | None) -> Mapping[str, float]:
    return output.get("criterionScores", {}) if output else {}


def outcome_of(run: RunSummary, *, agent_errors_fail: bool) -> Outcome | None:
    """What a run came to; with ``agent_errors_fail`` the agent's errors are failures."""
    result = run.result
    if result is None:
        return None
    if agent_errors_fail and result.outcome == "error" and result.fault == "agent":
        return "fail"
    return result.outcome


@dataclass(slots=True)
class Baseline:
    """The runs of another execution, by subject."""

    name: str
    agent_errors_fail: bool = False
    all_must_run: bool = True
    """Whether every subject of it is to be run: not where somebody chose which."""
    subjects: dict[Hashable, SubjectRuns] = field(default_factory=dict[Hashable, SubjectRuns])
    _rounds: dict[Hashable, dict[int, Outcome | None]] = field(
        default_factory=dict[Hashable, "dict[int, Outcome | None]"]
    )

    @classmethod
    def of(cls, name: str, runs: Iterable[RunSummary]) -> Baseline:
        baseline = cls(name)
        for run in runs:
            baseline.add(run)
        return baseline

    def add(self, run: RunSummary) -> None:
        subject, outcome = Subject.of(run), outcome_of(run, agent_errors_fail=self.agent_errors_fail)
        self.subjects.setdefault(subject.key, SubjectRuns(subject=subject)).add(outcome)
        if outcome != "unasserted":
            self._rounds.setdefault(subject.key, {})[run.repetition] = outcome

    def outcomes(self, key: Hashable) -> list[Outcome | None]:
        """What an asserted subject came to, repetition by repetition."""
        return [outcome for _, outcome in sorted(self._rounds.get(key, {}).items())]


@dataclass(slots=True)
class ExecutionEvidence:
    """The runs of one execution. ``tags`` are the scenarios that have each tag, by id."""

    requirements: Sequence[Requirement]
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    baselines: Mapping[str, Baseline | str] = field(default_factory=dict[str, "Baseline | str"])
    """By the name that requirements use; a text says why there is none."""
    agent_errors_fail: bool = False
    noun: str = "runs"
    subjects: dict[Hashable, SubjectRuns] = field(default_factory=dict[Hashable, SubjectRuns])
    _metrics: dict[str, _Values] = field(default_factory=dict[str, _Values])
    _criteria: dict[str, _Values] = field(default_factory=dict[str, _Values])

    def __post_init__(self) -> None:
        for one in self.requirements:
            if one.metric is not None:
                self._metrics[one.metric] = defaultdict(list)
            if one.criterion is not None:
                self._criteria[one.criterion] = defaultdict(list)

    @property
    def needs_outputs(self) -> bool:
        """Whether a requirement is about more than the summaries of runs hold."""
        return bool(self._criteria) or any(name not in OF_RUNS for name in self._metrics)

    def add(self, run: RunSummary, output: RunOutput | None = None) -> None:
        key, outcome = Subject.key_of(run), outcome_of(run, agent_errors_fail=self.agent_errors_fail)
        counted = self.subjects.get(key)
        if counted is None:
            counted = self.subjects[key] = SubjectRuns(subject=Subject.of(run))
        counted.add(outcome)
        if outcome is None:
            return
        measured = metrics_of(run, output) if self._metrics else {}
        for name, values in self._metrics.items():
            if name in measured:
                values[key].append(measured[name])
        scores = criteria_of(output)
        for name, values in self._criteria.items():
            if name in scores:
                values[key].append(scores[name])

    def _keys(self, scope: Scope) -> list[Hashable]:
        return [key for key, one in self.subjects.items() if self._is_in(scope, one)]

    def _is_in(self, scope: Scope, one: SubjectRuns) -> bool:
        if scope.scenario and one.subject.scenario_name.casefold() != scope.scenario.casefold():
            return False
        return not scope.tag or one.subject.scenario_id in self.tags.get(scope.tag, ())

    def runs(self, scope: Scope) -> ScopedRuns:
        subjects = [self.subjects[key] for key in self._keys(scope)]
        counts = ScopedRuns(subjects=scored_counts(subjects))
        for one in subjects:
            counts.include(one)
        return counts

    def metric(self, name: str, percentile: float | None, scope: Scope, confidence: float) -> Measured:
        values = self._of(self._metrics[name], scope)
        if percentile is None:
            interval = mean_interval(values, confidence=confidence)
        else:
            interval = percentile_interval(values, percentile, confidence)
        return Measured(interval, sum(map(len, values)))

    def criterion(self, name: str, scope: Scope, confidence: float) -> Measured:
        values = self._of(self._criteria[name], scope)
        return Measured(mean_interval(values, bounds=(0, 1), confidence=confidence), sum(map(len, values)))

    def _of(self, values: _Values, scope: Scope) -> list[list[float]]:
        return [values[key] for key in self._keys(scope) if values.get(key)]

    def regression(self, baseline: str, scope: Scope, alpha: float) -> Regression | str:
        base = self.baselines.get(baseline, f'there is no baseline "{baseline}"')
        if isinstance(base, str):
            return base
        candidate = {key: self.subjects[key] for key in self._keys(scope)}
        pairs = pairs_of(base.subjects, candidate)
        if not pairs:
            return f"no subject was scored both here and in {base.name}"
        dropped = sorted(
            (pair.difference, candidate[key].subject.label)
            for key, pair in pairs.items()
            if pair.difference < 0
        )
        comparison = compare_rates(list(pairs.values()), alpha)
        improved = any(pair.difference > 0 for pair in pairs.values())
        lost = sorted(self._lost(base, scope))
        return Regression(comparison, base.name, [label for _, label in dropped], improved, lost)

    def _lost(self, base: Baseline, scope: Scope) -> Iterator[str]:
        """What was scored in the baseline and is not here: not run, or nothing but errors."""
        for key, before in base.subjects.items():
            here = self.subjects.get(key)
            expected = base.all_must_run or here is not None
            if before.scored and expected and not (here and here.scored) and self._is_in(scope, before):
                yield before.subject.label


class GroupedRuns:
    """Runs gathered one by one into groups of one subject that came to the same: few, however many runs."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, _GroupSums] = {}

    def add(self, run: RunSummary) -> None:
        result = run.result
        came_to = (run.status, result.outcome, result.fault) if result else (run.status, None, None)
        key = (*Subject.key_of(run), *came_to)
        sums = self._groups.get(key)
        if sums is None:
            self._groups[key] = _GroupSums(group_of(run))
        else:
            sums.add(run)

    def __iter__(self) -> Iterator[RunGroup]:
        return (sums.group() for sums in self._groups.values())


@dataclass(slots=True)
class _GroupSums:
    """The first run of a group, and the sums of those that followed."""

    first: RunGroup
    runs: int = 0
    max_latency_ms: float | None = None
    tokens: int = 0
    runs_with_tokens: int = 0
    known: dict[str, int] = field(default_factory=dict[str, int])
    sums: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, run: RunSummary) -> None:
        self.runs += 1
        latency, tokens = run.latency_ms, run.total_tokens
        if latency is not None and (self.max_latency_ms is None or latency > self.max_latency_ms):
            self.max_latency_ms = latency
        if tokens is not None:
            self.tokens += tokens
            self.runs_with_tokens += 1
        for name, value in zip(USED, _used(run), strict=True):
            if value is not None:
                self.known[name] = self.known.get(name, 0) + 1
                self.sums[name] = self.sums.get(name, 0.0) + value

    def group(self) -> RunGroup:
        first = self.first
        latencies = [one for one in (first.max_latency_ms, self.max_latency_ms) if one is not None]
        with_tokens = first.runs_with_tokens + self.runs_with_tokens
        finished = self.runs if first.outcome is not None else 0
        return replace(
            first,
            runs=first.runs + self.runs,
            max_latency_ms=max(latencies, default=None),
            tokens=(first.tokens or 0) + self.tokens if with_tokens else None,
            runs_with_tokens=with_tokens,
            spent=add_spending(first.spent, Spending(finished, self.known, self.sums)),
        )


_used = attrgetter(*USED)
_PAGE = 500


async def each_run(
    records: Records, execution_id: str, *, after: str = "", findings: bool = True
) -> AsyncIterator[tuple[RunSummary, RunOutput | None]]:
    """The runs of an execution in the order they were queued, a page in memory at a time.

    Without ``findings`` of what they came to in detail only the numbers.
    """
    while page := await records.runs_with_outputs(execution_id, after=after, limit=_PAGE, findings=findings):
        for one in page:
            yield one
        after = page[-1][0].id


async def tagged_scenarios(
    records: Records, requirements: Sequence[Requirement]
) -> dict[str, frozenset[str]]:
    """The ids of the scenarios that have the tags requirements name."""
    tags = {one.tag for one in requirements if one.tag}
    if not tags:
        return {}
    scenarios: dict[str, set[str]] = {tag: set() for tag in tags}
    cursor: str | None = None
    while True:
        page = await records.list_of("scenario", cursor=cursor, limit=500)
        for scenario in page.items:
            own = {tag.casefold() for tag in getattr(scenario, "tags", ())}
            for tag in tags:
                if tag.casefold() in own:
                    scenarios[tag].add(scenario.id)
        cursor = page.cursor
        if cursor is None:
            return {tag: frozenset(ids) for tag, ids in scenarios.items()}
