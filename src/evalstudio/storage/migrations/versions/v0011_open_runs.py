"""An index for lists of runs that are queued, running or cancelled: few among many that are over."""

from __future__ import annotations

from sqlalchemy import text

from evalstudio.storage.migrations import operations as op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    few = text("status in ('queued', 'running', 'cancelled')")
    op.create_index("runs_open", "runs", ["status", "id"], sqlite_where=few, postgresql_where=few)
