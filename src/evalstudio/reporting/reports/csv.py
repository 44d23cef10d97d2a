"""A table with a row per run, for spreadsheets."""

from __future__ import annotations

import csv
from typing import IO, Any

from ...base.json_text import json_text
from .model import ReportHead, ReportRun, Transcript
from .plain import plain_run

_COLUMNS = (
    "id",
    "subject",
    "scenario",
    "case",
    "persona",
    "connector",
    "repetition",
    "attempt",
    "outcome",
    "fault",
    "reason",
    "score",
    "latencyMs",
    "tokens",
    "turns",
    "metrics",
)
# A spreadsheet takes a cell that begins like this for a formula, and what an agent said would be run.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class CsvWriter:
    """Writes a row per run; metrics are one column of JSON, since every run may have others."""

    transcripts = 0
    every_run = True

    def __init__(self, output: IO[str]) -> None:
        self._rows = csv.writer(output, lineterminator="\n")

    def begin(self, head: ReportHead) -> None:
        self._rows.writerow(_COLUMNS)

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        fields = plain_run(run)
        self._rows.writerow([cell(fields[name]) for name in _COLUMNS])

    def end(self) -> None:
        pass


def cell(value: Any) -> str:
    """A value as text that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else json_text(value)
    text = text.replace("\0", "\ufffd")
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
