"""Lists of runs and executions, newest first, what one of them holds, and their figures.

Lists read summaries. A cursor is the id of the last item seen: ids sort by the moment they were made, so
that a page stays where it is while new items arrive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Select, Table, Text, case, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from ..base.json_text import json_text
from ..conversation.definitions import Case
from ..evaluators.results import Finding, RunOutput, Turn, Verdict, with_later
from ..messages import Message, UnreadableItem, read_messages
from ..project.entities import Counts, Execution, Run, RunSummary, Subject, id_floor, name_key
from .attempts import FINAL_RESULTS
from .contract import (
    EVERYTHING,
    Filters,
    GroupedBy,
    Page,
    RepetitionCounts,
    RunGroup,
    Spending,
    Tally,
    cursor_after,
    read_cursor,
)
from .errors import NotFound
from .rows import RUN_COLUMNS, AnyRow, SnapshotCache, execution_of, run_fields, summary_of
from .schema import BAD, COUNTED, USED, Json, Plain, executions, messages, outputs, runs, scenarios, turns
from .transaction import Transaction

LARGEST_PAGE = 1000
LARGEST_PAGE_BYTES = 16_000_000
_OUTPUT = TypeAdapter(RunOutput)
_FINDINGS = TypeAdapter(list[Finding])
# What tells subjects apart in the table of runs; names may change.
SUBJECT_KEY = ("scenario_id", "scenario_name", "case_name", "persona_id", "connector_id")
_COSTS = ("agent_cost", "simulator_cost", "judge_cost")
T = TypeVar("T")


def paged(
    unit: Transaction,
    query: Select[Any],
    identity: ColumnElement[str],
    read: Callable[[AnyRow], T],
    cursor: str | None,
    limit: int,
) -> Page[T]:
    """One page of a query, newest first."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be between 1 and {LARGEST_PAGE}, not {limit}")
    if cursor is not None:
        query = query.where(identity < read_cursor(cursor))
    sizes = query.with_only_columns(identity, _size_of(query)).order_by(identity.desc()).limit(limit + 1)
    ids, more = _fitting(unit.connection.execute(sizes).all(), limit)
    whole = select(*query.selected_columns).where(identity.in_(ids)).order_by(identity.desc())
    rows: Sequence[AnyRow] = unit.connection.execute(whole).all() if ids else ()
    return Page([read(row) for row in rows], cursor_after(ids[-1]) if more else None)


def _size_of(query: Select[Any]) -> ColumnElement[int]:
    """About how many bytes a row has: the length of its texts and documents."""
    texts = [column for column in query.selected_columns if isinstance(column.type, Plain | Json)]
    return sum((func.coalesce(func.length(text), 0) for text in texts), literal(0)).label("size")


def _fitting(sizes: Sequence[AnyRow], limit: int) -> tuple[list[str], bool]:
    """The ids of the rows that make a page, at least one, and whether there are more."""
    total = 0
    for place, (_, size) in enumerate(sizes[:limit]):
        total += size
        if total > LARGEST_PAGE_BYTES and place:
            return [row[0] for row in sizes[:place]], True
    return [row[0] for row in sizes[:limit]], len(sizes) > limit


def one_row(unit: Transaction, query: Select[Any], kind: str, entity_id: str) -> AnyRow:
    """The row that a query by id finds."""
    row = unit.connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(kind, entity_id)
    return row


def in_period(identity: ColumnElement[str], filters: Filters) -> list[ColumnElement[bool]]:
    """The period as a range of ids, which needs no index of its own."""
    since = [] if filters.since is None else [identity >= id_floor(filters.since)]
    return since if filters.until is None else [*since, identity < id_floor(filters.until)]


def equal(table: Table, filters: Filters, *names: str) -> list[ColumnElement[bool]]:
    values = ((name, getattr(filters, name)) for name in names)
    return [table.c[name] == value for name, value in values if value is not None]


def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    return column.contains(name_key(text), autoescape=True)


def tagged(tags: Sequence[str]) -> list[ColumnElement[bool]]:
    """Scenarios with all of these tags."""
    return [contains(cast(ColumnElement[str], scenarios.c.tags), json_text(name_key(tag))) for tag in tags]


