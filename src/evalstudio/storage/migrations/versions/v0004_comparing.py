"""What comparing needs: baselines, what an execution ran with and whether it is whole, hashes of answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, false

from evalstudio.storage.columns import Id, Plain
from evalstudio.storage.migrations import operations as op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("executions", Column("partial", Plain))
    op.add_column("executions", Column("replayed", Boolean, nullable=False, server_default=false()))
    op.add_column("executions", Column("environment", Id))
    op.add_column("runs", Column("case_hash", Id))
    op.add_column("runs", Column("answer_hash", Id))
    # The only part that an earlier version left a trace of.
    op.execute("UPDATE executions SET partial = 'cancelled' WHERE status = 'cancelled' OR cancelled > 0")
    op.create_table(
        "baselines",
        Column("eval_id", Id, primary_key=True),
        Column("name_key", Id, primary_key=True),
        Column("name", Plain, nullable=False),
        Column("execution_id", Id, ForeignKey("executions.id"), nullable=False),
        Column("created", BigInteger, nullable=False),
    )
    op.create_index("baselines_by_execution", "baselines", ["execution_id"])
