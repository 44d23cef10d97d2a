"""The results file of a job: whole lines only, in the dataset's order, so that its end says where to go on.

Beside it a small note says what the results were scored with, and has a hash of the dataset up to the last
record that was scored, so that a resume mixes neither settings nor datasets. Where the dataset lies and what
comes after that record may change.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from ..base.files import open_regular
from ..base.lazy_dataclass import dataclass
from ..base.locks import lock, write_all
from ..base.problems import InvalidInput
from .datasets import Chunk
from .plan import ScoringJob, ScoringPlan
from .result_lines import read_result
from .scorer import ScoredChunk
from .summary import DatasetSummary

# In the note of a results file: more records are to come, or would have come.
UNFINISHED = "unfinished"
# Grows when the lines of a results file change: a resume must not mix two kinds.
_FORMAT = 4
# What a score depends on. Thresholds, time limits and concurrency may change before a resume.
_DECISIVE = {"criteria", "evaluators", "fields", "only", "skip", "metadata", "plugins"}
_LONGEST_FIRST_LINE = 10_000_000
_DECISIVE_OF_MODELS = {"provider", "base_url", "models", "structured", "max_tokens", "temperature", "seed"}


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """The part of a dataset that is scored: up to which line, and a hash of it."""

    line: int
    digest: str


class DatasetChanged(Exception):
    """What was scored, up to a line, is no longer in the dataset as it was."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class RunningHash:
    """A hash of the lines of a dataset, as far as asked for; what was read ahead waits."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._ahead: deque[tuple[Sequence[int], bytes]] = deque()
        self.line = 0

    def read(self, chunk: Chunk) -> None:
        if chunk.numbers:
            self._ahead.append((chunk.numbers, chunk.data))

    def up_to(self, line: int) -> ScoredPart:
        """The part up to a line that was read."""
        while self._ahead and self._ahead[0][0][0] <= line:
            numbers, data = self._ahead.popleft()
            count = bisect_right(numbers, line)
            if count < len(numbers):
                rest = data.split(b"\n", count)[-1]
                self._ahead.appendleft((numbers[count:], rest))
                data = data[: len(data) - len(rest) - 1]
            self._hash.update(data)
            self._hash.update(b"\n")
        self.line = max(self.line, line)
        return ScoredPart(self.line, self._hash.hexdigest())


class ResultsFile:
    """Takes results as they come and adds them up; without an output file it only adds them up."""

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary) -> None:
        self._job = job
        self._plan = plan
        self._summary = summary
        self._file: BinaryIO | None = None
        self._note: BinaryIO | None = None
        self._mark: dict[str, Any] = {}
        self._hash = RunningHash()
        self._scored: ScoredPart | None = None
        self._note_length = 0
        self.last_line = 0

    def __enter__(self) -> ResultsFile:
        path = self._job.output
        if path is None:
            return self
        self._file = open_output(self._job)
        try:
            self._begin(self._file, path)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._file, self._note):
            if file is not None:
                file.close()

    def _begin(self, file: BinaryIO, path: Path) -> None:
        # Two runs into one file would score every record twice.
        if not lock(file):
            raise InvalidInput(f"{path}: another run is writing to it")
        if not path.is_file():
            # A pipe or a device: there is nothing to go on from.
            return
        note, self._mark = note_of(path), fingerprint(self._job, self._plan)
        if self._job.resume and (path.stat().st_size or "shards" in (read_note(path) or {})):
            self._scored = _scored_part(read_settings(self._mark, path), path)
            self.last_line = recover(path, self._summary, self._scored.line)
            self._summary.resumed = self._summary.records
            self._note = note.open("r+b", buffering=0)
            self._note_length = note.stat().st_size
        else:
            check_replaceable(path, note)
            file.truncate(0)
            self._note = note.open("wb", buffering=0)
            self._write_note(self._hash.up_to(0))

    def checked(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The dataset. What is left to score comes once all that was scored is seen to be the same."""
        waiting: list[Chunk] = []
        for chunk in chunks:
            self._hash.read(chunk)
            waiting.append(chunk)
            if self._scored is None or chunk.last_line >= self._scored.line:
                self._compare()
            elif chunk.last_line > self.last_line:
                continue
            yield from waiting
            waiting.clear()
        self._compare()
        yield from waiting

    def _compare(self) -> None:
        if self._scored is not None and self._hash.up_to(self._scored.line) != self._scored:
            raise DatasetChanged(self._scored.line)
        self._scored = None

    def take(self, scored: ScoredChunk) -> None:
        self._summary.merge(scored.summary)
        self._summary.duplicates.add_all(scored.ids)
        if scored.lines and self._file is not None:
            if self._note is not None:
                # Before the results: a crash in between leaves a hash that covers all of them.
                self._write_note(self._hash.up_to(scored.ids[-1][1]))
            write_all(self._file, b"\n".join([*scored.lines, b""]))

    def finish(self, partial: str | None = None) -> None:
        """Note that all is scored, or what ended it before that; a resume that goes on takes it back."""
        if self._note is not None:
            self._write_note(self._hash.up_to(self._hash.line), partial)

    def _write_note(self, part: ScoredPart, partial: str | None = UNFINISHED) -> None:
        """In place, in one write. It never gets shorter: what is left of a longer one is written over."""
        assert self._note is not None
        more = {} if partial is None else {"partial": partial}
        note = {**self._mark, **more, "scored": {"line": part.line, "digest": part.digest}}
        text = orjson.dumps(note, option=orjson.OPT_INDENT_2).ljust(self._note_length)
        self._note.seek(0)
        self._note.write(text)
        self._note_length = len(text)


