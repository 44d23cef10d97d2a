"""What an execution requires and may use, and what each run used: tokens and cost by role.

Of runs from before it is not known what they used: the columns stay empty, which means unknown.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Text

from evalstudio.storage.migrations import operations as op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    for name in ("requirements", "budget"):
        op.add_column("executions", Column(name, Text))
    for role in ("simulator", "judge"):
        op.add_column("runs", Column(f"{role}_tokens", BigInteger))
    for role in ("agent", "simulator", "judge"):
        op.add_column("runs", Column(f"{role}_cost", Float(53)))
