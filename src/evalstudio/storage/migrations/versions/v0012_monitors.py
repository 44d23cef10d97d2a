"""Monitors: their definitions, which conversations they reviewed, their tests, budgets and alarms."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, text

from evalstudio.storage.columns import Id, Json, Plain
from evalstudio.storage.migrations import operations as op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "monitors",
        Column("id", Id, primary_key=True),
        Column("name", Plain, nullable=False),
        Column("name_key", Plain, nullable=False, unique=True),
        Column("version", Integer, nullable=False),
        Column("created", BigInteger, nullable=False),
        Column("updated", BigInteger, nullable=False),
        Column("document", Json, nullable=False),
    )
    _conversations()
    op.create_table(
        "monitor_tests",
        Column("monitor_id", Id, primary_key=True),
        Column("body", Json, nullable=False),
    )
    op.create_table(
        "monitor_budgets",
        Column("monitor_id", Id, primary_key=True),
        Column("day", Id, primary_key=True),
        Column("calls", BigInteger, nullable=False),
    )
    _alarms()


def _conversations() -> None:
    op.create_table(
        "monitored",
        Column("monitor_id", Id, primary_key=True),
        Column("conversation_key", Id, primary_key=True),
        Column("conversation_id", Plain, nullable=False),
        Column("revision", Integer, nullable=False),
        Column("outcome", Id, nullable=False),
        Column("reason", Plain, nullable=False),
        Column("execution_id", Id),
        Column("run_id", Id),
        Column("position", Integer),
        Column("at", BigInteger, nullable=False),
        Column("reviewed", BigInteger, nullable=False),
    )
    op.create_index("monitored_by_time", "monitored", ["monitor_id", "at"])
    op.create_index("monitored_by_position", "monitored", ["monitor_id", "position"])


def _alarms() -> None:
    op.create_table(
        "alarms",
        Column("id", Id, primary_key=True),
        Column("monitor_id", Id, nullable=False),
        Column("kind", Id, nullable=False),
        Column("created", BigInteger, nullable=False),
        Column("ended", BigInteger),
        Column("acknowledged", BigInteger),
        Column("body", Json, nullable=False),
        Column("delivery", Id, nullable=False),
        Column("tries", Integer, nullable=False),
        Column("next_try", BigInteger),
        Column("delivery_error", Plain),
    )
    pending = text("delivery = 'pending'")
    op.create_index("alarms_by_monitor", "alarms", ["monitor_id", "id"])
    op.create_index("alarms_pending", "alarms", ["next_try"], sqlite_where=pending, postgresql_where=pending)
