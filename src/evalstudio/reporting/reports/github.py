"""GitHub's annotations: a line per subject that failed, which the runner shows beside the job."""

from __future__ import annotations

from typing import IO

from ...base.text import excerpt, printable
from .model import ReportHead, ReportRun, Transcript
from .words import counts_text, verdict

# GitHub shows ten annotations of each kind per step.
_MOST = 10


class AnnotationsWriter:
    """Writes workflow commands."""

    transcripts = 0
    every_run = False

    def __init__(self, output: IO[str]) -> None:
        self._output = output

    def begin(self, head: ReportHead) -> None:
        for line in workflow_commands(head):
            self._output.write(line + "\n")

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        pass

    def end(self) -> None:
        pass


def workflow_commands(head: ReportHead) -> list[str]:
    """What did not pass, the worst first, as errors or warnings."""
    kind = {"met": "notice", "missed": "error", "undecided": "warning"}[head.standing]
    whole = f"{verdict(head)}. {counts_text(head.counts, head.noun)}"
    lines = [_command(kind, head.title, whole)]
    missed = [one for one in head.requirements if one.standing != "met"]
    lines += [
        _command("error" if one.standing == "missed" else "warning", one.requirement, one.evidence)
        for one in missed
    ]
    regressed = set(head.regressed)
    bad = [one for one in head.subjects if one.word in ("fail", "error", "flaky")]
    bad.sort(key=lambda one: (one.label not in regressed, one.rank))
    for one in bad:
        failed = one.word == "fail" and head.standing == "missed"
        lines.append(_command("error" if failed else "warning", f"{one.word}: {one.label}", one.reason))
    return lines[:_MOST]


def _command(kind: str, title: str, message: str) -> str:
    text = excerpt(message, 500) or title
    return f"::{kind} title={_property(excerpt(title, 120))}::{_data(text)}"


def _data(text: str) -> str:
    """Text of others must not end the command, nor begin another one."""
    return printable(text, kept="\r\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
