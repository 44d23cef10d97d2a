"""Scoring a whole dataset: results land in order as they are produced, and a stopped run resumes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing
from typing import Any

from .dataset_files import CHUNK_BYTES, DatasetError, check_readable
from .datasets import Chunk, read_chunks
from .job import Bench, ScoringJob, set_up
from .plan import ScoringPlan
from .results_file import ResultsFile
from .scorer import Scored
from .summary import Spread, Summary
from .workers import score_in_workers

Progress = Callable[[Summary, float], None]

# A worker hands its results over chunk by chunk; where a model is asked, a chunk must not take minutes.
_MODEL_CHUNK_BYTES = 1 << 13


def score_dataset(job: ScoringJob, progress: Progress | None = None) -> tuple[Summary, ScoringPlan]:
    """Score every chosen record of a dataset. A bad record ends it with ``BadRecord`` unless skipped."""
    bench = set_up(job)
    check_readable(job.dataset)
    summary = Summary(criteria={criterion.name: Spread() for criterion in bench.plan.criteria})
    with ResultsFile(job, bench.plan, summary) as results:
        chunks = _remaining(job, bench, results.last_line, summary)
        with closing(_scored(job, bench, chunks)) as parts:
            for scored in parts:
                results.take(scored)
                if progress is not None:
                    progress(summary, scored.share)
                if scored.failure is not None:
                    raise scored.failure
    summary.retries += bench.retries()
    if not summary.read:
        raise DatasetError(f"{job.dataset}:1: holds no records; a dataset needs at least one")
    return summary, bench.plan


def _remaining(job: ScoringJob, bench: Bench, done: int, summary: Summary) -> Iterator[Chunk]:
    """What is left to score: after what a resumed run has done, and up to the limit."""
    size = CHUNK_BYTES if bench.runner.inline else _MODEL_CHUNK_BYTES
    room = None if job.limit is None else job.limit - summary.records
    for chunk in read_chunks(job.dataset, chunk_bytes=size):
        if chunk.last_line <= done:
            summary.merge(bench.scorer.passed_over(chunk))
            continue
        if done:
            summary.merge(bench.scorer.passed_over(chunk.between(0, done)))
            chunk, done = chunk.between(done, chunk.last_line), 0
        if room is not None:
            if room <= 0:
                return
            chunk, count = bench.scorer.first(room, chunk)
            room -= count
        if chunk.numbers or chunk.bad:
            yield chunk


def _scored(job: ScoringJob, bench: Bench, chunks: Iterator[Chunk]) -> Generator[Scored]:
    if job.workers > 1:
        return score_in_workers(job, chunks)
    if bench.runner.inline:
        return (bench.scorer.score_chunk(chunk) for chunk in chunks)
    return _drive(bench, chunks)


def _drive(bench: Bench, chunks: Iterator[Chunk]) -> Generator[Scored]:
    """Results of evaluators that wait for something, each as soon as it and all before it are there."""
    with asyncio.Runner() as loop:
        state = Scored()
        stream = _as_they_come(bench, chunks, state)
        try:
            while (scored := loop.run(_next(stream))) is not None:
                yield scored
            yield state
        finally:
            loop.run(_close(stream, bench))


async def _as_they_come(bench: Bench, chunks: Iterator[Chunk], state: Scored) -> AsyncIterator[Scored]:
    async for results in bench.scorer.stream(chunks, state):
        some = Scored(share=state.share)
        for result in results:
            some.add(result)
        yield some


async def _next(stream: AsyncIterator[Scored]) -> Scored | None:
    return await anext(stream, None)


async def _close(stream: Any, bench: Bench) -> None:
    await stream.aclose()
    if bench.llm is not None:
        await bench.llm.aclose()
