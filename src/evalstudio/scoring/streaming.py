"""Scoring a whole dataset: results land in order as they are produced, and a stopped run resumes.

Results are written in the order of the dataset, so the last whole line says where to go on. Beside the
results file a small note says what they were scored with, so that a resume cannot mix two settings.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ..files import ConfigError
from .datasets import Chunk, read_chunks
from .job import Bench, ScoringJob, set_up
from .plan import ScoringPlan, load_plan
from .scorer import Scored
from .summary import Summary
from .workers import score_in_workers

Progress = Callable[[Summary, float], None]


def score_dataset(job: ScoringJob, progress: Progress | None = None) -> tuple[Summary, ScoringPlan]:
    """Score every chosen record of a dataset. A bad record ends it with ``BadRecord`` unless skipped."""
    bench = set_up(job)
    summary = Summary()
    with _Results(job, summary) as results:
        chunks = _Counted(read_chunks(job.dataset, after=results.last_line), job.dataset)
        for scored in _scored(job, bench, chunks):
            results.take(scored)
            if progress is not None:
                progress(summary, chunks.share)
            if scored.failure is not None:
                raise scored.failure
            if results.full:
                break
    summary.retries += bench.retries()
    return summary, bench.plan


class _Counted:
    """Chunks as they pass, with the share of the file they make up so far."""

    def __init__(self, chunks: Iterator[Chunk], path: Path) -> None:
        self._chunks = chunks
        self._size = path.stat().st_size
        self._seen = 0

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        chunk = next(self._chunks)
        self._seen += len(chunk.data)
        return chunk

    @property
    def share(self) -> float:
        return min(1.0, self._seen / self._size)


def _scored(job: ScoringJob, bench: Bench, chunks: Iterator[Chunk]) -> Iterable[Scored]:
    if job.workers > 1:
        return score_in_workers(job, chunks)
    if bench.runner.inline:
        return map(bench.scorer.score_chunk, chunks)
    return _drive(bench, chunks)


def _drive(bench: Bench, chunks: Iterator[Chunk]) -> Iterator[Scored]:
    """Results of model-backed evaluators one by one, so that each lands as soon as it may."""
    with asyncio.Runner() as loop:
        state = Scored()
        stream = _one_by_one(bench, chunks, state)
        try:
            while (scored := loop.run(_next(stream))) is not None:
                yield scored
            yield state
        finally:
            loop.run(_close(stream, bench))


async def _one_by_one(bench: Bench, chunks: Iterator[Chunk], state: Scored) -> AsyncIterator[Scored]:
    async for result in bench.scorer.stream(chunks, state):
        one = Scored(last_line=result["line"])
        one.add(result)
        yield one


async def _next(stream: AsyncIterator[Scored]) -> Scored | None:
    return await anext(stream, None)


async def _close(stream: Any, bench: Bench) -> None:
    await stream.aclose()
    if bench.llm is not None:
        await bench.llm.aclose()


class _Results:
    """The results file of a job: whole lines only, in the dataset's order."""

    def __init__(self, job: ScoringJob, summary: Summary) -> None:
        self._job = job
        self._summary = summary
        self._file: BinaryIO | None = None
        self.last_line = 0

    @property
    def full(self) -> bool:
        return self._job.limit is not None and self._summary.records >= self._job.limit

    def __enter__(self) -> _Results:
        path = self._job.output
        if path is None:
            return self
        path.parent.mkdir(parents=True, exist_ok=True)
        note, mark = _note_path(path), _fingerprint(self._job)
        if self._job.resume and path.exists():
            _check_note(note, mark, path)
            self.last_line = _recover(path, self._summary)
        else:
            path.write_bytes(b"")
        note.write_bytes(orjson.dumps(mark, option=orjson.OPT_INDENT_2))
        self._file = open(path, "ab", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def take(self, scored: Scored) -> None:
        room = None if self._job.limit is None else self._job.limit - self._summary.records
        if room is not None and len(scored.lines) > room:
            lines = scored.lines[:room]
            for line in lines:
                self._summary.add(orjson.loads(line))
        else:
            lines = scored.lines
            self._summary.merge(scored.summary)
        if lines and self._file is not None:
            view = memoryview(b"\n".join(lines) + b"\n")
            while view:
                view = view[self._file.write(view) :]
        self.last_line = max(self.last_line, scored.last_line)


def _note_path(output: Path) -> Path:
    return output.with_name(output.name + ".job.json")


def _fingerprint(job: ScoringJob) -> dict[str, Any]:
    plan = orjson.dumps(load_plan(job.plan_path).model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
    return {
        "dataset": str(job.dataset.resolve()),
        "plan": hashlib.blake2b(plan, digest_size=16).hexdigest(),
        "only": job.only,
        "sample": job.share,
        "seed": job.seed,
        "skipBad": job.skip_bad,
    }


def _check_note(note: Path, mark: dict[str, Any], output: Path) -> None:
    try:
        before = orjson.loads(note.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        raise ConfigError(
            f"{output}: cannot be resumed: {note.name} is missing, so nothing says how it was scored"
        ) from None
    changed = [key for key, value in mark.items() if before.get(key) != value]
    if changed:
        raise ConfigError(
            f"{output}: cannot be resumed: it was scored with another {', '.join(changed)}. "
            "Use the same settings, or another output file."
        )


def _recover(path: Path, summary: Summary) -> int:
    """Count what is there, cut a torn end off, and say which line of the dataset came last."""
    last_line, whole = 0, 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            try:
                result = orjson.loads(line)
            except orjson.JSONDecodeError:
                break
            summary.add(result)
            last_line, whole = result["line"], whole + len(line)
    os.truncate(path, whole)
    return last_line
