"""Results in shards at an address, where nothing can be appended and nothing can be locked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Self

import orjson

from ..base.problems import InvalidInput
from .addresses import Address
from .datasets import DatasetError
from .plan import ScoringJob, ScoringPlan
from .results_file import checked_settings, fingerprint
from .shard_folders import AddressFolder, ShardFolder
from .shard_results import MANIFEST, Ids, MergedShards, ScoredShard, ShardedResults, blocks_of, ids_in
from .summary import DatasetSummary

_RESULTS = re.compile(r"\d{6,}-\w+\.jsonl")
_OURS = re.compile(rf"manifest\.json|\d{{6,}}\.json|{_RESULTS.pattern}")


class KeptShards(ShardedResults):
    """Results of shards that stay as they are, in a folder at an address.

    In the order of their names the files of a job that is done are its results.
    """

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary, address: str) -> None:
        super().__init__(job, plan, summary)
        self._folder = AddressFolder(Address(address))
        # Of the files that count, in order; of a shard that was written twice only one does.
        self._names: dict[str, None] = {}
        self.folder = self._folder

    def __enter__(self) -> Self:
        folder, listing = self._folder, self._folder.listing()
        mark = fingerprint(self._job, self._plan)
        if self._job.resume and MANIFEST in listing:
            self._go_on(folder, folder.name)
            checked_settings(self._manifest.get("settings", {}), mark, folder.name)
            return self
        if listing and MANIFEST not in listing:
            message = "holds something, but no results, so it is not overwritten; name another folder"
            raise InvalidInput(f"{folder.name}: {message}")
        # The manifest goes last: what a stop leaves must be known as ours.
        for name in sorted(listing, key=lambda name: name == MANIFEST):
            if _OURS.fullmatch(name):
                folder.remove(name)
        self._manifest = {"settings": mark, "isComplete": False}
        self._begin_anew()
        return self

    def _append(self, scored: ScoredShard, ids: Ids) -> None:
        if scored.results is not None:
            self._names[scored.results] = None
        super()._append(scored, ids or self._ids_of(scored))

    def _ids_of(self, scored: ScoredShard) -> Iterator[tuple[str, int]]:
        """Of a shard that was scored before."""
        if scored.results is None or scored.number not in self.done:
            return
        with self._folder.open(scored.results) as file:
            for block in blocks_of(file):
                yield from ids_in(block)

    def finish(self) -> None:
        check_token(self._folder, self.token)
        for name in self._folder.listing():
            if _RESULTS.fullmatch(name) and name not in self._names:
                self._folder.remove(name)
        self._manifest |= {"isComplete": True, "results": [*self._names]}
        self._write_manifest()


def check_token(folder: ShardFolder, token: str | None) -> None:
    """Refuse to go on where another command has begun anew: at an address nothing can be locked."""
    if not holds_token(folder, token):
        message = "another command has begun to write there; run again into a folder of its own"
        raise DatasetError(f"{folder.name}: {message}")


def holds_token(folder: ShardFolder, token: str | None) -> bool:
    """Whether this is the folder of the command, and not one of the same name on another machine."""
    try:
        return orjson.loads(folder.read(MANIFEST)).get("token") == token
    except (OSError, orjson.JSONDecodeError):
        return False


def results_of(job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary) -> ShardedResults:
    """What takes the results of a job's shards to where the job wants them."""
    if job.output_address is not None:
        return KeptShards(job, plan, summary, job.output_address)
    if job.output is not None:
        return MergedShards(job, plan, summary, job.output)
    return ShardedResults(job, plan, summary)
