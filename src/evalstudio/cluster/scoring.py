"""Scoring a dataset on a cluster: shards go to workers, which are actors with a scorer of their own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.files import read_mapping
from ..base.lazy_dataclass import dataclass
from ..plugins.loading import is_path, path_of, plugin_names
from ..project.config import ExecutionSettings, read_config
from ..scoring.addresses import VARIABLES, is_address
from ..scoring.budget_watch import UsedUp
from ..scoring.dataset_files import DatasetFile
from ..scoring.datasets import DatasetError
from ..scoring.job import JobResources, Progress, dataset_of, set_up
from ..scoring.plan import ScoringJob, ScoringPlan, read_plan
from ..scoring.shard_folders import AddressFolder, ShardFolder, is_current
from ..scoring.shard_results import ShardedResults
from ..scoring.shard_scoring import ShardOutcome, score_shard
from ..scoring.sharded import score_in_shards
from ..scoring.shards import Shard, ShardIndex, index_shard
from ..scoring.summary import DatasetSummary
from ..version import __version__
from .connection import Cluster, SentProject, open_cluster
from .limits import ClusterLimits, start_limits
from .pool import ActorPool, DrivenPool, WorkersLost
from .sending import check_inside, check_version, variables_of


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker needs to know before its first shard."""

    job: ScoringJob
    dataset: DatasetFile
    variables: dict[str, str]
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a worker says of itself once it can work."""

    reads_dataset: bool


class ScoringActor:
    """Scores shards, one after another, each many records at once where models are asked."""

    def __init__(self, assignment: Assignment, limits: Any) -> None:
        self._assignment, self._limits = assignment, limits
        self._resources: JobResources | None = None

    async def ready(self) -> Readiness:
        check_version(self._assignment.version)
        os.environ.update(self._assignment.variables)
        limits = ClusterLimits(self._limits) if self._limits is not None else None
        self._resources = set_up(self._assignment.job, limits)
        return Readiness(_is_there(self._assignment.dataset))

    async def index(self, shard: Shard) -> ShardIndex:
        self._check_there(shard)
        return index_shard(shard, self._assignment.dataset)

    async def score(self, shard: Shard, folder: ShardFolder | None) -> ShardOutcome:
        assert self._resources is not None
        self._check_there(shard)
        can_write = isinstance(folder, AddressFolder) or (folder is not None and is_current(folder))
        return await score_shard(
            self._resources,
            shard,
            self._assignment.dataset,
            folder if can_write else None,
            send=folder is not None and not can_write,
        )

    def _check_there(self, shard: Shard) -> None:
        if shard.cut != "lines" and not _is_there(self._assignment.dataset):
            place = f"{self._assignment.dataset.at} is not there on the node {socket.gethostname()}"
            raise DatasetError(f"{place}; put it where all nodes see it, or at an address such as s3://")


def _is_there(dataset: DatasetFile) -> bool:
    return is_address(dataset.at) or Path(dataset.at).is_file()


class RayWorkers:
    """The workers of a cluster, as ``score_in_shards`` uses them."""

    def __init__(self, cluster: Cluster, assignment: Assignment, count: int, limits: Any) -> None:
        ray, self._dataset = cluster.ray, assignment.dataset
        # One call at a time: how many records wait for a model at once is the plan's to say.
        options: dict[str, Any] = {"num_cpus": 1, "max_concurrency": 1, "scheduling_strategy": "SPREAD"}
        actor = ray.remote(ScoringActor).options(**options)
        self.count = count
        self._pool = DrivenPool(lambda: ActorPool(ray, lambda: actor.remote(assignment, limits), count))

    def can_read(self, dataset: DatasetFile) -> bool:
        first: Readiness = self._pool.first()
        return first.reads_dataset

    def index(self, shards: Iterable[Shard]) -> Iterator[tuple[Shard, ShardIndex]]:
        return self._pool.each("index", shards)

    def score(self, shards: Iterator[Shard], results: ShardedResults) -> Iterator[ShardOutcome]:
        with closing(self._pool.each("score", shards, results.folder)) as outcomes:
            for _, outcome in outcomes:
                yield outcome

    def close(self) -> None:
        self._pool.close()


def score_on_ray(
    job: ScoringJob,
    settings: ExecutionSettings,
    workers: int | None = None,
    progress: Progress | None = None,
    used_up: UsedUp | None = None,
) -> tuple[DatasetSummary, ScoringPlan]:
    """``score_dataset`` on a cluster: the same results, summary and errors."""
    resources = set_up(job)
    dataset = _dataset(job)
    dataset.check()
    cpus = workers or os.cpu_count() or 1
    with open_cluster(settings, cpus, _sent_project(job)) as cluster:
        assignment = Assignment(_job_for_workers(job, cluster), dataset, _variables(job))
        limits = start_limits(cluster.ray) if resources.llm is not None else None
        with closing(RayWorkers(cluster, assignment, workers or cluster.cpus, limits)) as pool:
            try:
                return score_in_shards(job, resources, pool, progress, used_up), resources.plan
            except WorkersLost as error:
                advice = "What is written is whole; run again with --resume."
                where = (
                    f"{job.dataset_name}: {error.task.place}"
                    if isinstance(error.task, Shard)
                    else job.dataset_name
                )
                raise DatasetError(f"{where}: {error}. {advice}") from None


def _dataset(job: ScoringJob) -> DatasetFile:
    """The dataset under the name that it has everywhere; a pipe has none, and is read by the command."""
    if job.address is not None or not job.dataset.is_file():
        return dataset_of(job)
    return replace(dataset_of(job), place=str(job.dataset.resolve()))


def _root(job: ScoringJob) -> Path:
    return (job.config_path or job.plan_path).resolve().parent


def _sent_project(job: ScoringJob) -> SentProject:
    """The folder of the plan and its plugins, without what is read and written beside them."""
    data = [job.dataset, *([job.output] if job.output else [])]
    inside = [
        path.resolve().relative_to(_root(job)) for path in data if path.resolve().is_relative_to(_root(job))
    ]
    return SentProject(_root(job), tuple(f"/{path}*" for path in inside))


def _job_for_workers(job: ScoringJob, cluster: Cluster) -> ScoringJob:
    """The job with paths that mean the same to workers: in full, or within the folder that is sent."""
    config, plan = job.config_path and job.config_path.resolve(), job.plan_path.resolve()
    if cluster.is_local:
        return replace(job, config_path=config, plan_path=plan)
    root = _root(job)
    settings, plans = read_plan(job.plan_path)
    names = [*(plugin_names(config) if config else ()), *settings.plugins]
    plugins = (path_of(name, root) for name in names if is_path(name))
    check_inside(root, [plan, *(Path(one.path).resolve() for one in plans.files), *plugins])
    return replace(job, config_path=config and config.relative_to(root), plan_path=plan.relative_to(root))


def _variables(job: ScoringJob) -> dict[str, str]:
    settings: list[Any] = [read_plan(job.plan_path)[1].settings]
    names = list(VARIABLES) if job.address is not None or job.output_address is not None else list[str]()
    if job.config_path is not None:
        settings.append(read_mapping(job.config_path).data)
        names += read_config(job.config_path).allowed_variables
    return variables_of(settings, names)
