"""Whether an execution repeated only what was open, and how many times at most: its runs are judged so."""

from __future__ import annotations

from sqlalchemy import Column, Integer

from evalstudio.storage.migrations import operations as op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("executions", Column("until_decided", Integer))
