"""``unasserted`` becomes an outcome of its own; until now it was a pass with a flag beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from sqlalchemy import Boolean, ColumnElement, Integer, Text, column, select, table, tuple_, update

from evalstudio.storage.migrations import operations as op

revision = "0003"
down_revision = "0002"

_BATCH = 500
# The metrics there were: their results are in a recorded evaluation beside those of assertions.
_METRICS = frozenset(
    {"sentiment", "Sentiment", "tool-call-count", "token-usage", "response-length", "latency"}
)

_runs = table("runs", column("outcome", Text), column("asserted", Boolean))
_executions = table("executions", column("passed", Integer), column("unasserted", Integer))
_outputs = table("outputs", column("run_id", Text), column("attempt", Integer), column("result", Text))
_events = table("events", column("id", Integer), column("kind", Text), column("body", Text))
_evaluations = table("evaluations", column("id", Text), column("outcome", Text), column("body", Text))

Change = Callable[[dict[str, Any]], dict[str, Any] | None]


def upgrade() -> None:
    op.execute(
        update(_runs)
        .where(_runs.c.outcome == "pass", _runs.c.asserted.is_(False))
        .values(outcome="unasserted")
    )
    op.execute(update(_executions).values(passed=_executions.c.passed - _executions.c.unasserted))
    _rewrite(_outputs, ("run_id", "attempt"), "result", _mentions_flag(_outputs.c.result), _flagged)
    finished = (_events.c.kind == "run.finished") & _mentions_flag(_events.c.body)
    _rewrite(_events, ("id",), "body", finished, _flagged)
    passed = _evaluations.c.outcome == "pass"
    _rewrite(_evaluations, ("id",), "body", passed, _recorded, outcome="unasserted")
    op.drop_column("runs", "asserted")


def _mentions_flag(document: ColumnElement[str]) -> ColumnElement[bool]:
    return document.contains('"asserted":false')


def _rewrite(
    rows: Any, keys: tuple[str, ...], document: str, where: ColumnElement[bool], change: Change, **also: str
) -> None:
    """Change documents one batch after the other: a database may be larger than memory."""
    connection, identity = op.get_bind(), [rows.c[key] for key in keys]
    query = select(*identity, rows.c[document]).where(where).order_by(*identity).limit(_BATCH)
    batch = connection.execute(query).all()
    while batch:
        for *key, text in batch:
            changed = change(orjson.loads(text))
            if changed is not None:
                values = {document: orjson.dumps(changed).decode(), **also}
                own = (one == value for one, value in zip(identity, key, strict=True))
                connection.execute(update(rows).where(*own).values(values))
        last = tuple(batch[-1])[:-1]
        batch = connection.execute(query.where(tuple_(*identity) > tuple_(*last))).all()


def _flagged(verdict: dict[str, Any]) -> dict[str, Any] | None:
    if verdict.get("outcome") != "pass" or verdict.pop("asserted", True):
        return None
    return _unasserted(verdict)


def _recorded(result: dict[str, Any]) -> dict[str, Any] | None:
    """A recorded evaluation had no flag: its results say whether any of them is an assertion's."""
    measured: dict[str, Any] = result.get("metrics") or {}
    asserted = any(_asserts(one, measured) for one in result.get("results") or ())
    return None if asserted else _unasserted(result)


def _asserts(result: dict[str, Any], measured: dict[str, Any]) -> bool:
    metric = result.get("evaluatorType") in _METRICS or result.get("criterionName") in measured
    return not (metric or result.get("skipped"))


def _unasserted(verdict: dict[str, Any]) -> dict[str, Any]:
    changed = verdict | {"outcome": "unasserted"}
    return changed | {"success": False} if "success" in verdict else changed
