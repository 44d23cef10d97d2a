"""Scoring in several processes: chunks go out, result lines come back, in order and bounded in number."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from .datasets import Chunk, DatasetError
from .job import Bench, ScoringJob, set_up
from .scorer import Scored

_bench: Bench | None = None


def score_in_workers(job: ScoringJob, chunks: Iterator[Chunk]) -> Iterator[Scored]:
    context = multiprocessing.get_context("spawn")
    waiting: deque[Future[Scored]] = deque()
    with ProcessPoolExecutor(job.workers, context, initializer=_start, initargs=(job,)) as pool:
        try:
            for chunk in chunks:
                waiting.append(pool.submit(_score, chunk))
                if len(waiting) >= job.workers * 3:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise DatasetError(
                f"{job.dataset}: a worker process died; what is written is whole. Run again with --resume."
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start(job: ScoringJob) -> None:
    global _bench
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent cannot say goodbye; its workers must not outlive it.
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    _bench = set_up(job)


def _score(chunk: Chunk) -> Scored:
    assert _bench is not None
    scored = _bench.scorer.score_chunk(chunk)
    scored.summary.retries += _bench.retries()
    return scored
