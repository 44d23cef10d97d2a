"""What the processes of a project keep together about calls of models."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column

from evalstudio.storage.columns import Plain
from evalstudio.storage.migrations import operations as op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "model_limits",
        Column("key", Plain, primary_key=True),
        Column("name", Plain, primary_key=True),
        Column("until", BigInteger, nullable=False),
    )
