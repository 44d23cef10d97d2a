"""Very many stored runs, made by the database itself out of some that are there."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from evalstudio.project.entities import id_floor

# An id begins with its time; what follows is chance, and some of it becomes the number of the copy.
_TIME = len(id_floor(datetime.now(UTC)))
_NUMBER = 6
_IDS = ("id", "execution_id", "run_id")
OF_RUNS = ("executions", "runs")
EVERYTHING = (*OF_RUNS, "turns", "messages", "outputs")


def multiply_runs(database: Path, times: int, tables: Sequence[str] = OF_RUNS) -> None:
    """As many copies of everything in these tables, each under ids of its own."""
    with closing(sqlite3.connect(database)) as connection:
        for pragma in ("synchronous = off", "cache_size = -400000", "foreign_keys = off"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"CREATE TEMP TABLE copies AS {_NUMBERS}", [times])
        for table in tables:
            connection.execute(f"CREATE TEMP TABLE these AS SELECT * FROM {table}")
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            values = ", ".join(_copied(name) for name in columns)
            connection.execute(f"INSERT INTO {table} SELECT {values} FROM copies, these ORDER BY 1")
            connection.execute("DROP TABLE these")
        connection.commit()


def _copied(column: str) -> str:
    if column not in _IDS:
        return f'"{column}"'
    return f"substr({column}, 1, {_TIME}) || number || substr({column}, {_TIME + _NUMBER + 1})"


_NUMBERS = """
    WITH RECURSIVE counting(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM counting WHERE value < ?)
    SELECT printf('%06d', value) AS number FROM counting
"""
