"""A scoring job: what was asked for, and scoring it in this process or in several.

Results land in order as they are produced, and a stopped job resumes.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import takewhile, zip_longest
from typing import Any, TypeVar

from ..base.garbage import searching_less
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem
from ..evaluators.contract import Embedder, LanguageModel
from ..evaluators.criteria import check_declared
from ..llm.client import Llm
from ..llm.embeddings import BatchingEmbedder, embedder_of
from ..llm.quota import SharedLimits
from ..plugins import PluginRegistry, create_registry, load_named, load_plugins
from .budget_watch import BudgetWatch, UsedUp
from .dataset_files import DatasetFile
from .datasets import CHUNK_BYTES, Chunk, DatasetError, read_chunks
from .plan import PlanFiles, ScoringJob, ScoringPlan, read_plan
from .results_file import DatasetChanged, ResultsFile, scored_records
from .retrying import FileToMend, ResultsToMend, errored_lines, only_lines
from .rows import RowReader
from .runner import EvaluationRunner
from .scorer import ScoredChunk, Scorer
from .shards import whole_dataset
from .spread import Distribution
from .summary import DatasetSummary


@dataclass(slots=True)
class JobResources:
    """Everything one process needs to score chunks of a job."""

    plan: ScoringPlan
    scorer: Scorer
    runner: EvaluationRunner
    llm: Llm | None
    _retries_seen: int = 0

    def retries(self) -> int:
        """How often a model had to be asked again since this was last asked."""
        if self.llm is None:
            return 0
        total = sum(role.retries + role.repairs for role in self.llm.usage.values())
        new, self._retries_seen = total - self._retries_seen, total
        return new


def set_up(job: ScoringJob, limits: SharedLimits | None = None) -> JobResources:
    """Load the plan, its plugins and its models; every mistake in them is found here.

    The limits of models are kept together with all who give the same ``limits``.
    """
    plan, plan_files = read_plan(job.plan_path)
    registry = create_registry() if job.config_path is None else load_plugins(job.config_path)
    load_named(registry, plan.plugins, job.plan_path.resolve().parent)
    # What was asked decides whether a results file is resumed, so the models in use belong to the plan.
    plan = plan.model_copy(update={"llm_settings": plan.llm_settings or job.llm_settings})
    llm = Llm(plan.llm_settings, shared=limits) if plan.llm_settings else None
    embedder: Embedder = BatchingEmbedder(embedder_of(llm))
    runner = checked_runner(plan, plan_files, registry, llm, embedder, job.only)
    reader = RowReader(runner.config.criteria, plan.fields, llm, embedder, plan.limits)
    grouped = replace(job, group_by=job.group_by or plan.group_by)
    return JobResources(plan, Scorer(runner, reader, grouped), runner, llm)


def checked_runner(
    plan: ScoringPlan,
    plan_files: PlanFiles,
    registry: PluginRegistry,
    llm: LanguageModel | None,
    embedder: Embedder | None = None,
    only: list[str] | None = None,
) -> EvaluationRunner:
    """What scores by a plan; what is wrong with its evaluators is told with file and line."""
    try:
        runner = EvaluationRunner(plan.run_config(only), registry=registry, llm=llm, embedder=embedder)
        # A plan without criteria leaves them to the records.
        if plan.criteria:
            check_declared(runner.references, plan.criteria, "the plan's")
        # Only our own judges need it: a plugin's may bring a model of its own.
        ours = (e for e in runner.entries if e.definition.module.startswith("evalstudio."))
        if llm is None and (asks := next((e for e in ours if e.definition.cost == "llm"), None)):
            message, hint = (
                f"{asks.key} asks a language model",
                "add llmSettings, here or to the project's config file",
            )
            raise InvalidInput(Problem(message, hint=hint))
    except InvalidInput as error:
        raise plan_files.placed(error) from None
    return runner


Progress = Callable[[DatasetSummary, float], None]
# A worker hands its results over chunk by chunk; where a model is asked, a chunk must not take minutes.
MODEL_CHUNK_BYTES = 1 << 13
# What goes to another process should keep it busy for longer than it takes to get there and back.
SENT_CHUNK_BYTES = 1 << 18


def score_dataset(
    job: ScoringJob, progress: Progress | None = None, used_up: UsedUp | None = None
) -> tuple[DatasetSummary, ScoringPlan]:
    """Score every chosen record of a dataset. A bad record ends it with ``BadRecord`` unless skipped.

    When ``used_up`` gives a reason it ends before its last record: ``ended`` of the summary says why.
    """
    resources = set_up(job)
    dataset_of(job).check()
    summary = empty_summary(resources.plan)
    watch = BudgetWatch(used_up)
    with searching_less(), ResultsFile(job, resources.plan, summary) as results:
        chunks = _remaining(job, resources, results, summary)
        try:
            with closing(_scored(job, resources, chunks)) as parts:
                for scored in watch.over(parts, resources.scorer):
                    results.take(scored)
                    if progress is not None:
                        progress(summary, scored.share)
                    if scored.failure is not None:
                        raise scored.failure
        except DatasetChanged as change:
            raise _refusal(job, resources, change.line) from None
        if resources.scorer.left_over:
            summary.ended = watch.reason
        results.finish("budget" if resources.scorer.left_over else None)
    if job.retry_errors and summary.ended is None and job.output is not None:
        retry_errors(job, FileToMend(job.output), summary, watch)
    summary.retries += resources.retries()
    if not summary.read:
        raise DatasetError(f"{job.dataset_name}:1: holds no records; a dataset needs at least one")
    return summary, resources.plan


def empty_summary(plan: ScoringPlan) -> DatasetSummary:
    return DatasetSummary(criteria={criterion.name: Distribution() for criterion in plan.criteria})


def retry_errors(job: ScoringJob, stored: ResultsToMend, summary: DatasetSummary, watch: BudgetWatch) -> None:
    """Score what errored once more, and count the results anew."""
    lines = errored_lines(stored.results())
    if not lines:
        return
    # Connections to models belong to the loop they were opened on, and that one is closed.
    resources = set_up(job)
    resources.scorer.stopped = watch.reason is not None
    chunks = read_dataset(job, resources.plan, MODEL_CHUNK_BYTES)
    errored = _until_stopped(only_lines(chunks, lines), resources.scorer)
    # Few are left, whatever the size of the dataset.
    few = replace(job, workers=job.workers or 1)
    with closing(_scored(few, resources, errored)) as parts:
        fresh = (line for scored in watch.over(parts, resources.scorer) for line in scored.lines)
        summary.retried = stored.replace(fresh)
    summary.ended = watch.reason if resources.scorer.left_over else None
    summary.retries += resources.retries()
    summary.forget_results()
    for result in stored.results():
        summary.add(result)


def _remaining(
    job: ScoringJob, resources: JobResources, results: ResultsFile, summary: DatasetSummary
) -> Iterator[Chunk]:
    """What is left to score: after what a resumed run has done, and up to the limit."""
    size = MODEL_CHUNK_BYTES
    if resources.runner.inline:
        size = SENT_CHUNK_BYTES if workers_of(job, resources.runner) > 1 else CHUNK_BYTES
    left = None if job.limit is None else job.limit - summary.records
    done, rows = results.last_line, 0
    whole = read_dataset(job, resources.plan, size)
    for chunk in _until_stopped(results.checked(whole), resources.scorer):
        if done:
            passed = chunk if chunk.last_line <= done else chunk.between(0, done)
            summary.merge(resources.scorer.passed_over(passed))
            rows += passed.rows
            if chunk.last_line < done:
                continue
            _check_count(job, summary, rows)
            chunk, done = chunk.between(done, chunk.last_line), 0
        if left is not None:
            if left <= 0:
                return
            chunk, count = resources.scorer.first(left, chunk)
            left -= count
        if chunk.numbers or chunk.bad:
            yield chunk


def _check_count(job: ScoringJob, summary: DatasetSummary, rows: int) -> None:
    """Refuse to go on where results of what was scored are missing."""
    if summary.read != rows:
        message = f"of {rows:,} records up to its last result there are {summary.read:,}"
        raise InvalidInput(f"{job.output}: cannot be resumed: {message}; score into another output file")


def _until_stopped(chunks: Iterator[Chunk], scorer: Scorer) -> Iterator[Chunk]:
    for chunk in chunks:
        if scorer.stopped:
            scorer.left_over = True
            return
        yield chunk


def dataset_of(job: ScoringJob) -> DatasetFile:
    """The dataset of a job, as it is called in messages and where it is."""
    return DatasetFile(job.dataset_name, job.address or "")


def read_dataset(job: ScoringJob, plan: ScoringPlan, size: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The dataset of a job from its beginning, in chunks of about so many bytes."""
    if job.address is not None:
        return whole_dataset(dataset_of(job), size)
    response_column = plan.fields.get("response", "response")
    return read_chunks(job.dataset, chunk_bytes=size, response_column=response_column)


