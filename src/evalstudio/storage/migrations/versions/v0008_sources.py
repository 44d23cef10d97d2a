"""Where the conversations of an execution come from: held live, or judged later. Earlier ones were live."""

from __future__ import annotations

from sqlalchemy import Column

from evalstudio.storage.columns import Id
from evalstudio.storage.migrations import operations as op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("executions", Column("source", Id, nullable=False, server_default="live"))
    op.add_column("executions", Column("rescored_from", Id))