def open_output(job: ScoringJob) -> BinaryIO:
    """The results file, to append to; refused where it is one of the inputs."""
    path = job.output
    assert path is not None
    inputs = (("dataset", job.dataset), ("plan", job.plan_path))
    for what, source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise InvalidInput(f"{path}: is the {what} itself; name another file for the results")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "ab", buffering=0)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror}") from None


def scored_records(path: Path) -> Iterator[tuple[int, str]]:
    """Line and id of every record in a results file that is whole."""
    with path.open("rb") as file:
        for line in file:
            result = orjson.loads(line)
            yield result["line"], result["recordId"]


def check_replaceable(path: Path, note: Path) -> None:
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


def fingerprint(job: ScoringJob, plan: ScoringPlan) -> dict[str, Any]:
    decisive = plan.model_dump(mode="json", include=_DECISIVE)
    if plan.llm_settings is not None:
        decisive["llm"] = plan.llm_settings.model_dump(mode="json", include=_DECISIVE_OF_MODELS)
    text = orjson.dumps(decisive, option=orjson.OPT_SORT_KEYS)
    return {
        "format": _FORMAT,
        "plan": hashlib.blake2b(text, digest_size=16).hexdigest(),
        "only": job.only,
        "sample": job.share,
        "seed": job.seed,
        "skipBad": job.skip_bad,
        "groupBy": job.group_by or plan.group_by,
    }


def note_of(output: Path) -> Path:
    """Where it says how a results file was scored."""
    return output.with_name(f"{output.name}.job.json")


def read_note(output: Path) -> dict[str, Any] | None:
    """How a results file was scored; nothing where it is not known."""
    try:
        with open_regular(note_of(output)) as file:
            note: Any = orjson.loads(file.read())
    except (OSError, ValueError):
        return None
    return cast(dict[str, Any], note) if isinstance(note, dict) else None


def read_settings(mark: dict[str, Any], output: Path) -> dict[str, Any]:
    """The note of a results file that is to be resumed; refused where it was scored with other settings."""
    note = read_note(output)
    if note is None:
        message = f"{note_of(output).name} is missing or unreadable, so nothing says how it was scored"
        raise InvalidInput(f"{output}: cannot be resumed: {message}")
    return checked_settings(note, mark, str(output))


def checked_settings(note: dict[str, Any], mark: dict[str, Any], output: str) -> dict[str, Any]:
    changed = [key for key, value in mark.items() if note.get(key) != value]
    if changed:
        raise InvalidInput(
            f"{output}: cannot be resumed: it was scored with another {', '.join(changed)}. "
            "Use the same settings, or another output file."
        )
    return note


def _scored_part(note: dict[str, Any], output: Path) -> ScoredPart:
    if "scored" not in note:
        raise InvalidInput(f"{output}: was scored in shards; go on with the same command and --on ray")
    match note["scored"]:
        case {"line": int(line), "digest": str(digest)}:
            return ScoredPart(line, digest)
        case _:
            message = "its note does not say how far it was scored"
            raise InvalidInput(f"{output}: cannot be resumed: {message}")


def recover(path: Path, summary: DatasetSummary, vouched: int | None) -> int:
    """Count what is there, cut off what is torn or not vouched for, and say which line came last.

    After a power cut the results may be ahead of the note; what nothing vouches for is scored again.
    """
    last_line, whole = 0, 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            try:
                result = read_result(line)
                number = result["line"]
                if vouched is not None and not last_line < number <= vouched:
                    break
                summary.add(result)
                summary.duplicates.add(result["recordId"], number)
            except (ValueError, KeyError, TypeError):
                break
            last_line, whole = number, whole + len(line)
    os.truncate(path, whole)
    return last_line
