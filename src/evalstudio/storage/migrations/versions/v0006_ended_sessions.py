"""Sessions that were ended by logging out, for every server of the database."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column

from evalstudio.storage.columns import Plain
from evalstudio.storage.migrations import operations as op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "ended_sessions",
        Column("id", Plain, primary_key=True),
        Column("expires", BigInteger, nullable=False),
    )
