"""One JSON object per run, and nothing else: for programs that read line by line."""

from __future__ import annotations

from typing import IO

from ...base.json_text import json_text
from .model import ReportHead, ReportRun, Transcript
from .plain import plain_run


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