def run_conditions(filters: Filters) -> list[Any]:
    conditions: list[Any] = in_period(runs.c.id, filters)
    narrowed = ("eval_id", "execution_id", "scenario_id", "connector_id", "persona_id", "case_name")
    conditions += equal(runs, filters, *narrowed)
    outcome = filters.outcome
    if filters.status == "error":
        outcome = outcome or "error"
    if filters.status is not None:
        conditions.append(runs.c.status == filters.status)
    if outcome in ("fail", "error"):
        # Written out as the index is, or SQLite does not recognise that it may use it.
        conditions += [BAD, runs.c.outcome == literal(outcome, literal_execute=True)]
    elif outcome is not None:
        conditions.append(runs.c.outcome == outcome)
    if filters.text:
        conditions.append(contains(runs.c.name_key, filters.text))
    if filters.whole:
        conditions.append(runs.c.execution_id.in_(select(executions.c.id).where(*WHOLE)))
    if filters.tags:
        conditions.append(runs.c.scenario_id.in_(select(scenarios.c.id).where(*tagged(filters.tags))))
    return conditions


def list_runs(
    unit: Transaction, filters: Filters = EVERYTHING, *, cursor: str | None = None, limit: int = 50
) -> Page[RunSummary]:
    query = select(*RUN_COLUMNS).where(*run_conditions(filters))
    return paged(unit, query, runs.c.id, summary_of, cursor, limit)


def execution_conditions(filters: Filters) -> list[Any]:
    conditions: list[Any] = [executions.c.deleting.is_(False), *in_period(executions.c.id, filters)]
    conditions += equal(executions, filters, "eval_id", "status")
    conditions += [labelled(label) for label in filters.labels]
    if filters.whole:
        conditions += WHOLE
    if filters.execution_id is not None:
        conditions.append(executions.c.id == filters.execution_id)
    if filters.text:
        conditions.append(contains(executions.c.name_key, filters.text))
    return conditions


WHOLE = (executions.c.partial.is_(None), executions.c.replayed.is_(False))


class _LabelText(FunctionElement[str]):
    """The value of a label as text, whatever characters its key has."""

    inherit_cache = True
    type = Text()


@compiles(_LabelText, "sqlite")
def _label_in_sqlite(element: _LabelText, compiler: Any, **more: Any) -> str:  # pyright: ignore[reportUnusedFunction] - SQLAlchemy calls it
    document, key = (compiler.process(part, **more) for part in element.clauses)
    text = "CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(value AS TEXT) END"
    readable = f"CASE WHEN json_valid({document}) THEN {document} ELSE '{{}}' END"
    return f"(SELECT {text} FROM json_each({readable}) WHERE key = {key})"


@compiles(_LabelText, "postgresql")
def _label_in_postgres(element: _LabelText, compiler: Any, **more: Any) -> str:  # pyright: ignore[reportUnusedFunction] - SQLAlchemy calls it
    document, key = (compiler.process(part, **more) for part in element.clauses)
    # PostgreSQL cannot take such a character out of JSON; a label that has one must not break the others.
    readable = f"position('\\u0000' in {document}) = 0"
    return f"CASE WHEN {readable} THEN CAST({document} AS json) ->> CAST({key} AS text) END"


def labelled(label: str) -> ColumnElement[bool]:
    """Executions with this ``key=value`` among their labels, or with any value of this ``key``."""
    key, given, value = label.partition("=")
    text: ColumnElement[str] = cast(Any, _LabelText(executions.c.labels, literal(key, Plain())))
    return text == literal(value, Plain()) if given else text.is_not(None)


def list_executions(
    unit: Transaction, filters: Filters = EVERYTHING, *, cursor: str | None = None, limit: int = 50
) -> Page[Execution]:
    query = select(executions).where(*execution_conditions(filters))
    return paged(unit, query, executions.c.id, execution_of, cursor, limit)


def get_execution(unit: Transaction, execution_id: str) -> Execution:
    visible = (executions.c.id == execution_id, executions.c.deleting.is_(False))
    return execution_of(one_row(unit, select(executions).where(*visible), "execution", execution_id))


def get_run(unit: Transaction, run_id: str, *, attempt: int | None = None) -> Run:
    """A run with all that was said, of its current attempt or an earlier one."""
    row = one_row(unit, select(*RUN_COLUMNS, runs.c.case).where(runs.c.id == run_id), "run", run_id)
    number = row.attempt if attempt is None else attempt
    if not 1 <= number <= row.attempt:
        raise NotFound("attempt", f"{number} of run {run_id}; there are {row.attempt}")
    fields: dict[str, Any] = run_fields(row) | {"attempt": number}
    run_turns = _turns(unit, run_id, number)
    output, verdict = _output(unit, run_id, number, run_turns)
    if number != row.attempt:
        error = verdict.reason if verdict is not None and verdict.outcome == "error" else None
        fields |= {"result": verdict, "status": "error" if error else "completed", "error": error}
    return Run.model_construct(
        **fields,
        case=None if row.case is None else Case.model_validate(row.case),
        messages=[message for turn in run_turns for message in turn.all_messages],
        turns=run_turns,
        output=output,
    )


