"""Scoring in several processes: chunks go out, result lines come back, in order and bounded in number."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from .dataset_files import DatasetError
from .datasets import Chunk
from .job import Bench, ScoringJob, set_up
from .scorer import Scored

_bench: Bench | None = None


def score_in_workers(job: ScoringJob, chunks: Iterator[Chunk]) -> Generator[Scored]:
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    waiting: deque[Future[Scored]] = deque()
    with ProcessPoolExecutor(job.workers, context, initializer=_start, initargs=(job,)) as pool:
        try:
            for chunk in chunks:
                with _without_interrupts():
                    waiting.append(pool.submit(_score, chunk))
                if len(waiting) >= job.workers * 3:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise DatasetError(
                f"{job.dataset}: a worker process died; what is written is whole. Run again with --resume."
            ) from None
        except BaseException:
            # Nobody waits for the rest any more, and a chunk may take long.
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _without_interrupts() -> Generator[None]:
    """Ctrl-C reaches every process of a terminal. Workers start with it blocked: the parent decides."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
