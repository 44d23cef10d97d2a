"""One JSON document: the head, and all runs in a list."""

from __future__ import annotations

from typing import IO

from ...base.json_text import json_text
from .model import ReportHead, ReportRun, Transcript
from .plain import plain_head, plain_run


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