def runs_with_outputs(
    unit: Transaction, execution_id: str, *, after: str = "", limit: int = 200
) -> list[tuple[RunSummary, RunOutput | None]]:
    """Runs of an execution, the oldest first and from one on, with what they came to in detail."""
    attempt = (outputs.c.run_id == runs.c.id) & (outputs.c.attempt == runs.c.attempt)
    query = select(*RUN_COLUMNS, outputs.c.output).select_from(runs.outerjoin(outputs, attempt))
    query = query.where(runs.c.execution_id == execution_id, runs.c.id > after).order_by(runs.c.id)
    rows = unit.connection.execute(query.limit(limit)).all()
    return [(summary_of(row), _read_output(row.output)) for row in rows]


def _read_output(output: dict[str, Any] | None) -> RunOutput | None:
    if output is None:
        return None
    output.pop(FINAL_RESULTS, None)
    return _OUTPUT.validate_python(output)


def _output(
    unit: Transaction, run_id: str, attempt: int, run_turns: Sequence[Turn]
) -> tuple[RunOutput | None, Verdict | None]:
    query = select(outputs).where(outputs.c.run_id == run_id, outputs.c.attempt == attempt)
    row = unit.connection.execute(query).one_or_none()
    if row is None:
        return None, None
    final = _FINDINGS.validate_python(row.output.pop(FINAL_RESULTS, []))
    if run_turns:
        run_turns[-1].results = with_later(run_turns[-1].results, final)
    return _OUTPUT.validate_python(row.output), Verdict.model_validate(row.result)


def _turns(unit: Transaction, run_id: str, attempt: int) -> list[Turn]:
    """The turns of an attempt with what was said in them; turn 0 is what was said before the first."""

    def rows(table: Table, *order: str) -> Iterable[AnyRow]:
        query = select(table.c.turn, table.c.body)
        query = query.where(table.c.run_id == run_id, table.c.attempt == attempt)
        return unit.connection.execute(query.order_by(*(table.c[name] for name in order)))

    spoken: dict[int, list[Message]] = defaultdict(list)
    for row in rows(messages, "turn", "position"):
        spoken[row.turn] += _stored(row.body)
    run_turns = [Turn.model_validate(row.body) for row in rows(turns, "turn")]
    for turn in run_turns:
        turn.messages = spoken[turn.number]
        turn.message_count = len(turn.messages)
        if turn.number > 0 and turn.messages and turn.messages[0].role == "user":
            turn.user_message, *turn.messages = turn.messages
    return run_turns


def _stored(body: Mapping[str, Any]) -> list[Message]:
    """A stored message. One that an earlier version kept in a shape that is refused now stays as it is."""
    try:
        return read_messages([body], roles=None)
    except UnreadableItem:
        return [Message.unread(body)]


def get_snapshots(unit: Transaction, run_id: str) -> dict[str, Mapping[str, Any] | None]:
    """The scenario, persona and connector of a run as they were."""
    kinds = ("scenario", "persona", "connector")
    query = select(*(runs.c[f"{kind}_snapshot"].label(kind) for kind in kinds)).where(runs.c.id == run_id)
    row = one_row(unit, query, "run", run_id)
    bodies = SnapshotCache().of(unit, row)
    return {kind: bodies.get(getattr(row, kind)) for kind in kinds}


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
    """Runs by scenario, persona or connector."""
    identity = runs.c[f"{by}_id"]
    name = func.max(runs.c[f"{by}_name"]).label("name")
    query = select(identity.label("id"), name, *_counts(), *_figures()).where(*run_conditions(filters))
    rows = unit.connection.execute(query.group_by(identity).order_by(identity)).all()
    clusters = _clusters(unit, identity, run_conditions(filters))
    return [_tally(row.id, row.name, row, row, clusters[row.id]) for row in rows]


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
    found: defaultdict[str | None, dict[RepetitionCounts, int]] = defaultdict(dict)
    for row in unit.connection.execute(query):
        repetitions = RepetitionCounts(int(row.passed), int(row.failed), int(row.errored))
        found[row.id][repetitions] = row.subjects
    return found


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
    """What is known of the cost of all roles; None where nothing is."""
    known = [value for name in _COSTS if (value := getattr(figures, name)) is not None]
    return sum(known) if known else None


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
