"""Reports as data, for programs and spreadsheets: JSON, JSON lines and CSV.

JSON is one document with the head and all runs; the other two have a line or a row per run, and nothing else.
"""

from __future__ import annotations

import csv
import math
from typing import IO, Any

from ...base.json_text import json_text
from ..intervals import Interval
from .model import ReportHead, ReportRun, Transcript

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


class JsonWriter:
    """Writes the list as runs come."""

    transcripts = 0
    every_run = True

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._separator = "\n"

    def begin(self, head: ReportHead) -> None:
        self._output.write(f'{json_text(plain_head(head))[:-1]},"{head.noun}":[')

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        self._output.write(self._separator + json_text(plain_run(run)))
        self._separator = ",\n"

    def end(self) -> None:
        self._output.write("\n]}\n")


class JsonLinesWriter:
    """Writes a line per run."""

    transcripts = 0
    every_run = True

    def __init__(self, output: IO[str]) -> None:
        self._output = output

    def begin(self, head: ReportHead) -> None:
        pass

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        self._output.write(json_text(plain_run(run)) + "\n")

    def end(self) -> None:
        pass


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


def plain_interval(interval: Interval) -> dict[str, float | None]:
    """An interval as JSON holds it: an end that is not bounded is null."""
    ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in ends.items()
    }


def plain_head(head: ReportHead) -> dict[str, Any]:
    return {
        "title": head.title,
        "standing": head.standing,
        "facts": dict(head.facts),
        "notes": head.notes,
        "counts": head.counts.model_dump(mode="json", by_alias=True),
        "passRate": plain_interval(head.rate),
        "requirements": [one.model_dump(mode="json", by_alias=True) for one in head.requirements],
        "usage": [one.model_dump(mode="json", by_alias=True) for one in head.usage],
        "measures": [
            {"name": one.name, "n": one.runs, "mean": plain_interval(one.mean)} for one in head.measures
        ],
        "subjects": [
            {
                "label": one.label,
                "standing": one.word,
                "passed": one.passed,
                "failed": one.failed,
                "errored": one.errored,
                "unasserted": one.unasserted,
                "notRun": one.left,
                "reason": one.reason,
            }
            for one in sorted(head.subjects, key=lambda one: one.rank)
        ],
    }


def plain_run(run: ReportRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "subject": run.label,
        "scenario": run.group,
        "case": run.case,
        "persona": run.persona,
        "connector": run.connector,
        "repetition": run.repetition,
        "attempt": run.attempt,
        "outcome": run.outcome,
        "fault": run.fault,
        "reason": run.reason,
        "score": run.score,
        "latencyMs": run.latency_ms,
        "tokens": run.tokens,
        "turns": run.turns,
        "metrics": run.metrics,
        "findings": [
            {"name": one.name, "result": one.word, "turn": one.turn, "reason": one.reason}
            for one in run.findings
        ],
    }
