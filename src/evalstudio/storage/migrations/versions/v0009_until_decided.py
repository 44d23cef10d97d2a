"""Whether an execution repeated only what was open, and how many times at most: its runs are judged so."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("executions", Column("until_decided", Integer))
