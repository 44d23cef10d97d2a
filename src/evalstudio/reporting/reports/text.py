"""A report as plain text for a terminal or a log."""

from __future__ import annotations

from typing import IO

from ...base.text import excerpt, printable
from ..spending import spending_lines
from .model import ReportHead, ReportRun, Transcript
from .words import counts_text, rate_text, verdict

_MOST_SUBJECTS = 60


class TextWriter:
    """All is in the head: single runs are not listed."""

    transcripts = 0
    every_run = False

    def __init__(self, output: IO[str]) -> None:
        self._output = output

    def begin(self, head: ReportHead) -> None:
        for line in _lines(head):
            # What agents say must not steer a terminal.
            self._output.write(printable(line, kept="") + "\n")

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        pass

    def end(self) -> None:
        pass


def _lines(head: ReportHead) -> list[str]:
    lines = [f"{head.title}: {verdict(head)}", counts_text(head.counts, head.noun)]
    lines.append(f"pass rate: {rate_text(head)}")
    lines += head.notes
    lines += [f"{one.standing}: {one.requirement}: {one.evidence}" for one in head.requirements]
    bad = sorted((one for one in head.subjects if one.word != "pass"), key=lambda one: one.rank)
    for one in bad[:_MOST_SUBJECTS]:
        reason = f": {excerpt(one.reason, 200)}" if one.reason else ""
        lines.append(f"{one.word}: {one.label}{reason}")
    if len(bad) > _MOST_SUBJECTS:
        lines.append(f"and {len(bad) - _MOST_SUBJECTS:,} more that did not pass")
    lines += spending_lines(head.usage, head.noun)
    lines += [f"{name}: {value}" for name, value in head.facts]
    return lines
