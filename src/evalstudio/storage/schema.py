"""The tables, in column types that mean the same on both databases.

What is written here is what the migrations make; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    TextClause,
    false,
    text,
)

from .columns import Id, Json, Key, Plain, moment

HEAD = "0013"
COUNTED = ("total", "queued", "running", "passed", "failed", "errored", "cancelled", "unasserted")
# What a run used beside its agent's tokens; empty means that it is not known.
USED = ("simulator_tokens", "judge_tokens", "agent_cost", "simulator_cost", "judge_cost")
VERDICT = ("outcome", "fault", "score", "overall_score", "reason")

metadata = MetaData()


def _definitions(name: str, *more: Column[str]) -> Table:
    return Table(
        name,
        metadata,
        Column("id", Id, primary_key=True),
        Column("name", Plain, nullable=False),
        Column("name_key", Plain, nullable=False, unique=True),
        Column("version", Integer, nullable=False),
        moment("created", nullable=False),
        moment("updated", nullable=False),
        *more,
        Column("document", Json, nullable=False),
    )


personas = _definitions("personas")
scenarios = _definitions("scenarios", Column("tags", Plain, nullable=False))
connectors = _definitions("connectors")
evals = _definitions("evals")
monitors = _definitions("monitors")

snapshots = Table(
    "snapshots",
    metadata,
    Column("hash", Id, primary_key=True),
    moment("used", nullable=False),
    Column("body", Plain, nullable=False),
)

executions = Table(
    "executions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("eval_id", Id),
    Column("eval_name", Plain),
    Column("name_key", Plain, nullable=False),
    Column("status", Id, nullable=False),
    Column("cancelling", Boolean, nullable=False),
    Column("deleting", Boolean, nullable=False),
    *(Column(name, Integer, nullable=False) for name in COUNTED),
    moment("created", nullable=False),
    moment("updated", nullable=False),
    moment("started"),
    moment("completed"),
    Column("trigger", Plain),
    Column("labels", Json, nullable=False),
    Column("partial", Plain),
    Column("replayed", Boolean, nullable=False, server_default=false()),
    Column("environment", Id),
    Column("requirements", Json),
    Column("budget", Json),
    Column("source", Id, nullable=False, server_default="live"),
    Column("rescored_from", Id),
    Column("until_decided", Integer),
    Column("agent_errors", Id, nullable=False, server_default="error"),
)

baselines = Table(
    "baselines",
    metadata,
    Column("eval_id", Id, primary_key=True),
    Column("name_key", Id, primary_key=True),
    Column("name", Plain, nullable=False),
    Column("execution_id", Id, ForeignKey("executions.id"), nullable=False),
    moment("created", nullable=False),
)
Index("baselines_by_execution", baselines.c.execution_id)

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("execution_id", Id, ForeignKey("executions.id"), nullable=False),
    Column("status", Id, nullable=False),
    Column("outcome", Id),
    Column("attempt", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    moment("queued", nullable=False),
    Column("worker_id", Id),
    moment("lease_until"),
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
    moment("created", nullable=False),
    moment("updated", nullable=False),
    moment("started"),
    moment("completed"),
    Column("latency_ms", Float(53)),
    Column("total_tokens", BigInteger),
    Column("turn_count", Integer, nullable=False),
    Column("fault", Id),
    Column("score", Float(53)),
    Column("overall_score", Float(53)),
    Column("thread_id", Plain),
    Column("scenario_snapshot", Id, nullable=False),
    Column("persona_snapshot", Id),
    Column("connector_snapshot", Id, nullable=False),
    Column("reason", Plain),
    Column("error", Plain),
    Column("case", Json),
    Column("case_hash", Id),
    Column("answer_hash", Id),
    Column("simulator_tokens", BigInteger),
    Column("judge_tokens", BigInteger),
    Column("agent_cost", Float(53)),
    Column("simulator_cost", Float(53)),
    Column("judge_cost", Float(53)),
)


def _partial(name: str, *columns: Column[Any], where: TextClause) -> None:
    """An index over some rows. PostgreSQL is told which by ``for_postgres``: its dialect is slow to load."""
    Index(name, *columns, sqlite_where=where, info={"where": where})


def for_postgres() -> None:
    """Complete the tables for PostgreSQL, before they are made or compared there."""
    for index in (index for table in metadata.tables.values() for index in table.indexes):
        if "where" in index.info:
            index.dialect_options["postgresql"]["where"] = index.info["where"]


WAITING, HELD = text("status = 'queued'"), text("status = 'running'")
BAD = text("outcome in ('fail', 'error')")
OPEN_STATUSES = ("queued", "running", "cancelled")
OPEN = text("status in ('queued', 'running', 'cancelled')")
for owner in ("execution", "eval", "scenario", "persona", "connector"):
    Index(f"runs_by_{owner}", runs.c[f"{owner}_id"], runs.c.id)
_queue_order = (runs.c.queued, runs.c.id, runs.c.connector_id, runs.c.execution_id)
_partial("runs_waiting", *_queue_order, where=WAITING)
_partial("runs_held", runs.c.lease_until, where=HELD)
_partial("runs_open", runs.c.status, runs.c.id, where=OPEN)
_partial("runs_bad", runs.c.outcome, runs.c.id, where=BAD)


def _of_attempt(name: str, *numbers: str, documents: Sequence[str]) -> Table:
    """A table whose rows belong to one attempt at a run, told apart by further numbers."""
    return Table(
        name,
        metadata,
        Column("run_id", Id, ForeignKey("runs.id"), primary_key=True),
        *(Column(key, Integer, primary_key=True, autoincrement=False) for key in ("attempt", *numbers)),
        *(Column(document, Json, nullable=False) for document in documents),
    )


turns = _of_attempt("turns", "turn", documents=["body"])
messages = _of_attempt("messages", "turn", "position", documents=["body"])
outputs = _of_attempt("outputs", documents=["result", "output"])

events = Table(
    "events",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("kind", Id, nullable=False),
    Column("execution_id", Id),
    Column("run_id", Id),
    moment("at", nullable=False),
    Column("body", Json, nullable=False),
    sqlite_autoincrement=True,
)

evaluations = Table(
    "evaluations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("agent_id", Plain),
    Column("session_id", Plain),
    Column("outcome", Id),
    Column("overall_score", Float(53)),
    moment("created", nullable=False),
    Column("body", Json, nullable=False),
)
Index("evaluations_by_agent", evaluations.c.agent_id, evaluations.c.id)
Index("evaluations_by_session", evaluations.c.session_id, evaluations.c.id)

feedback = Table(
    "feedback",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run_id", Id, ForeignKey("runs.id")),
    Column("evaluation_id", Id, ForeignKey("evaluations.id")),
    moment("created", nullable=False),
    Column("body", Json, nullable=False),
)
Index("feedback_by_run", feedback.c.run_id, feedback.c.id)
Index("feedback_by_evaluation", feedback.c.evaluation_id, feedback.c.id)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Plain, primary_key=True),
    Column("fingerprint", Plain, nullable=False),
    Column("target", Id, nullable=False),
    moment("created", nullable=False),
)
Index("idempotency_by_age", idempotency.c.created)

model_limits = Table(
    "model_limits",
    metadata,
    Column("key", Plain, primary_key=True),
    Column("name", Plain, primary_key=True),
    moment("until", nullable=False),
)

ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("id", Plain, primary_key=True),
    moment("expires", nullable=False),
)


conversations = Table(
    "conversations",
    metadata,
    Column("id", Id, primary_key=True),
    # What the sender calls it, or its trace; the key is what it is found by.
    Column("name", Plain, nullable=False),
    Column("key", Id, nullable=False, unique=True),
    Column("status", Id, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("handed", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("worker_id", Id),
    moment("lease_until"),
    Column("problem", Plain),
    *(Column(name, Integer, nullable=False) for name in ("spans", "late", "refused")),
    Column("bytes", BigInteger, nullable=False),
    moment("first", nullable=False),
    moment("last", nullable=False),
    moment("started"),
    Column("turn_count", Integer),
    Column("total_tokens", BigInteger),
    Column("agent", Plain),
    Column("title", Plain),
    Column("error", Plain),
    Column("attributes", Json),
    Column("tail", Id),
)
OPEN_CONVERSATION, COMPLETE = text("status = 'open'"), text("status = 'complete' and handed < revision")
_partial("conversations_open", conversations.c.last, where=OPEN_CONVERSATION)
_partial("conversations_waiting", conversations.c.last, where=COMPLETE)
Index("conversations_by_age", conversations.c.last)
Index("conversations_by_tail", conversations.c.tail)
TAKEN = text("worker_id is not null")
_partial("conversations_held", conversations.c.worker_id, where=TAKEN)

traces = Table(
    "traces",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("conversation_id", Id, nullable=False),
)
Index("traces_by_conversation", traces.c.conversation_id)

spans = Table(
    "spans",
    metadata,
    # Trace and span, and of a log event its content.
    Column("id", LargeBinary, primary_key=True),
    Column("trace_id", LargeBinary, nullable=False),
    Column("conversation_id", Id, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
Index("spans_by_conversation", spans.c.conversation_id)
monitored = Table(
    "monitored",
    metadata,
    Column("monitor_id", Id, primary_key=True),
    Column("conversation_key", Id, primary_key=True),
    Column("conversation_id", Plain, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("outcome", Id, nullable=False),
    Column("reason", Plain, nullable=False),
    Column("execution_id", Id),
    Column("run_id", Id),
    Column("position", Integer),
    moment("at", nullable=False),
    moment("reviewed", nullable=False),
)
Index("monitored_by_time", monitored.c.monitor_id, monitored.c.at)
Index("monitored_by_position", monitored.c.monitor_id, monitored.c.position)

monitor_tests = Table(
    "monitor_tests",
    metadata,
    Column("monitor_id", Id, primary_key=True),
    Column("body", Json, nullable=False),
)

monitor_budgets = Table(
    "monitor_budgets",
    metadata,
    Column("monitor_id", Id, primary_key=True),
    Column("day", Id, primary_key=True),
    Column("calls", BigInteger, nullable=False),
)

alarms = Table(
    "alarms",
    metadata,
    Column("id", Id, primary_key=True),
    Column("monitor_id", Id, nullable=False),
    Column("kind", Id, nullable=False),
    moment("created", nullable=False),
    moment("ended"),
    moment("acknowledged"),
    Column("body", Json, nullable=False),
    Column("delivery", Id, nullable=False),
    Column("tries", Integer, nullable=False),
    moment("next_try"),
    Column("delivery_error", Plain),
)
PENDING = text("delivery = 'pending'")
Index("alarms_by_monitor", alarms.c.monitor_id, alarms.c.id)
_partial("alarms_pending", alarms.c.next_try, where=PENDING)
