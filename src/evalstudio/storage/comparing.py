"""What comparing executions reads: their runs with hashes of content, earlier runs, baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, delete, func, null, select

from ..base.lazy_dataclass import dataclass
from ..base.times import moment_of
from ..evaluators.results import Outcome
from ..project.entities import Baseline, Subject, name_key
from .columns import short_key
from .contract import Page, Snapshot
from .errors import NotFound
from .lists import SUBJECT_KEY, get_execution, one_row
from .pages import PageQuery
from .rows import AnyRow, SnapshotCache
from .schema import baselines, executions, outputs, runs
from .transaction import Transaction, now_ms

COST_ROLES = ("agent", "simulator", "judge")
_NUMBERS = ("modelUsage", "overallScore", "metrics")
_OF_FINDING = ("kind", "name", "success", "skipped", "error", "criterionName", "value")
_HASHES = ("scenario_snapshot", "persona_snapshot", "connector_snapshot", "case_hash")


class ContentHashes(NamedTuple):
    """What a run was made of."""

    scenario: str
    persona: str | None
    connector: str
    case: str | None


@dataclass(slots=True)
class StoredResult:
    """A run as a comparison reads it: no messages, its output as it was stored."""

    id: str
    names: tuple[str | None, ...]
    outcome: Outcome | None
    latency_ms: float | None
    total_tokens: int | None
    costs: tuple[float | None, ...]
    hashes: ContentHashes
    answer: str | None
    output: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """The runs of one subject over several executions, as far as they were made of the same."""

    names: tuple[str | None, ...]
    hashes: ContentHashes
    passed: int
    scored: int


_output = (
    select(outputs.c.output)
    .where(outputs.c.run_id == runs.c.id, outputs.c.attempt == runs.c.attempt)
    .scalar_subquery()
)
# Runs of an earlier version have no hash of their case; it is made from the case itself.
_unhashed = case((runs.c.case_hash.is_(None), runs.c.case), else_=null())
_RESULT_COLUMNS = [
    runs.c.id,
    *(runs.c[name] for name in Subject.model_fields),
    runs.c.outcome,
    runs.c.latency_ms,
    runs.c.total_tokens,
    *(runs.c[f"{role}_cost"] for role in COST_ROLES),
    *(runs.c[name] for name in _HASHES),
    runs.c.answer_hash,
    _unhashed.label("unhashed_case"),
    _output.label("output"),
]


def results_of(
    unit: Transaction,
    execution_id: str,
    *,
    connector: str | None = None,
    cursor: str | None = None,
    limit: int = 500,
    numbers_only: bool = False,
) -> Page[StoredResult]:
    """The runs of an execution, or those on one of its connectors, in pages of bounded size.

    With ``numbers_only`` their outputs without texts, which takes a fraction of the memory.
    """
    values = {"execution": execution_id, "connector": connector}
    query = _results_query(connector is not None, cursor is not None)
    items, following = query.read(unit, values, cursor, limit, _numbers_of if numbers_only else _result_of)
    return Page(list(items), following)


@lru_cache
def _results_query(of_connector: bool, after: bool) -> PageQuery:
    query = select(*_RESULT_COLUMNS).where(runs.c.execution_id == bindparam("execution"))
    if of_connector:
        query = query.where(runs.c.connector_id == bindparam("connector"))
    return PageQuery(query, runs.c.id, after=after)


def _result_of(row: AnyRow) -> StoredResult:
    unhashed = row.unhashed_case
    return StoredResult(
        row.id,
        _names(row),
        row.outcome,
        row.latency_ms,
        row.total_tokens,
        _costs(row),
        _hashes(row, Snapshot.of(unhashed).hash if unhashed else row.case_hash),
        row.answer_hash,
        row.output or {},
    )


def _numbers_of(row: AnyRow) -> StoredResult:
    result = _result_of(row)
    findings = result.output.get("evaluatorResults") or ()
    result.output = {name: result.output[name] for name in _NUMBERS if name in result.output}
    result.output["evaluatorResults"] = [{name: one.get(name) for name in _OF_FINDING} for one in findings]
    return result


_names: Callable[[AnyRow], tuple[str | None, ...]] = attrgetter(*Subject.model_fields)
_costs: Callable[[AnyRow], tuple[float | None, ...]] = attrgetter(*(f"{role}_cost" for role in COST_ROLES))


def _hashes(row: AnyRow, case_hash: str | None) -> ContentHashes:
    return ContentHashes(row.scenario_snapshot, row.persona_snapshot, row.connector_snapshot, case_hash)


def earlier_runs(unit: Transaction, execution_ids: Sequence[str]) -> list[EarlierRuns]:
    """Passed and scored runs of these executions by subject and content."""
    kept = [*Subject.model_fields, *_HASHES]
    columns = [runs.c[name] for name in dict.fromkeys((*SUBJECT_KEY, *kept))]
    passed = func.sum(case((runs.c.outcome == "pass", 1), else_=0)).label("passed")
    scored = (runs.c.execution_id.in_(execution_ids), runs.c.outcome.in_(("pass", "fail")))
    query = select(*columns, passed, func.count().label("scored")).where(*scored).group_by(*columns)
    return [
        EarlierRuns(_names(row), _hashes(row, row.case_hash), int(row.passed), row.scored)
        for row in unit.connection.execute(query)
    ]


def connectors_of(unit: Transaction, execution_id: str) -> dict[str, str]:
    """The connectors that an execution ran against, by id with their names."""
    query = select(runs.c.connector_id, func.max(runs.c.connector_name))
    query = query.where(runs.c.execution_id == execution_id, runs.c.connector_id.is_not(None))
    rows = unit.connection.execute(query.group_by(runs.c.connector_id).order_by(runs.c.connector_id))
    return {identity: name or identity for identity, name in rows}


def environment_of(unit: Transaction, execution_id: str) -> Mapping[str, Any] | None:
    """What an execution ran with; None of one that an earlier version made."""
    query = select(executions.c.environment).where(executions.c.id == execution_id)
    environment = unit.connection.execute(query).scalar_one_or_none()
    return None if environment is None else SnapshotCache().of(unit, [environment]).get(environment)


def snapshot_bodies(unit: Transaction, hashes: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Snapshots by their hashes; those that are damaged or gone are left out."""
    return SnapshotCache().of(unit, hashes)


