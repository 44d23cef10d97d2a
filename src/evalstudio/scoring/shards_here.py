"""Scoring shards on this machine, for results that are kept in shards: in this process, or in several."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from functools import cache

from .budget_watch import UsedUp
from .dataset_files import DatasetFile
from .job import JobResources, Progress, dataset_of, score_in_workers, set_up, worker_resources, workers_of
from .plan import ScoringJob, ScoringPlan
from .shard_folders import ShardFolder
from .shard_results import ShardedResults
from .shard_scoring import ShardOutcome, score_shard
from .sharded import score_in_shards
from .shards import Shard, ShardIndex, index_shard
from .summary import DatasetSummary

ShardTask = tuple[Shard, DatasetFile, ShardFolder | None]


class ShardsHere:
    """The workers of this machine, as ``score_in_shards`` uses them."""

    def __init__(self, job: ScoringJob, resources: JobResources) -> None:
        self._job, self._resources, self._dataset = job, resources, dataset_of(job)
        self.count = workers_of(job, resources.runner)

    def can_read(self, dataset: DatasetFile) -> bool:
        return True

    def index(self, shards: Iterable[Shard]) -> Iterator[tuple[Shard, ShardIndex]]:
        for shard in shards:
            yield shard, index_shard(shard, self._dataset)

    def score(self, shards: Iterator[Shard], results: ShardedResults) -> Iterator[ShardOutcome]:
        tasks = ((shard, self._dataset, results.folder) for shard in shards)
        scored = (
            score_in_workers(self._job, self.count, tasks, _scored) if self.count > 1 else self._here(tasks)
        )
        with closing(scored):
            yield from scored

    def _here(self, tasks: Iterator[ShardTask]) -> Generator[ShardOutcome]:
        with asyncio.Runner() as loop:
            try:
                for task in tasks:
                    yield loop.run(score_shard(self._resources, *task))
            finally:
                if self._resources.llm is not None:
                    loop.run(self._resources.llm.aclose())


def _scored(task: ShardTask) -> ShardOutcome:
    return _loop().run(score_shard(worker_resources(), *task))


@cache
def _loop() -> asyncio.Runner:
    """Of a worker process; connections to models belong to the loop they were opened on."""
    return asyncio.Runner()


def score_shards_here(
    job: ScoringJob, progress: Progress | None = None, used_up: UsedUp | None = None
) -> tuple[DatasetSummary, ScoringPlan]:
    """``score_dataset`` for results that are kept in shards."""
    resources = set_up(job)
    dataset_of(job).check()
    summary = score_in_shards(job, resources, ShardsHere(job, resources), progress, used_up)
    return summary, resources.plan
