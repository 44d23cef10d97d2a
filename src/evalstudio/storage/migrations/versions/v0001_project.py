"""Definitions, executions with their runs, and events."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Integer, text

from evalstudio.storage.columns import Id, Json, Key, Plain
from evalstudio.storage.migrations import operations as op

revision = "0001"
down_revision = None

_COUNTED = ("total", "queued", "running", "passed", "failed", "errored", "cancelled", "unasserted")


def _moment(name: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger, **options)


def upgrade() -> None:
    _definitions("personas")
    _definitions("scenarios", Column("tags", Plain, nullable=False))
    _definitions("connectors")
    _definitions("evals")
    op.create_table(
        "snapshots",
        Column("hash", Id, primary_key=True),
        _moment("used", nullable=False),
        Column("body", Plain, nullable=False),
    )
    _executions()
    _runs()
    _attempts()
    op.create_table(
        "events",
        Column("id", Key, primary_key=True, autoincrement=True),
        Column("kind", Id, nullable=False),
        Column("execution_id", Id),
        Column("run_id", Id),
        _moment("at", nullable=False),
        Column("body", Json, nullable=False),
        sqlite_autoincrement=True,
    )


def _definitions(name: str, *more: Column[str]) -> None:
    op.create_table(
        name,
        Column("id", Id, primary_key=True),
        Column("name", Plain, nullable=False),
        Column("name_key", Plain, nullable=False, unique=True),
        Column("version", Integer, nullable=False),
        _moment("created", nullable=False),
        _moment("updated", nullable=False),
        *more,
        Column("document", Json, nullable=False),
    )


def _executions() -> None:
    op.create_table(
        "executions",
        Column("id", Id, primary_key=True),
        Column("eval_id", Id),
        Column("eval_name", Plain),
        Column("name_key", Plain, nullable=False),
        Column("status", Id, nullable=False),
        Column("cancelling", Boolean, nullable=False),
        Column("deleting", Boolean, nullable=False),
        *(Column(name, Integer, nullable=False) for name in _COUNTED),
        _moment("created", nullable=False),
        _moment("updated", nullable=False),
        _moment("started"),
        _moment("completed"),
        Column("trigger", Plain),
        Column("labels", Json, nullable=False),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        Column("id", Id, primary_key=True),
        Column("execution_id", Id, ForeignKey("executions.id"), nullable=False),
        Column("status", Id, nullable=False),
        Column("outcome", Id),
        Column("attempt", Integer, nullable=False),
        Column("losses", Integer, nullable=False),
        _moment("queued", nullable=False),
        Column("worker_id", Id),
        _moment("lease_until"),
        Column("eval_id", Id),
        Column("scenario_id", Id),
        Column("persona_id", Id),
        Column("connector_id", Id),
        Column("scenario_name", Plain, nullable=False),
        Column("persona_name", Plain),
        Column("connector_name", Plain),
        Column("case_name", Plain),
        Column("name_key", Plain, nullable=False),
        Column("repetition", Integer, nullable=False),
        _moment("created", nullable=False),
        _moment("updated", nullable=False),
        _moment("started"),
        _moment("completed"),
        Column("latency_ms", Float(53)),
        Column("total_tokens", BigInteger),
        Column("turn_count", Integer, nullable=False),
        Column("fault", Id),
        Column("score", Float(53)),
        Column("overall_score", Float(53)),
        Column("asserted", Boolean),
        Column("thread_id", Plain),
        Column("scenario_snapshot", Id, nullable=False),
        Column("persona_snapshot", Id),
        Column("connector_snapshot", Id, nullable=False),
        Column("reason", Plain),
        Column("error", Plain),
        Column("case", Json),
    )
    for owner in ("execution", "eval", "scenario", "persona", "connector"):
        op.create_index(f"runs_by_{owner}", "runs", [f"{owner}_id", "id"])
    waiting = ["queued", "id", "connector_id", "execution_id"]
    _partial_index("runs_waiting", waiting, "status = 'queued'")
    _partial_index("runs_held", ["lease_until"], "status = 'running'")
    _partial_index("runs_bad", ["outcome", "id"], "outcome in ('fail', 'error')")


def _partial_index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "runs", columns, sqlite_where=text(where), postgresql_where=text(where))


def _attempts() -> None:
    for name, parts in (("turns", ["turn"]), ("messages", ["turn", "position"])):
        op.create_table(
            name,
            Column("run_id", Id, ForeignKey("runs.id"), primary_key=True),
            *(Column(part, Integer, primary_key=True, autoincrement=False) for part in ["attempt", *parts]),
            Column("body", Json, nullable=False),
        )
    op.create_table(
        "outputs",
        Column("run_id", Id, ForeignKey("runs.id"), primary_key=True),
        Column("attempt", Integer, primary_key=True, autoincrement=False),
        Column("result", Json, nullable=False),
        Column("output", Json, nullable=False),
    )
