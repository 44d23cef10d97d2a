"""Results in shards at an address, where nothing can be appended and nothing can be locked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

from ..base.problems import InvalidInput
from .addresses import Address
from .datasets import DatasetError
from .plan import ScoringJob, ScoringPlan
from .results_file import checked_settings, fingerprint
from .retrying import line_of, replaced_lines
from .shard_descriptions import (
    BadShard,
    ShardDescription,
    description_name,
    is_half_written,
    is_of_shard,
    read_manifest,
)
from .shard_folders import MANIFEST, AddressFolder, check_start
from .shard_results import Ids, MergedShards, ScoredShard, ShardedResults, ShardWriter
from .summary import DatasetSummary


class KeptShards(ShardedResults):
    """Results of shards that stay as they are, in a folder at an address.

    In the order of their names the files of a job that is done are its results. Files are written once; which
    of them count is said by the manifest, which is written when all of them are there.
    """

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary, address: str) -> None:
        super().__init__(job, plan, summary)
        self._folder = AddressFolder(Address(address))
        # In order; of a shard that was written twice only one counts.
        self._kept: dict[int, ShardDescription] = {}

    @property
    def name(self) -> str:
        return self._folder.name

    def __enter__(self) -> Self:
        listing, mark = self._folder.listing(), fingerprint(self._job, self._plan)
        if self._job.resume and MANIFEST in listing:
            manifest = self._read_manifest(self._folder)
            checked_settings(manifest.settings, mark, self.name)
            self._go_on(self._folder, manifest)
            self._claim()
            self._clear_away(self._folder)
            return self
        self._check_replaceable(listing)
        # First of all: who writes there still is told to stop, and what a stop leaves is known as ours.
        self._claim(settings=mark)
        for name in filter(is_of_shard, listing):
            self._folder.remove(name)
        return self

    def _check_replaceable(self, listing: Iterable[str]) -> None:
        """A folder that holds anything but results of ours is somebody's work."""
        if all(map(is_half_written, listing)):
            return
        try:
            if MANIFEST not in listing:
                raise BadShard
            read_manifest(self._folder)
        except BadShard:
            message = "holds something, but no results, so it is not overwritten; name another folder"
            raise InvalidInput(f"{self.name}: {message}") from None

    def _claim(self, **changes: Any) -> None:
        """From here on the folder is this command's, whoever had it before."""
        self._folder = self.folder = replace(self._folder, start=self._start)
        super()._change_manifest(**changes)

    def _change_manifest(self, **changes: Any) -> None:
        check_start(self._folder)
        super()._change_manifest(**changes)

    def _note_unfinished(self) -> None:
        if self._manifest.results is not None:
            self._change_manifest(is_complete=False, partial=None, results=None)

    def _append(self, scored: ScoredShard, ids: Ids) -> None:
        self._kept[scored.number] = scored.description
        if scored.summary is None:
            self._count(self._results_of(self._folder, scored.description))
        super()._append(scored, ids)

    def finish(self, partial: str | None = None) -> None:
        super().finish(partial)
        # Where it ends early, shards behind those that are missing count as well.
        for number in sorted(self._waiting):
            self._append(*self._waiting.pop(number))
        check_start(self._folder)
        listing, names = self._folder.listing(), list[str]()
        for _, shard in sorted(self._kept.items()):
            if shard.results is None or listing.get(shard.results) != shard.size:
                message = f"{shard.results} is gone, or was changed, while others were written"
                raise DatasetError(f"{self.name}: {message}; run again with --resume to score it again")
            names.append(shard.results)
        self._change_manifest(is_complete=partial is None, partial=partial, results=names)
        counted = {MANIFEST, *names, *map(description_name, names)}
        for name in filter(is_of_shard, listing):
            if name not in counted:
                self._folder.remove(name)

    def results(self) -> Iterator[dict[str, Any]]:
        for _, shard in sorted(self._kept.items()):
            yield from self._results_of(self._folder, shard)

    def replace(self, fresh: Iterator[bytes]) -> int:
        """A shard with fresh results is written anew, and counts from its new description on."""
        count, following = 0, next(fresh, None)
        for number, shard in sorted(self._kept.items()):
            own = list[bytes]()
            while following is not None and line_of(following) <= shard.last_line:
                own.append(following)
                following = next(fresh, None)
            if own:
                self._kept[number], replaced = self._mended(shard, own)
                count += replaced
        return count

    def _mended(self, shard: ShardDescription, fresh: list[bytes]) -> tuple[ShardDescription, int]:
        assert shard.results is not None
        writer, replaced = ShardWriter(self._folder, shard.number), list[int]()
        try:
            with self._folder.open(shard.results) as old:
                for line in replaced_lines(old, iter(fresh), replaced):
                    writer.write(line)
            again = shard.model_copy(update={"attempt": shard.attempt + 1})
            return writer.commit(again), len(replaced)
        except BaseException:
            writer.discard()
            raise


def results_of(job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary) -> ShardedResults:
    """What takes the results of a job's shards to where the job wants them."""
    if job.output_address is not None:
        return KeptShards(job, plan, summary, job.output_address)
    if job.output is not None:
        return MergedShards(job, plan, summary, job.output)
    return ShardedResults(job, plan, summary)
