"""Sessions that were ended by logging out, known to every server of the database; bounded.

One row may stand for all sessions that expire before a moment: it takes the place of too many others.
"""

from __future__ import annotations

from sqlalchemy import delete, func, select

from .schema import ended_sessions
from .transaction import Transaction, now_ms

EVERYBODY = "*"


def end_session(unit: Transaction, session_id: str, expires: int, *, everybody: int, most: int) -> None:
    """Keep an ended session; if there are too many, end all that expire before ``everybody`` instead."""
    unit.connection.execute(delete(ended_sessions).where(ended_sessions.c.expires < now_ms()))
    kept = unit.connection.execute(select(func.count()).select_from(ended_sessions)).scalar() or 0
    if kept >= most:
        unit.connection.execute(delete(ended_sessions))
        session_id, expires = EVERYBODY, everybody
    unit.connection.execute(delete(ended_sessions).where(ended_sessions.c.id == session_id))
    unit.connection.execute(ended_sessions.insert().values(id=session_id, expires=expires))


def read_ended_sessions(unit: Transaction) -> dict[str, int]:
    """The ended sessions and when they would have expired."""
    rows = unit.connection.execute(select(ended_sessions.c.id, ended_sessions.c.expires)).all()
    return {row.id: row.expires for row in rows}
