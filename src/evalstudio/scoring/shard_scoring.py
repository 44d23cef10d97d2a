"""Scoring one shard: what a worker does, wherever it lives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import field

from ..base.lazy_dataclass import dataclass
from .dataset_files import DatasetFile
from .datasets import CHUNK_BYTES, BadRecord, Chunk
from .job import MODEL_CHUNK_BYTES, JobResources
from .scorer import ScoredChunk
from .shard_descriptions import ShardDescription
from .shard_folders import ShardFolder, check_start
from .shard_results import ScoredShard, ShardWriter
from .shards import Shard, ShardHash, changed_meanwhile
from .summary import DatasetSummary


@dataclass(slots=True)
class ShardOutcome:
    """What became of a shard, and what the command cannot see: ids of records, or the results as lines."""

    scored: ScoredShard
    failure: BadRecord | None = None
    ids: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    lines: bytes | None = None


class _Reading:
    """The chunks of a shard as they are read, hashed on the way."""

    def __init__(self, shard: Shard, dataset: DatasetFile, chunk_bytes: int) -> None:
        self._chunks, self._shard, self._dataset = shard.read(dataset, chunk_bytes), shard, dataset
        self._hash, self._first = ShardHash(shard.first_line), shard.first_line
        self._last = self._first - 1

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self._chunks:
            self._hash.add(chunk)
            self._last = max(self._last, chunk.last_line)
            yield chunk
        if self._shard.cut == "bytes" and self._shard.digest not in (None, self.digest()):
            raise changed_meanwhile(self._dataset, self._first)

    def lines(self) -> int:
        return self._last - self._first + 1

    def digest(self) -> str:
        return self._hash.hexdigest()


async def score_shard(
    resources: JobResources,
    shard: Shard,
    dataset: DatasetFile,
    folder: ShardFolder | None,
    *,
    send: bool = False,
) -> ShardOutcome:
    """Score a shard to its end, or to its first bad record, which leaves nothing of it.

    Results go into a file in the folder; where they are to be sent, or are not kept at all, it has none.
    """
    size = CHUNK_BYTES if resources.runner.inline else MODEL_CHUNK_BYTES
    reading, summary = _Reading(shard, dataset, size), DatasetSummary()
    if folder is not None:
        check_start(folder)
    writer = ShardWriter(folder, shard.number) if folder is not None else None
    ids, sent, failure = list[tuple[str, int]](), list[bytes](), None
    try:
        async for part in _scored(resources, iter(reading)):
            summary.merge(part.summary)
            failure = failure or part.failure
            if writer is not None:
                writer.write(b"".join(line + b"\n" for line in part.lines))
            elif send:
                sent += part.lines
            if not send and (folder is None or not folder.tells_ids):
                ids += part.ids
        summary.retries += resources.retries()
        lines = b"".join(line + b"\n" for line in sent) if send and writer is None else None
        description = _description(shard, reading, summary)
        if writer is not None and failure is None:
            description = writer.commit(description)
    except BaseException:
        if writer is not None:
            writer.discard()
        raise
    if writer is not None and failure is not None:
        writer.discard()
    return ShardOutcome(ScoredShard(description, summary), failure, ids, lines)


def _description(shard: Shard, reading: _Reading, summary: DatasetSummary) -> ShardDescription:
    # Half characters, as they occur in messages of plugins, cannot be written.
    left_out = [(line, text.encode(errors="replace").decode()) for line, text in summary.left_out]
    return ShardDescription(
        number=shard.number,
        start=shard.start,
        end=shard.end,
        first_line=shard.first_line,
        lines=reading.lines(),
        digest=reading.digest(),
        records=summary.records,
        bad=summary.bad,
        unsampled=summary.unsampled,
        left_out=left_out,
    )


async def _scored(resources: JobResources, chunks: Iterator[Chunk]) -> AsyncIterator[ScoredChunk]:
    if resources.runner.inline:
        for chunk in chunks:
            yield resources.scorer.score_chunk(chunk)
            await asyncio.sleep(0)
        return
    state = ScoredChunk()
    async for results in resources.scorer.stream(chunks, state):
        some = ScoredChunk()
        some.add(*results)
        yield some
    yield state
