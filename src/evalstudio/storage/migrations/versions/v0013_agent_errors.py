"""What the agent's errors count as in an execution: every worker and every report is to know it."""

from __future__ import annotations

from sqlalchemy import Column

from evalstudio.storage.columns import Id
from evalstudio.storage.migrations import operations as op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("executions", Column("agent_errors", Id, nullable=False, server_default="error"))
