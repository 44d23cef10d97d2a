"""Ids that were seen, on disk where there are many: a file of any size is read in the same memory."""

from __future__ import annotations

import sqlite3


class SeenIds:
    """Which ids there were, and where each was first."""

    def __init__(self) -> None:
        # An unnamed database is private and spills to a file of its own that is gone with it.
        self._ids = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._ids.execute("PRAGMA cache_size = -4000")
        self._ids.execute("PRAGMA journal_mode = OFF")
        self._ids.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, origin TEXT) WITHOUT ROWID")

    def add(self, name: str, origin: str) -> str | None:
        """Note an id; where it was before, if it was."""
        cursor = self._ids.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (name, origin))
        if cursor.rowcount:
            return None
        row = self._ids.execute("SELECT origin FROM seen WHERE id = ?", (name,)).fetchone()
        return str(row[0])