def _refusal(job: ScoringJob, resources: JobResources, line: int) -> InvalidInput:
    what = f"{job.output}: cannot be resumed: it holds the results of another dataset"
    advice = f"Only after line {line} it may change. Use the dataset as it was, or another output file."
    return InvalidInput(f"{what}: {_first_difference(job, resources, line)}. {advice}")


def _first_difference(job: ScoringJob, resources: JobResources, last: int) -> str:
    """Where the dataset is no longer the one that was scored, in words."""
    assert job.output is not None
    if dataset_of(job).is_file:
        chunks = read_dataset(job, resources.plan)
        now = ((record.line, record.id) for chunk in chunks for record in resources.scorer.chosen(chunk))
        for before, after in zip_longest(
            scored_records(job.output), takewhile(lambda at: at[0] <= last, now)
        ):
            if before != after:
                return f"{_place(before)} was scored, and {job.dataset_name} has {_place(after)}"
    return f"{job.dataset_name} has other records up to line {last}, though with the same ids"


def _place(record: tuple[int, str] | None) -> str:
    return "nothing more" if record is None else f'"{record[1]}" at line {record[0]}'


def _scored(job: ScoringJob, resources: JobResources, chunks: Iterator[Chunk]) -> Generator[ScoredChunk]:
    workers = workers_of(job, resources.runner)
    if workers > 1:
        return score_in_workers(job, workers, chunks, _score)
    if resources.runner.inline:
        return (resources.scorer.score_chunk(chunk) for chunk in chunks)
    return _drive(resources, chunks)


