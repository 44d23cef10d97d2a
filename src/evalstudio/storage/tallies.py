"""Runs and executions in figures: counts, latency, score, tokens, and what repetitions came to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from sqlalchemy import ColumnElement, case, func, select

from ..base.lazy_dataclass import dataclass
from ..project.entities import Counts, Subject, name_key
from .contract import EVERYTHING, Filters, GroupedBy, RepetitionCounts, RunGroup, Spending, Spent, Tally
from .lists import SUBJECT_KEY, execution_conditions, run_conditions
from .rows import AnyRow
from .schema import COUNTED, USED, executions, runs, scenarios
from .transaction import Transaction

_COSTS = ("agent_cost", "simulator_cost", "judge_cost")


def tally_executions(unit: Transaction, filters: Filters = EVERYTHING, *, limit: int = 50) -> list[Tally]:
    """The newest executions with their counts, latency, score and tokens."""
    newest = select(executions).where(*execution_conditions(filters)).order_by(executions.c.id.desc())
    rows = unit.connection.execute(newest.limit(limit)).all()
    ids = [row.id for row in rows]
    query = select(runs.c.execution_id, *_figures()).where(runs.c.execution_id.in_(ids))
    measured = {row.execution_id: row for row in unit.connection.execute(query.group_by(runs.c.execution_id))}
    clusters = _clusters(unit, runs.c.execution_id, [runs.c.execution_id.in_(ids)])
    return [_tally(row.id, row.eval_name, row, measured.get(row.id), clusters[row.id]) for row in rows]


def tally(unit: Transaction, by: GroupedBy, filters: Filters = EVERYTHING) -> list[Tally]:
    """Runs by scenario, persona, connector or tag."""
    if by == "tag":
        return _by_tag(unit, filters)
    identity = runs.c[f"{by}_id"]
    name = func.max(runs.c[f"{by}_name"]).label("name")
    query = select(identity.label("id"), name, *_counts(), *_figures()).where(*run_conditions(filters))
    rows = unit.connection.execute(query.group_by(identity).order_by(identity)).all()
    clusters = _clusters(unit, identity, run_conditions(filters))
    return [_tally(row.id, row.name, row, row, clusters[row.id]) for row in rows]


def _by_tag(unit: Transaction, filters: Filters) -> list[Tally]:
    """Runs by the tags that their scenarios have now. A run counts in each; those without any come last."""
    conditions = run_conditions(filters)
    measured = [func.count(runs.c[name]).label(f"known_{name}") for name in ("latency_ms", "score")]
    query = select(runs.c.scenario_id, *_counts(), *_figures(), *measured).where(*conditions)
    clusters = _clusters(unit, runs.c.scenario_id, conditions)
    tags = _tags(unit, conditions)
    sums: dict[str | None, _TagSums] = {}
    for row in unit.connection.execute(query.group_by(runs.c.scenario_id)):
        for key, tag in tags.get(row.scenario_id, _UNTAGGED).items():
            sums.setdefault(key, _TagSums(tag)).add(row, clusters[row.scenario_id])
    return [sums[key].tally() for key in sorted(sums, key=lambda key: (key is None, key))]


_UNTAGGED: Mapping[str | None, str | None] = {None: None}


def _tags(unit: Transaction, conditions: Sequence[Any]) -> dict[str, dict[str | None, str | None]]:
    """The tags of the scenarios that were run, by what tells them apart, each as it is written."""
    ran = select(runs.c.scenario_id).where(*conditions)
    query = select(scenarios.c.id, scenarios.c.document)
    rows = unit.connection.execute(query.where(scenarios.c.tags != "[]", scenarios.c.id.in_(ran)))
    return {row.id: {name_key(tag): tag for tag in row.document["tags"]} for row in rows}


@dataclass(slots=True)
class _TagSums:
    """The runs of several scenarios added up; a mean covers the runs that have a value."""

    tag: str | None
    counts: Counter[str] = field(default_factory=Counter[str])
    subjects: Counter[RepetitionCounts] = field(default_factory=Counter[RepetitionCounts])
    rows: list[AnyRow] = field(default_factory=list[AnyRow])

    def add(self, row: AnyRow, subjects: Mapping[RepetitionCounts, int]) -> None:
        self.counts.update({key: int(getattr(row, key)) for key in COUNTED})
        self.subjects.update(subjects)
        self.rows.append(row)

    def tally(self) -> Tally:
        latencies = [row.max_latency for row in self.rows if row.max_latency is not None]
        tokens = [int(row.tokens) for row in self.rows if row.tokens is not None]
        costs = [cost for row in self.rows if (cost := _cost(row)) is not None]
        return Tally(
            id=self.tag,
            name=self.tag,
            counts=Counts(**self.counts),
            subjects=self.subjects,
            mean_latency_ms=self._mean("mean_latency", "known_latency_ms"),
            max_latency_ms=max(latencies, default=None),
            mean_score=self._mean("mean_score", "known_score"),
            total_tokens=sum(tokens) if tokens else None,
            total_cost=sum(costs) if costs else None,
        )

    def _mean(self, mean: str, known: str) -> float | None:
        number = sum(getattr(row, known) for row in self.rows)
        total = sum(
            float(getattr(row, mean)) * getattr(row, known) for row in self.rows if getattr(row, known)
        )
        return total / number if number else None


def _clusters(
    unit: Transaction, identity: ColumnElement[Any], where: Sequence[Any]
) -> defaultdict[str | None, dict[RepetitionCounts, int]]:
    """What the repetitions of a subject in an execution came to, and of how many subjects that is true.

    Counted by the database twice over: the answer grows with the kinds of results, not with the subjects.
    """
    counted = (("passed", "pass"), ("failed", "fail"), ("errored", "error"))
    sums = [func.sum(case((runs.c.outcome == outcome, 1), else_=0)).label(name) for name, outcome in counted]
    same = [runs.c[name] for name in ("execution_id", *SUBJECT_KEY)]
    subjects = select(identity.label("id"), *sums).where(*where).group_by(identity, *same).subquery()
    kind = [subjects.c[name] for name, _ in counted]
    query = select(subjects.c.id, *kind, func.count().label("subjects")).group_by(subjects.c.id, *kind)
    clusters: defaultdict[str | None, dict[RepetitionCounts, int]] = defaultdict(dict)
    for row in unit.connection.execute(query):
        repetitions = RepetitionCounts(int(row.passed), int(row.failed), int(row.errored))
        clusters[row.id][repetitions] = row.subjects
    return clusters


def run_groups(unit: Transaction, filters: Filters = EVERYTHING) -> list[RunGroup]:
    """Runs by execution, subject and what they came to, the oldest execution first."""
    names = ("execution_id", *Subject.model_fields, "status", "outcome", "fault")
    columns = [runs.c[name] for name in names]
    sums = [
        func.count().label("runs"),
        func.max(runs.c.latency_ms).label("max_latency"),
        func.sum(runs.c.total_tokens).label("tokens"),
        func.count(runs.c.total_tokens).label("runs_with_tokens"),
        *(func.sum(runs.c[name]).label(f"sum_{name}") for name in USED),
        *(func.count(runs.c[name]).label(f"known_{name}") for name in USED),
    ]
    query = select(*columns, *sums).where(*run_conditions(filters)).group_by(*columns)
    return [
        RunGroup(
            execution_id=row.execution_id,
            subject=Subject.of(row),
            status=row.status,
            outcome=row.outcome,
            fault=row.fault,
            runs=row.runs,
            max_latency_ms=row.max_latency,
            tokens=None if row.tokens is None else int(row.tokens),
            runs_with_tokens=row.runs_with_tokens,
            spent=_spending(row),
        )
        for row in unit.connection.execute(query.order_by(*columns))
    ]


def spent(unit: Transaction, execution_id: str) -> Spent:
    """What the runs of an execution have used of tokens and cost, all roles together, where it is known."""
    tokens: list[Any] = [func.sum(runs.c[name]) for name in ("total_tokens", *_named("tokens"))]
    costs: list[Any] = [func.sum(runs.c[name]) for name in _named("cost")]
    query = select(func.count(runs.c.outcome), *tokens, *costs).where(runs.c.execution_id == execution_id)
    number, *sums = unit.connection.execute(query).one()
    known = [0 if one is None else one for one in sums]
    return Spent(number, int(sum(known[: len(tokens)])), float(sum(known[len(tokens) :])))


def _named(what: str) -> list[str]:
    return [name for name in USED if name.endswith(what)]


def _spending(row: AnyRow) -> Spending:
    return Spending(
        finished=row.runs if row.outcome is not None else 0,
        known={name: getattr(row, f"known_{name}") for name in USED},
        sums={name: float(getattr(row, f"sum_{name}") or 0) for name in USED},
    )


def _counts() -> list[ColumnElement[Any]]:
    conditions = {
        "queued": runs.c.status == "queued",
        "running": runs.c.status == "running",
        "passed": runs.c.outcome == "pass",
        "failed": runs.c.outcome == "fail",
        "errored": runs.c.outcome == "error",
        "cancelled": runs.c.status == "cancelled",
        "unasserted": runs.c.outcome == "unasserted",
    }
    counted = [func.sum(case((condition, 1), else_=0)).label(name) for name, condition in conditions.items()]
    return [func.count().label("total"), *counted]


def _figures() -> list[ColumnElement[Any]]:
    return [
        func.avg(runs.c.latency_ms).label("mean_latency"),
        func.max(runs.c.latency_ms).label("max_latency"),
        func.avg(runs.c.score).label("mean_score"),
        func.sum(runs.c.total_tokens).label("tokens"),
        *(func.sum(runs.c[name]).label(name) for name in _COSTS),
    ]


def _cost(figures: AnyRow) -> float | None:
    """What is known of the cost of all roles; None where nothing is.

    Nothing is known either where those that are known cost nothing: a conversation without a simulated user
    and judges does not make an agent free that does not tell its cost.
    """
    known = [value for name in _COSTS if (value := getattr(figures, name)) is not None]
    return sum(known) if len(known) == len(_COSTS) or any(known) else None


def _tally(
    identity: str | None,
    name: str | None,
    counts: AnyRow,
    figures: AnyRow | None,
    subjects: Mapping[RepetitionCounts, int],
) -> Tally:
    return Tally(
        subjects=subjects,
        id=identity,
        name=name,
        counts=Counts(**{key: int(getattr(counts, key)) for key in COUNTED}),
        mean_latency_ms=figures.mean_latency if figures else None,
        max_latency_ms=figures.max_latency if figures else None,
        mean_score=figures.mean_score if figures else None,
        total_tokens=int(figures.tokens) if figures and figures.tokens is not None else None,
        total_cost=_cost(figures) if figures else None,
    )
