"""The state of a project in one answer: a card per eval, what newly fails, and the newest executions.

What a card says is what `comparing.py` and `conclusion.py` say of its newest execution. Both read every run
of an execution, so their answers are kept until one of the executions or a baseline changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..project.entities import Baseline, Execution, Moment, RunSummary, StoredEval, Subject
from ..reporting.comparison import Category, ComparedSubject, ComparisonResult, Decision, Difference, SideRuns
from ..reporting.requirements import RequirementResult, Standing
from ..reporting.statistics import Figure, Rate, rates_of
from ..storage.contract import Filters, Tally
from .comparing import compare_executions
from .conclusion import conclude

if TYPE_CHECKING:
    from ..storage.store import SqlStore

# What one answer may cost, whatever a project holds.
MOST_CARDS = 50
MOST_RUNS = 5_000
TREND = 20
FAILURES = 8
_KEPT = 200
_FAILING: frozenset[Category] = frozenset({"regressed", "errored", "flaky", "new", "changed"})


class TrendPoint(Figure):
    """One execution of a trend."""

    execution_id: str
    created_at: Moment
    rate: Rate


class Reference(Figure):
    """What a newest execution is compared with."""

    kind: Literal["baseline", "previous"]
    name: str = Field(description="The baseline's, or the moment of the execution before")
    execution_id: str
    created_at: Moment


class NewFailure(Figure):
    """A subject that fails now and did not fail in the reference, with a run that shows it."""

    subject: Subject
    category: Category
    run_id: str
    reason: str
    base: SideRuns | None
    candidate: SideRuns


class Progress(Figure):
    """A newest execution beside its reference."""

    reference: Reference
    decision: Decision
    overall: Difference
    counts: dict[Category, int]
    failures: list[NewFailure]
    more_failures: int = Field(description="How many more there are")


class EvalCard(Figure):
    """One eval: what its newest execution came to, and how that compares."""

    eval_id: str
    eval_name: str
    execution: Execution | None = Field(description="The newest that is over; none if it never ran")
    under_way: Execution | None = Field(description="One that is queued or running")
    pass_rate: Rate | None
    trend: list[TrendPoint] = Field(description="The newest whole executions, the oldest first")
    progress: Progress | None = Field(description="Not given where there is nothing to compare with")
    note: str | None = Field(description="Why there is no comparison")
    requirements: list[RequirementResult]
    standing: Standing | None


class HomeCards(Figure):
    """The cards of a project, those that ran last first."""

    evals: list[EvalCard]
    not_shown: int


class _Judged(NamedTuple):
    progress: Progress | None
    note: str | None
    requirements: list[RequirementResult]
    standing: Standing | None


_Key = tuple[object, ...]


@dataclass(slots=True)
class JudgedExecutions:
    """What was read of executions that have not changed since; the oldest answers are dropped."""

    _kept: OrderedDict[_Key, _Judged] = field(default_factory=OrderedDict[_Key, _Judged])

    def get(self, key: _Key) -> _Judged | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: _Key, judged: _Judged) -> None:
        self._kept[key] = judged
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)


async def home_cards(store: SqlStore, kept: JudgedExecutions) -> HomeCards:
    """A card for each of the evals that ran last."""
    page = await store.list_of("eval", limit=200)
    evals = [one for one in page.items if isinstance(one, StoredEval)]
    newest = {one.id: await _newest(store, one.id) for one in evals}
    ordered = sorted(evals, key=lambda one: newest[one.id], reverse=True)
    baselines = await store.baselines()
    cards = [
        await _card(store, kept, one, [base for base in baselines if base.eval_id == one.id])
        for one in ordered[:MOST_CARDS]
    ]
    return HomeCards(evals=cards, not_shown=max(0, len(evals) - MOST_CARDS))


async def _newest(store: SqlStore, eval_id: str) -> str:
    """The id of its newest execution; ids sort by the moment they were made."""
    page = await store.executions(Filters(eval_id=eval_id), limit=1)
    return page.items[0].id if page.items else ""


async def _card(
    store: SqlStore, kept: JudgedExecutions, definition: StoredEval, baselines: Sequence[Baseline]
) -> EvalCard:
    recent = (await store.executions(Filters(eval_id=definition.id), limit=TREND)).items
    over = [one for one in recent if one.is_over]
    whole = [one for one in over if one.partial is None and not one.replayed]
    latest = next(iter(whole or over), None)
    tallies = {one.id: one for one in await _tallies(store, definition.id)}
    judged = _Judged(None, None, [], None)
    if latest is not None:
        judged = await _judged(store, kept, latest, whole, baselines)
    return EvalCard(
        eval_id=definition.id,
        eval_name=definition.name,
        execution=latest,
        under_way=next((one for one in recent if not one.is_over), None),
        pass_rate=_rate(tallies.get(latest.id)) if latest else None,
        trend=_trend(whole, tallies),
        progress=judged.progress,
        note=judged.note,
        requirements=judged.requirements,
        standing=judged.standing,
    )


async def _tallies(store: SqlStore, eval_id: str) -> list[Tally]:
    return await store.tally_executions(Filters(eval_id=eval_id), limit=TREND)


def _rate(tally: Tally | None) -> Rate | None:
    return None if tally is None else rates_of(tally.subjects)[0]


def _trend(whole: Sequence[Execution], tallies: Mapping[str | None, Tally]) -> list[TrendPoint]:
    points = [
        TrendPoint(execution_id=one.id, created_at=one.created_at, rate=rates_of(tallies[one.id].subjects)[0])
        for one in reversed(whole)
        if one.id in tallies
    ]
    return [point for point in points if point.rate.of]


async def _judged(
    store: SqlStore,
    kept: JudgedExecutions,
    latest: Execution,
    whole: Sequence[Execution],
    baselines: Sequence[Baseline],
) -> _Judged:
    reference = await reference_of(store, latest, whole, baselines)
    base = await store.execution(reference.execution_id) if reference else None
    states = [(one.id, one.updated_at) for one in (latest, base) if one is not None]
    key = (*states, *((one.name, one.execution_id) for one in baselines))
    judged = kept.get(key)
    if judged is None:
        judged = await _judge(store, latest, base, reference)
        kept.put(key, judged)
    return judged


async def reference_of(
    store: SqlStore, latest: Execution, whole: Sequence[Execution], baselines: Sequence[Baseline]
) -> Reference | None:
    """The baseline "main", or the one that was set last; without any the whole execution before."""
    chosen = sorted(baselines, key=lambda one: (one.name.casefold() == "main", one.created_at))
    for baseline in reversed(chosen):
        if baseline.execution_id != latest.id:
            execution = await store.execution(baseline.execution_id)
            return Reference(
                kind="baseline",
                name=baseline.name,
                execution_id=execution.id,
                created_at=execution.created_at,
            )
    earlier = next((one for one in whole if one.id < latest.id), None)
    if earlier is None:
        return None
    return Reference(kind="previous", name="previous", execution_id=earlier.id, created_at=earlier.created_at)


async def _judge(
    store: SqlStore, latest: Execution, base: Execution | None, reference: Reference | None
) -> _Judged:
    if max(latest.counts.total, base.counts.total if base else 0) > MOST_RUNS:
        return _Judged(None, f"more than {MOST_RUNS:,} runs: open the comparison to see it", [], None)
    conclusion = (await conclude(store, latest)).result if latest.requirements else None
    requirements = conclusion.requirements if conclusion else []
    standing = conclusion.standing if conclusion else None
    if base is None or reference is None:
        return _Judged(None, "no earlier execution to compare with", requirements, standing)
    try:
        result = await compare_executions(store, base, latest)
    except InvalidInput as error:
        return _Judged(None, str(error), requirements, standing)
    return _Judged(await _progress(store, latest, reference, result), None, requirements, standing)


async def _progress(
    store: SqlStore, latest: Execution, reference: Reference, result: ComparisonResult
) -> Progress:
    failing = [one for one in result.subjects if _fails_newly(one)]
    runs = await _bad_runs(store, latest) if failing else {}
    failures = [failure for one in failing if (failure := _failure(one, runs)) is not None]
    return Progress(
        reference=reference,
        decision=result.decision,
        overall=result.overall,
        counts=result.counts,
        failures=failures[:FAILURES],
        more_failures=max(0, len(failing) - FAILURES),
    )


def _fails_newly(compared: ComparedSubject) -> bool:
    now, then = compared.candidate, compared.base
    if now is None or compared.category not in _FAILING or not now.failed + now.errored:
        return False
    return compared.category == "regressed" or then is None or not then.failed + then.errored


async def _bad_runs(store: SqlStore, execution: Execution) -> dict[tuple[str | None, ...], RunSummary]:
    """A run that failed or errored of each subject of an execution; a failure says more than an error."""
    runs: dict[tuple[str | None, ...], RunSummary] = {}
    for outcome in ("error", "fail"):
        page = await store.runs(Filters(execution_id=execution.id, outcome=outcome), limit=500)
        for run in page.items:
            key = Subject.key_of(run)
            # Where one connector is compared with another, the subject may name either.
            runs[key] = runs[key[:-1]] = run
    return runs


def _failure(
    compared: ComparedSubject, runs: Mapping[tuple[str | None, ...], RunSummary]
) -> NewFailure | None:
    key = compared.subject.key
    run = runs.get(key) or runs.get(key[:-1])
    if run is None or compared.candidate is None:
        return None
    return NewFailure(
        subject=compared.subject,
        category=compared.category,
        run_id=run.id,
        reason=(run.result.reason if run.result else run.error) or "",
        base=compared.base,
        candidate=compared.candidate,
    )
