"""Recorded evaluations, feedback and idempotency keys."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey

from evalstudio.storage.columns import Id, Json, Plain
from evalstudio.storage.migrations import operations as op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "evaluations",
        Column("id", Id, primary_key=True),
        Column("agent_id", Plain),
        Column("session_id", Plain),
        Column("outcome", Id),
        Column("overall_score", Float(53)),
        Column("created", BigInteger, nullable=False),
        Column("body", Json, nullable=False),
    )
    op.create_index("evaluations_by_agent", "evaluations", ["agent_id", "id"])
    op.create_index("evaluations_by_session", "evaluations", ["session_id", "id"])
    op.create_table(
        "feedback",
        Column("id", Id, primary_key=True),
        Column("run_id", Id, ForeignKey("runs.id")),
        Column("evaluation_id", Id, ForeignKey("evaluations.id")),
        Column("created", BigInteger, nullable=False),
        Column("body", Json, nullable=False),
    )
    op.create_index("feedback_by_run", "feedback", ["run_id", "id"])
    op.create_index("feedback_by_evaluation", "feedback", ["evaluation_id", "id"])
    op.create_table(
        "idempotency",
        Column("key", Plain, primary_key=True),
        Column("fingerprint", Plain, nullable=False),
        Column("target", Id, nullable=False),
        Column("created", BigInteger, nullable=False),
    )
    op.create_index("idempotency_by_age", "idempotency", ["created"])
