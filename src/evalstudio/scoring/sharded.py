"""Scoring a dataset in shards, by workers that may be anywhere and take them in any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Protocol

from ..base.problems import InvalidInput
from .dataset_files import DatasetFile
from .datasets import CHUNK_BYTES, BadRecord, Chunk, DatasetError
from .job import (
    MODEL_CHUNK_BYTES,
    JobResources,
    Progress,
    dataset_of,
    empty_summary,
    read_dataset,
    retry_errors,
)
from .kept_shards import results_of
from .plan import ScoringJob
from .shard_results import ScoredShard, ShardedResults
from .shard_scoring import ShardOutcome
from .shards import (
    Cut,
    Shard,
    ShardHash,
    ShardIndex,
    byte_shards,
    can_be_cut,
    carried_shards,
    group_shards,
    numbered,
    shard_bytes,
)
from .summary import DatasetSummary


class ShardWorkers(Protocol):
    """Those who read and score shards."""

    @property
    def count(self) -> int: ...
    def can_read(self, dataset: DatasetFile) -> bool: ...
    def index(self, shards: Iterable[Shard]) -> Iterator[tuple[Shard, ShardIndex]]: ...
    def score(self, shards: Iterator[Shard], results: ShardedResults) -> Iterator[ShardOutcome]: ...


def score_in_shards(
    job: ScoringJob, resources: JobResources, workers: ShardWorkers, progress: Progress | None = None
) -> DatasetSummary:
    """Score every chosen record of a dataset. A bad record ends it with ``BadRecord`` unless skipped."""
    summary = empty_summary(resources.plan)
    with results_of(job, resources.plan, summary) as results:
        results.count_again()
        cutting = _Cutting(job, resources, workers, results)
        _score(cutting, workers, results, summary, progress)
        results.finish()
    if job.retry_errors:
        retry_errors(replace(job, workers=1), summary)
        results.recount()
    if not summary.read:
        raise DatasetError(f"{job.dataset_name}:1: holds no records; a dataset needs at least one")
    return summary


def _score(
    cutting: _Cutting,
    workers: ShardWorkers,
    results: ShardedResults,
    summary: DatasetSummary,
    progress: Progress | None,
) -> None:
    failures: list[tuple[int, BadRecord]] = []
    shares: dict[int, float] = {}

    shards = cutting.shards()
    # Cutting may ask the workers itself, which is over when the first shard is there.
    first = list(islice(shards, 1))

    def remaining() -> Iterator[Shard]:
        for shard in chain(first, shards):
            if failures:
                return
            if (known := results.done.get(shard.number)) is not None:
                results.take(known)
            else:
                shares[shard.number] = shard.share
                yield shard

    for outcome in workers.score(remaining(), results):
        number = outcome.scored.number
        if outcome.failure is not None:
            failures.append((number, outcome.failure))
        elif all(number < failed for failed, _ in failures):
            results.keep(outcome.scored, outcome.lines)
            results.take(outcome.scored, outcome.ids)
        if progress is not None:
            progress(summary, shares.pop(number))
    if failures:
        number, failure = min(failures, key=lambda one: one[0])
        results.forget_after(number)
        raise failure


class _Cutting:
    """How the dataset of a job is cut into shards, the same again when it is resumed."""

    def __init__(
        self, job: ScoringJob, resources: JobResources, workers: ShardWorkers, results: ShardedResults
    ) -> None:
        self._job, self._resources, self._workers = job, resources, workers
        self._dataset = dataset_of(job)
        self._done = results.done
        if results.cut is None:
            results.set_cut(*self._chosen())
        assert results.cut is not None
        self._cut: Cut = results.cut[0]
        self._size = results.cut[1]

    def _chosen(self) -> tuple[Cut, int]:
        asks_models = not self._resources.runner.inline
        size = shard_bytes(self._dataset.size, self._workers.count, asks_models=asks_models)
        # How many records are chosen is known only to who reads from the front.
        whole = self._job.limit is None and self._dataset.is_file and self._workers.can_read(self._dataset)
        return can_be_cut(self._dataset) if whole else "lines", size

    def shards(self) -> Iterator[Shard]:
        """The shards in order; what was scored before is checked to be the same."""
        ends = {number: one.end for number, one in self._done.items()}
        count = 0
        for shard, digest in self._cut_at(ends):
            self._check(shard, digest)
            count += 1
            yield shard
        if self._done and max(self._done) >= count:
            raise self._changed(self._done[max(self._done)])

    def _cut_at(self, ends: dict[int, int]) -> Iterator[tuple[Shard, str]]:
        match self._cut:
            case "bytes":
                yield from self._indexed(byte_shards(self._dataset, self._size, ends))
            case "rowGroups":
                shards = group_shards(self._dataset, self._size, ends)
                known = [shard for shard in shards if shard.number in self._done]
                digests = {shard.number: index.digest for shard, index in self._workers.index(known)}
                yield from ((shard, digests.get(shard.number, "")) for shard in shards)
            case "lines":
                for shard in carried_shards(self._chunks(), self._size, ends):
                    digest = ShardHash()
                    for chunk in shard.chunks:
                        digest.add(chunk)
                    yield shard, digest.hexdigest()

    def _indexed(self, shards: list[Shard]) -> Iterator[tuple[Shard, str]]:
        """Byte ranges with the numbers of their lines, for which all of them are read once."""
        if len(shards) == 1 and not self._done:
            yield shards[0], ""
            return
        indexes = {shard.number: index for shard, index in self._workers.index(shards)}
        lines = (indexes[shard.number].lines for shard in shards)
        for shard in numbered(shards, lines):
            yield shard, indexes[shard.number].digest

    def _chunks(self) -> Iterator[Chunk]:
        """The dataset from its beginning, up to the limit."""
        size = CHUNK_BYTES if self._resources.runner.inline else MODEL_CHUNK_BYTES
        chunks = read_dataset(self._job, self._resources.plan, min(size, self._size))
        if self._job.limit is None:
            yield from chunks
            return
        left = max(self._job.limit, sum(one.summary.records for one in self._done.values()))
        for whole in chunks:
            if left <= 0:
                return
            chunk, count = self._resources.scorer.first(left, whole)
            left -= count
            yield chunk

    def _check(self, shard: Shard, digest: str) -> None:
        known = self._done.get(shard.number)
        if known is not None and not (known.holds(shard) and known.digest == digest):
            raise self._changed(known)

    def _changed(self, known: ScoredShard) -> InvalidInput:
        what = f"{self._job.output}: cannot be resumed: it holds the results of another dataset"
        where = f"lines {known.first_line} to {known.first_line + known.lines - 1}"
        advice = "Use the dataset as it was, or another output file."
        return InvalidInput(f"{what}: {where} of {self._job.dataset_name} have changed. {advice}")
