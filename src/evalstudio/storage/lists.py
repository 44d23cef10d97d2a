"""Lists of runs and executions, newest first, what one of them holds, and their figures.

Lists read summaries. A cursor is the id of the last item seen: ids sort by the moment they were made, so
that a page stays where it is while new items arrive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

import orjson
from pydantic import ConfigDict, TypeAdapter
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    Table,
    bindparam,
    func,
    literal_column,
    select,
)

from ..base.constructed import constructed
from ..base.json_text import json_text
from ..conversation.definitions import Case
from ..evaluators.results import Finding, RunOutput, Turn, Verdict, with_later
from ..messages import Message, UnreadableItem, read_messages
from ..project.entities import Execution, Run, RunSummary, id_floor, name_key
from .attempts import FINAL_RESULTS
from .columns import Id
from .contract import EVERYTHING, Filters, Page, cursor_after, read_cursor
from .errors import NotFound
from .labels import labelled
from .pages import PageQuery, RowsQuery
from .prepared import Prepared
from .rows import (
    RUN_COLUMNS,
    AnyRow,
    SnapshotCache,
    execution_json,
    execution_of,
    run_fields,
    summary_json,
    summary_of,
)
from .run_search import looks_inside, search_runs
from .schema import BAD, OPEN, OPEN_STATUSES, executions, messages, outputs, runs, scenarios, turns
from .transaction import Transaction

_OUTPUT = TypeAdapter(RunOutput)
_NUMBERS = ("metrics", "criterionScores")
_FINDINGS = TypeAdapter(list[Finding], config=ConfigDict(defer_build=True))
# What tells subjects apart in the table of runs; names may change.
SUBJECT_KEY = ("scenario_id", "scenario_name", "case_name", "persona_id", "connector_id")
# Filters whose values become parameters, so that the same statement serves all of their values.
_COMPARED = ("eval_id", "execution_id", "scenario_id", "connector_id", "persona_id")
_MOMENTS = ("since", "until")
# Each with an index of its own; the first that is given leads to the fewest runs.
_OWNERS = ("execution_id", "scenario_id", "connector_id", "persona_id", "eval_id")
# So many runs are looked at for one page where no index leads to those that match.
MOST_SCANNED = 100_000
# Words of our own as they stand in the text of a statement.
_WRITTEN_OUT: dict[str, ColumnElement[Any]] = {
    word: literal_column(f"'{word}'") for word in (*OPEN_STATUSES, "fail", "error", "live")
}


def one_row(unit: Transaction, query: Select[Any], kind: str, entity_id: str) -> AnyRow:
    """The row that a query by id finds."""
    row = unit.connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(kind, entity_id)
    return row


def in_period(identity: ColumnElement[str], filters: Filters) -> list[ColumnElement[bool]]:
    """The period as a range of ids, which needs no index of its own."""
    since = [] if filters.since is None else [identity >= _floor(filters.since)]
    return since if filters.until is None else [*since, identity < _floor(filters.until)]


def _floor(moment: datetime | BindParameter[str]) -> str | BindParameter[str]:
    return id_floor(moment) if isinstance(moment, datetime) else moment


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
    conditions += equal(runs, filters, *_COMPARED, "case_name")
    conditions += equal(runs, filters, "fault")
    outcome = filters.outcome
    if filters.status == "error":
        outcome = outcome or "error"
    # Written out as the indexes are, or SQLite does not recognise that it may use them.
    if filters.status in OPEN_STATUSES:
        conditions += [OPEN, runs.c.status == _WRITTEN_OUT[filters.status]]
    elif filters.status is not None:
        conditions.append(runs.c.status == filters.status)
    if outcome in ("fail", "error"):
        conditions += [BAD, runs.c.outcome == _WRITTEN_OUT[outcome]]
    elif outcome is not None:
        conditions.append(runs.c.outcome == outcome)
    if filters.text:
        conditions.append(contains(runs.c.name_key, filters.text))
    if filters.whole:
        conditions.append(runs.c.execution_id.in_(select(executions.c.id).where(*WHOLE)))
    if filters.labels:
        same = select(executions.c.id).where(*(labelled(label) for label in filters.labels))
        conditions.append(runs.c.execution_id.in_(same))
    if filters.tags:
        conditions.append(runs.c.scenario_id.in_(select(scenarios.c.id).where(*tagged(filters.tags))))
    return conditions


@lru_cache(256)
def _run_pages(shape: Filters, names: tuple[str, ...], after: bool, bounded: bool) -> PageQuery:
    query = select(*RUN_COLUMNS).where(*run_conditions(_with_parameters(shape, names)))
    if bounded:
        query = query.where(runs.c.id >= bindparam("floor", type_=Id()))
    return PageQuery(query, runs.c.id, after=after)


def _run_rows(
    unit: Transaction, filters: Filters, cursor: str | None, limit: int
) -> tuple[Sequence[AnyRow], str | None]:
    """The rows of a page. It may end early, with a cursor, where too many runs would be looked at for it."""
    shape, values = _parameters(filters)
    floor = None if _has_index(shape, values) else _last_looked_at(unit, values, cursor)
    pages = _run_pages(shape, tuple(values), cursor is not None, floor is not None)
    rows, following = pages.read(unit, values if floor is None else {**values, "floor": floor}, cursor, limit)
    return rows, following if floor is None else following or cursor_after(floor)


def _has_index(shape: Filters, values: Mapping[str, Any]) -> bool:
    """Whether an index leads to the runs that match, so that no others are looked at."""
    owners = sum(name in values for name in _OWNERS)
    if owners:
        return owners == 1 and shape == EVERYTHING
    return shape == EVERYTHING or shape in _INDEXED


_INDEXED = (
    *(Filters(status=status) for status in OPEN_STATUSES),
    *(Filters(outcome=outcome) for outcome in ("fail", "error")),
)


# Rows are numbered as they come, so that this is at least how many there are.
_NEWEST_ROW = Prepared(select(func.coalesce(func.max(literal_column("rowid", Integer)), 0)).select_from(runs))


@lru_cache(64)
def _floors(names: tuple[str, ...], after: bool) -> Select[Any]:
    query = select(runs.c.id).where(*run_conditions(_with_parameters(EVERYTHING, names)))
    if after:
        query = query.where(runs.c.id < bindparam("after", type_=Id()))
    return query.order_by(runs.c.id.desc()).limit(1).offset(bindparam("passed", type_=Integer))


def _last_looked_at(unit: Transaction, values: Mapping[str, Any], cursor: str | None) -> str | None:
    """The last run to look at for a page, of those that one index leads to; none where all of them may be.

    SQLite knows that they are few without counting them, and is spared the walk along the index.
    """
    if not unit.is_postgres and (row := _NEWEST_ROW.first_row(unit, {})) and row[0] <= MOST_SCANNED:
        return None
    owner = next((name for name in _OWNERS if name in values), None)
    leading = {name: value for name, value in values.items() if name == owner or name in _MOMENTS}
    query = _floors(tuple(leading), cursor is not None)
    leading["passed"] = MOST_SCANNED - 1
    if cursor is not None:
        leading["after"] = read_cursor(cursor)
    return unit.connection.execute(query, leading).scalar()


def list_runs(
    unit: Transaction, filters: Filters = EVERYTHING, *, cursor: str | None = None, limit: int = 50
) -> Page[RunSummary]:
    if looks_inside(filters):
        return search_runs(unit, filters, run_conditions(filters), cursor, limit)
    rows, following = _run_rows(unit, filters, cursor, limit)
    return Page([summary_of(row) for row in rows], following)


def run_page_json(unit: Transaction, filters: Filters, *, cursor: str | None, limit: int) -> bytes:
    """``list_runs`` as the JSON of a page; making entities on the way would cost more than all the rest."""
    if looks_inside(filters):
        page = list_runs(unit, filters, cursor=cursor, limit=limit)
        items = [run.model_dump(mode="json", by_alias=True) for run in page.items]
        return orjson.dumps({"items": items, "cursor": page.cursor})
    rows, following = _run_rows(unit, filters, cursor, limit)
    return orjson.dumps({"items": [summary_json(row) for row in rows], "cursor": following})


def _parameters(filters: Filters) -> tuple[Filters, dict[str, Any]]:
    """What remains of the filters as the shape of a statement, and the values of its parameters."""
    values: dict[str, Any] = {}
    for name in (*_COMPARED, *_MOMENTS):
        if (value := getattr(filters, name)) is not None:
            values[name] = id_floor(value) if name in _MOMENTS else value
    parts = {"tags": tuple(filters.tags), "labels": tuple(filters.labels)}
    return replace(filters, **parts, **dict.fromkeys(values)), values


def _with_parameters(shape: Filters, names: tuple[str, ...]) -> Filters:
    return replace(shape, **{name: cast(Any, bindparam(name, type_=Id())) for name in names})


def execution_conditions(filters: Filters) -> list[Any]:
    conditions: list[Any] = [executions.c.deleting.is_(False), *in_period(executions.c.id, filters)]
    conditions += equal(executions, filters, "eval_id", "status", "source", "rescored_from")
    conditions += [labelled(label) for label in filters.labels]
    if filters.whole:
        conditions += WHOLE
    if filters.execution_id is not None:
        conditions.append(executions.c.id == filters.execution_id)
    if filters.text:
        conditions.append(contains(executions.c.name_key, filters.text))
    return conditions


WHOLE = (
    executions.c.partial.is_(None),
    executions.c.replayed.is_(False),
    executions.c.source == _WRITTEN_OUT["live"],
)


@lru_cache(256)
def _execution_pages(shape: Filters, names: tuple[str, ...], after: bool) -> PageQuery:
    query = select(executions).where(*execution_conditions(_with_parameters(shape, names)))
    return PageQuery(query, executions.c.id, after=after)


def _execution_rows(
    unit: Transaction, filters: Filters, cursor: str | None, limit: int
) -> tuple[Sequence[AnyRow], str | None]:
    shape, values = _parameters(filters)
    return _execution_pages(shape, tuple(values), cursor is not None).read(unit, values, cursor, limit)


def list_executions(
    unit: Transaction, filters: Filters = EVERYTHING, *, cursor: str | None = None, limit: int = 50
) -> Page[Execution]:
    rows, following = _execution_rows(unit, filters, cursor, limit)
    return Page([execution_of(row) for row in rows], following)


def execution_page_json(unit: Transaction, filters: Filters, *, cursor: str | None, limit: int) -> bytes:
    """``list_executions`` as the JSON of a page."""
    rows, following = _execution_rows(unit, filters, cursor, limit)
    return orjson.dumps({"items": [execution_json(row) for row in rows], "cursor": following})


def get_execution(unit: Transaction, execution_id: str) -> Execution:
    visible = (executions.c.id == execution_id, executions.c.deleting.is_(False))
    return execution_of(one_row(unit, select(executions).where(*visible), "execution", execution_id))


def _of_attempt(table: Table, *columns: str, order: Sequence[str]) -> RowsQuery:
    query = select(*(table.c[name] for name in columns)).order_by(*(table.c[name] for name in order))
    return RowsQuery(query.where(table.c.run_id == bindparam("run"), table.c.attempt == bindparam("number")))


_RUN = RowsQuery(select(*RUN_COLUMNS, runs.c.case).where(runs.c.id == bindparam("run")))
_TURNS_OF = _of_attempt(turns, "turn", "body", order=["turn"])
_MESSAGES_OF = _of_attempt(messages, "turn", "position", "body", order=["turn", "position"])
_OUTPUT_OF = _of_attempt(outputs, "result", "output", order=[])


def get_run(unit: Transaction, run_id: str, *, attempt: int | None = None) -> Run:
    """A run with all that was said, of its current attempt or an earlier one."""
    row = next(iter(_RUN.all(unit, {"run": run_id})), None)
    if row is None:
        raise NotFound("run", run_id)
    number = row.attempt if attempt is None else attempt
    if not 1 <= number <= row.attempt:
        raise NotFound("attempt", f"{number} of run {run_id}; there are {row.attempt}")
    fields: dict[str, Any] = run_fields(row) | {"attempt": number}
    run_turns = _turns(unit, run_id, number)
    output, verdict = _output(unit, run_id, number, run_turns)
    if number != row.attempt:
        error = verdict.reason if verdict is not None and verdict.outcome == "error" else None
        fields |= {"result": verdict, "status": "error" if error else "completed", "error": error}
    fields |= {
        "case": None if row.case is None else Case.model_validate(row.case),
        "messages": [message for turn in run_turns for message in turn.all_messages],
        "turns": run_turns,
        "output": output,
    }
    return constructed(Run, {name: fields[name] for name in Run.model_fields})


def run_json(unit: Transaction, run_id: str, *, attempt: int | None = None) -> str:
    """``get_run`` as JSON."""
    return get_run(unit, run_id, attempt=attempt).model_dump_json(by_alias=True)


def runs_with_outputs(
    unit: Transaction, execution_id: str, *, after: str = "", limit: int = 200, findings: bool = True
) -> list[tuple[RunSummary, RunOutput | None]]:
    """Runs of an execution, the oldest first and from one on, with what they came to in detail.

    Without ``findings`` of that only the numbers, which is several times faster.
    """
    output_of = _read_output if findings else _read_numbers
    values = {"execution": execution_id, "after": after, "most": limit}
    return list(_WITH_OUTPUTS.all(unit, values, lambda row: (summary_of(row), output_of(row.output))))


_WITH_OUTPUTS = RowsQuery(
    select(*RUN_COLUMNS, outputs.c.output)
    .select_from(
        runs.outerjoin(outputs, (outputs.c.run_id == runs.c.id) & (outputs.c.attempt == runs.c.attempt))
    )
    .where(runs.c.execution_id == bindparam("execution"), runs.c.id > bindparam("after"))
    .order_by(runs.c.id)
    .limit(bindparam("most", type_=Integer)),
    bounded=True,
)


def _read_numbers(output: dict[str, Any] | None) -> RunOutput | None:
    if output is None:
        return None
    return _OUTPUT.validate_python({name: output[name] for name in _NUMBERS if name in output})


def _read_output(output: dict[str, Any] | None) -> RunOutput | None:
    if output is None:
        return None
    output.pop(FINAL_RESULTS, None)
    return _OUTPUT.validate_python(output)


def _output(
    unit: Transaction, run_id: str, attempt: int, run_turns: Sequence[Turn]
) -> tuple[RunOutput | None, Verdict | None]:
    row = next(iter(_OUTPUT_OF.all(unit, {"run": run_id, "number": attempt})), None)
    if row is None:
        return None, None
    final = _FINDINGS.validate_python(row.output.pop(FINAL_RESULTS, []))
    if run_turns:
        run_turns[-1].results = with_later(run_turns[-1].results, final)
    return _OUTPUT.validate_python(row.output), Verdict.model_validate(row.result)


def _turns(unit: Transaction, run_id: str, attempt: int) -> list[Turn]:
    """The turns of an attempt with what was said in them; turn 0 is what was said before the first."""

    of_attempt = {"run": run_id, "number": attempt}
    spoken: dict[int, list[Message]] = defaultdict(list)
    for row in _MESSAGES_OF.all(unit, of_attempt):
        spoken[row.turn] += _stored(row.body)
    run_turns = [Turn.model_validate(row.body) for row in _TURNS_OF.all(unit, of_attempt)]
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
