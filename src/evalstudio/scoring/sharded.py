"""Scoring a dataset in shards, by workers that may be anywhere and take them in any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Protocol

from ..base.problems import InvalidInput
from .budget_watch import BudgetWatch, UsedUp
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
from .shard_descriptions import ShardDescription
from .shard_results import ScoredShard, ShardedResults
from .shard_scoring import ShardOutcome
from .shards import (
    Cut,
    Shard,
    ShardIndex,
    byte_shards,
    can_be_cut,
    carried_shards,
    group_shards,
    index_chunks,
    numbered,
    shard_bytes,
)
from .summary import DatasetSummary

# A dataset may have grown since it was cut.
_MOST_RESUMED = 1_000_000


class ShardWorkers(Protocol):
    """Those who read and score shards."""

    @property
    def count(self) -> int: ...
    def can_read(self, dataset: DatasetFile) -> bool: ...
    def index(self, shards: Iterable[Shard]) -> Iterator[tuple[Shard, ShardIndex]]: ...
    def score(self, shards: Iterator[Shard], results: ShardedResults) -> Iterator[ShardOutcome]: ...


def score_in_shards(
    job: ScoringJob,
    resources: JobResources,
    workers: ShardWorkers,
    progress: Progress | None = None,
    used_up: UsedUp | None = None,
) -> DatasetSummary:
    """Score every chosen record of a dataset. A bad record ends it with ``BadRecord`` unless skipped.

    When ``used_up`` gives a reason it ends before its last shard: ``ended`` of the summary says why.
    """
    summary, watch = empty_summary(resources.plan), BudgetWatch(used_up)
    with results_of(job, resources.plan, summary) as results:
        cutting = _Cutting(job, resources, workers, results, has_budget=used_up is not None)
        scoring = _Scoring(cutting, results, watch)
        scoring.score(workers, summary, progress)
        if scoring.left_over:
            summary.ended = watch.reason
        elif job.retry_errors:
            retry_errors(replace(job, workers=1), results, summary, watch)
        results.finish("budget" if scoring.left_over else None)
    if not summary.read:
        raise DatasetError(f"{job.dataset_name}:1: holds no records; a dataset needs at least one")
    return summary


class _Scoring:
    """Shards going to workers and coming back, until all are done, one is bad, or the budget is used up."""

    def __init__(self, cutting: _Cutting, results: ShardedResults, watch: BudgetWatch) -> None:
        self._results, self._watch = results, watch
        self._failures: list[tuple[int, BadRecord]] = []
        self._shares: dict[int, float] = {}
        shards = cutting.shards()
        # Cutting may ask the workers itself, which is over when the first shard is there.
        self._shards = chain(list(islice(shards, 1)), shards)
        self.left_over = False
        """Whether shards were left because of the budget."""

    def score(self, workers: ShardWorkers, summary: DatasetSummary, progress: Progress | None) -> None:
        for outcome in workers.score(self._remaining(), self._results):
            self._take(outcome)
            if progress is not None:
                progress(summary, self._shares.pop(outcome.scored.number))
        if self._failures:
            number, failure = min(self._failures, key=lambda one: one[0])
            self._results.forget_after(number)
            raise failure

    def _remaining(self) -> Iterator[Shard]:
        last_known = max(self._results.done, default=-1)
        for shard in self._shards:
            if self._failures or (self.left_over and shard.number > last_known):
                return
            if (known := self._results.done.get(shard.number)) is not None:
                self._results.take(ScoredShard(known))
            elif self._watch.reason is not None:
                self.left_over = True
            else:
                self._shares[shard.number] = shard.share
                yield shard

    def _take(self, outcome: ShardOutcome) -> None:
        number = outcome.scored.number
        if outcome.failure is not None:
            self._failures.append((number, outcome.failure))
        elif all(number < failed for failed, _ in self._failures):
            self._results.take(self._results.keep(outcome.scored, outcome.lines), outcome.ids)
        if outcome.scored.summary is not None:
            self._watch.count(outcome.scored.summary)


class _Cutting:
    """How the dataset of a job is cut into shards, the same again when it is resumed."""

    def __init__(
        self,
        job: ScoringJob,
        resources: JobResources,
        workers: ShardWorkers,
        results: ShardedResults,
        *,
        has_budget: bool = False,
    ) -> None:
        self._job, self._resources, self._workers = job, resources, workers
        self._dataset, self._name = dataset_of(job), results.name
        self._done, cut = results.done, results.cut
        if cut is None:
            cut = self._chosen(has_budget)
            results.set_cut(*cut)
        self._cut: Cut = cut[0]
        self._size = cut[1]
        self._check_cut()

    def _check_cut(self) -> None:
        """Refuse what a manifest may say by now, and would never have been chosen."""
        is_other = self._cut not in ("lines", can_be_cut(self._dataset))
        if is_other or (self._dataset.is_file and self._dataset.size > self._size * _MOST_RESUMED):
            message = f"the manifest says that it was cut by {self._cut}, into parts of {self._size} bytes"
            other = f"which is not how {self._job.dataset_name} is cut"
            raise InvalidInput(f"{self._name}: cannot be resumed: {message}, {other}")

    def _chosen(self, has_budget: bool) -> tuple[Cut, int]:
        asks_models = not self._resources.runner.inline
        size = shard_bytes(
            self._dataset.size, self._workers.count, asks_models=asks_models, has_budget=has_budget
        )
        # How many records are chosen is known only to who reads from the front.
        whole = self._job.limit is None and self._dataset.is_file and self._workers.can_read(self._dataset)
        return can_be_cut(self._dataset) if whole else "lines", size

    def shards(self) -> Iterator[Shard]:
        """The shards in order; what was scored before is checked to be the same."""
        ends = {number: one.end for number, one in self._done.items()}
        count = 0
        for shard, index in self._cut_at(ends):
            self._check(shard, index)
            count += 1
            yield shard
        if self._done and max(self._done) >= count:
            raise self._changed(self._done[max(self._done)])

    def _cut_at(self, ends: dict[int, int]) -> Iterator[tuple[Shard, ShardIndex | None]]:
        match self._cut:
            case "bytes":
                yield from self._indexed(byte_shards(self._dataset, self._size, ends))
            case "rowGroups":
                shards = group_shards(self._dataset, self._size, ends)
                known = [shard for shard in shards if shard.number in self._done]
                indexes = {shard.number: index for shard, index in self._workers.index(known)}
                yield from ((shard, indexes.get(shard.number)) for shard in shards)
            case "lines":
                for shard in carried_shards(self._chunks(), self._size, ends):
                    is_known = shard.number in self._done
                    yield shard, index_chunks(shard.chunks, shard.first_line) if is_known else None

    def _indexed(self, shards: list[Shard]) -> Iterator[tuple[Shard, ShardIndex | None]]:
        """Byte ranges with the numbers of their lines, for which all of them are read once."""
        if len(shards) == 1 and not self._done:
            yield shards[0], None
            return
        indexes = {shard.number: index for shard, index in self._workers.index(shards)}
        for shard in numbered(shards, (indexes[shard.number] for shard in shards)):
            yield shard, indexes[shard.number]

    def _chunks(self) -> Iterator[Chunk]:
        """The dataset from its beginning, up to the limit."""
        size = CHUNK_BYTES if self._resources.runner.inline else MODEL_CHUNK_BYTES
        chunks = read_dataset(self._job, self._resources.plan, min(size, self._size))
        if self._job.limit is None:
            yield from chunks
            return
        left = max(self._job.limit, sum(one.records for one in self._done.values()))
        for whole in chunks:
            if left <= 0:
                return
            chunk, count = self._resources.scorer.first(left, whole)
            left -= count
            yield chunk

    def _check(self, shard: Shard, index: ShardIndex | None) -> None:
        known = self._done.get(shard.number)
        if known is None:
            return
        if index is None or not known.holds(shard) or known.digest != index.digest:
            raise self._changed(known)
        is_left_out = (known.unsampled and self._job.share >= 1) or (known.bad and not self._job.skip_bad)
        if is_left_out or known.rows != index.rows or known.lines != index.lines:
            message = f"of {index.rows:,} records there are {known.records:,} results"
            advice = f"remove {known.results}, and --resume scores them again"
            raise InvalidInput(f"{self._name}: cannot be resumed: {self._lines(known)}: {message}; {advice}")

    def _lines(self, known: ShardDescription) -> str:
        return f"lines {known.first_line} to {known.last_line} of {self._job.dataset_name}"

    def _changed(self, known: ShardDescription) -> InvalidInput:
        what = f"{self._name}: cannot be resumed: it holds the results of another dataset"
        advice = "Use the dataset as it was, or another output file."
        return InvalidInput(f"{what}: {self._lines(known)} have changed. {advice}")
