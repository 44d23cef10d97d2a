"""The results file of a job: whole lines only, in the dataset's order, so that its end says where to go on.

Beside it a small note says what the results were scored with, so that a resume cannot mix two settings.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ..base.locks import lock, write_all
from ..base.problems import InvalidInput
from .plan import ScoringJob, ScoringPlan
from .scorer import ScoredChunk
from .summary import DatasetSummary

# Grows when the lines of a results file change: a resume must not mix two kinds.
_FORMAT = 2
# What a score depends on. Thresholds, time limits and concurrency may change before a resume.
_DECISIVE = {"criteria", "evaluators", "fields", "only", "skip", "metadata", "plugins"}
_LONGEST_FIRST_LINE = 10_000_000
_DECISIVE_OF_MODELS = {"provider", "base_url", "models", "structured", "max_tokens", "temperature", "seed"}


class ResultsFile:
    """Takes results as they come and adds them up; without an output file it only adds them up."""

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary) -> None:
        self._job = job
        self._plan = plan
        self._summary = summary
        self._file: BinaryIO | None = None
        self.last_line = 0

    def __enter__(self) -> ResultsFile:
        path = self._job.output
        if path is None:
            return self
        for what, source in (("dataset", self._job.dataset), ("plan", self._job.plan_path)):
            if path.exists() and path.samefile(source):
                raise InvalidInput(f"{path}: is the {what} itself; name another file for the results")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "ab", buffering=0)
        except OSError as error:
            raise InvalidInput(f"{path}: cannot be written: {error.strerror}") from None
        try:
            self._begin(self._file, path)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _begin(self, file: BinaryIO, path: Path) -> None:
        # Two runs into one file would score every record twice.
        if not lock(file):
            raise InvalidInput(f"{path}: another run is writing to it")
        if not path.is_file():
            # A pipe or a device: there is nothing to go on from.
            return
        note, mark = path.with_name(f"{path.name}.job.json"), _fingerprint(self._job, self._plan)
        if self._job.resume and path.stat().st_size:
            _check_note(note, mark, path)
            self.last_line = _recover(path, self._summary)
            self._summary.resumed = self._summary.records
        else:
            _check_replaceable(path, note)
            file.truncate(0)
            note.write_bytes(orjson.dumps(mark, option=orjson.OPT_INDENT_2))

    def take(self, scored: ScoredChunk) -> None:
        self._summary.merge(scored.summary)
        for record_id, line in scored.ids:
            self._summary.duplicates.add(record_id, line)
        if scored.lines and self._file is not None:
            write_all(self._file, b"\n".join(scored.lines) + b"\n")


def _check_replaceable(path: Path, note: Path) -> None:
    """A file that holds anything but results of ours is somebody's work: it is not replaced."""
    if not path.stat().st_size or note.is_file():
        return
    with path.open("rb") as file:
        first = file.readline(_LONGEST_FIRST_LINE)
    try:
        is_result = {"recordId", "outcome"} <= orjson.loads(first).keys()
    except (orjson.JSONDecodeError, AttributeError):
        is_result = False
    if not is_result:
        raise InvalidInput(f"{path}: is no results file, so it is not overwritten; name another output file")


def _fingerprint(job: ScoringJob, plan: ScoringPlan) -> dict[str, Any]:
    decisive = plan.model_dump(mode="json", include=_DECISIVE)
    if plan.llm_settings is not None:
        decisive["llm"] = plan.llm_settings.model_dump(mode="json", include=_DECISIVE_OF_MODELS)
    text = orjson.dumps(decisive, option=orjson.OPT_SORT_KEYS)
    return {
        "format": _FORMAT,
        "dataset": str(job.dataset.resolve()),
        "plan": hashlib.blake2b(text, digest_size=16).hexdigest(),
        "only": job.only,
        "sample": job.share,
        "seed": job.seed,
        "skipBad": job.skip_bad,
        "groupBy": job.group_by or plan.group_by,
    }


def _check_note(note: Path, mark: dict[str, Any], output: Path) -> None:
    try:
        before = orjson.loads(note.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        raise InvalidInput(
            f"{output}: cannot be resumed: {note.name} is missing, so nothing says how it was scored"
        ) from None
    changed = [key for key, value in mark.items() if before.get(key) != value]
    if changed:
        raise InvalidInput(
            f"{output}: cannot be resumed: it was scored with another {', '.join(changed)}. "
            "Use the same settings, or another output file."
        )


def _recover(path: Path, summary: DatasetSummary) -> int:
    """Count what is there, cut a torn end off, and say which line of the dataset came last."""
    last_line, whole = 0, 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            try:
                result = orjson.loads(line)
                number = result["line"]
                summary.add(result)
                summary.duplicates.add(result["recordId"], number)
            except (orjson.JSONDecodeError, KeyError, TypeError):
                break
            last_line, whole = number, whole + len(line)
    os.truncate(path, whole)
    return last_line
