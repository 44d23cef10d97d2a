"""Conversations of production: the spans that came in, and the conversations they belong to."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, Text, text

from evalstudio.storage.columns import Id
from evalstudio.storage.migrations import operations as op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    _conversations()
    op.create_table(
        "traces",
        Column("id", LargeBinary, primary_key=True),
        Column("conversation_id", Id, nullable=False),
    )
    op.create_index("traces_by_conversation", "traces", ["conversation_id"])
    op.create_table(
        "spans",
        Column("id", LargeBinary, primary_key=True),
        Column("trace_id", LargeBinary, nullable=False),
        Column("conversation_id", Id, nullable=False),
        Column("body", LargeBinary, nullable=False),
    )
    op.create_index("spans_by_conversation", "spans", ["conversation_id"])


def _conversations() -> None:
    op.create_table(
        "conversations",
        Column("id", Id, primary_key=True),
        Column("name", Text, nullable=False),
        Column("key", Id, nullable=False, unique=True),
        Column("status", Id, nullable=False),
        *(Column(name, Integer, nullable=False) for name in ("revision", "handed", "attempts")),
        Column("worker_id", Id),
        Column("lease_until", BigInteger),
        Column("problem", Text),
        *(Column(name, Integer, nullable=False) for name in ("spans", "late", "refused")),
        *(Column(name, BigInteger, nullable=False) for name in ("bytes", "first", "last")),
        Column("started", BigInteger),
        Column("turn_count", Integer),
        Column("total_tokens", BigInteger),
        *(Column(name, Text) for name in ("agent", "title", "error", "attributes")),
        Column("tail", Id),
    )
    for name, column, condition in (
        ("open", "last", "status = 'open'"),
        ("waiting", "last", "status = 'complete' and handed < revision"),
        ("held", "worker_id", "worker_id is not null"),
    ):
        which = text(condition)
        index = f"conversations_{name}"
        op.create_index(index, "conversations", [column], sqlite_where=which, postgresql_where=which)
    op.create_index("conversations_by_age", "conversations", ["last"])
    op.create_index("conversations_by_tail", "conversations", ["tail"])