def _drive(resources: JobResources, chunks: Iterator[Chunk]) -> Generator[ScoredChunk]:
    """Results of evaluators that wait for something, each as soon as it and all before it are there."""
    with asyncio.Runner() as loop:
        state = ScoredChunk()
        stream = _as_they_come(resources, chunks, state)
        try:
            while (scored := loop.run(_next(stream))) is not None:
                yield scored
            yield state
        finally:
            loop.run(_close(stream, resources))


async def _as_they_come(
    resources: JobResources, chunks: Iterator[Chunk], state: ScoredChunk
) -> AsyncIterator[ScoredChunk]:
    async for results in resources.scorer.stream(chunks, state):
        some = ScoredChunk(share=state.share)
        some.add(*results)
        yield some


async def _next(stream: AsyncIterator[ScoredChunk]) -> ScoredChunk | None:
    return await anext(stream, None)


async def _close(stream: Any, resources: JobResources) -> None:
    await stream.aclose()
    if resources.llm is not None:
        await resources.llm.aclose()


Task = TypeVar("Task")
Scored = TypeVar("Scored")
_resources: JobResources | None = None
# A file of this size takes some seconds, and a process half a second to start.
_LARGE = 32_000_000
# One process reads and writes for all; many more would wait for it.
_MOST = 8


def workers_of(job: ScoringJob, runner: EvaluationRunner) -> int:
    """How many processes score: as was said, else one, unless a large file keeps evaluators busy.

    Who waits for models is not faster for having more processors.
    """
    if job.workers is not None:
        return job.workers
    dataset = dataset_of(job)
    if not runner.inline or job.limit is not None or not dataset.is_file:
        return 1
    if dataset.size * job.share < _LARGE:
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, _MOST)


def worker_resources() -> JobResources:
    """Those of a worker process."""
    assert _resources is not None
    return _resources


def score_in_workers(
    job: ScoringJob, workers: int, tasks: Iterator[Task], score: Callable[[Task], Scored]
) -> Generator[Scored]:
    """What processes make of each task, in order."""
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    waiting: deque[Future[Scored]] = deque()
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=(job,)) as pool:
        try:
            for task in tasks:
                with _without_interrupts():
                    waiting.append(pool.submit(score, task))
                if len(waiting) >= workers * 3:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise DatasetError(
                f"{job.dataset_name}: a worker process died; what is written is whole. "
                "Run again with --resume."
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
    global _resources
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent sends no sentinel, so the worker waits for its end by itself.
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    _resources = set_up(job)


def _score(chunk: Chunk) -> ScoredChunk:
    resources = worker_resources()
    scored = resources.scorer.score_chunk(chunk)
    scored.summary.retries += resources.retries()
    return scored