def set_baseline(unit: Transaction, eval_id: str, name: str, execution_id: str) -> Baseline:
    """Make an execution the baseline of this name, in the place of another."""
    get_execution(unit, execution_id)
    key, moment = short_key(name_key(name)), now_ms()
    _delete(unit, eval_id, key)
    row = {"eval_id": eval_id, "name_key": key, "name": name, "execution_id": execution_id, "created": moment}
    unit.connection.execute(baselines.insert().values(row))
    return _read(one_row(unit, _one(eval_id, key), "baseline", name))


def get_baseline(unit: Transaction, eval_id: str, name: str) -> Baseline | None:
    row = unit.connection.execute(_one(eval_id, short_key(name_key(name)))).one_or_none()
    return None if row is None else _read(row)


def list_baselines(unit: Transaction, eval_id: str | None = None) -> list[Baseline]:
    query = select(baselines).order_by(baselines.c.eval_id, baselines.c.name_key)
    if eval_id is not None:
        query = query.where(baselines.c.eval_id == eval_id)
    return [_read(row) for row in unit.connection.execute(query)]


def remove_baseline(unit: Transaction, eval_id: str, name: str) -> None:
    if not _delete(unit, eval_id, short_key(name_key(name))) and not unit.again:
        raise NotFound("baseline", name)


def _one(eval_id: str, key: str) -> Any:
    return select(baselines).where(baselines.c.eval_id == eval_id, baselines.c.name_key == key)


def _delete(unit: Transaction, eval_id: str, key: str) -> int:
    own = (baselines.c.eval_id == eval_id, baselines.c.name_key == key)
    return unit.connection.execute(delete(baselines).where(*own)).rowcount


def _read(row: AnyRow) -> Baseline:
    return Baseline(
        eval_id=row.eval_id,
        name=row.name,
        execution_id=row.execution_id,
        created_at=moment_of(row.created),
    )
