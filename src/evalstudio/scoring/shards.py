"""A dataset in shards that can be read one by one: byte ranges of JSON lines, row groups of Parquet.

Shards of what can only be read from front to end carry their records along.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from io import SEEK_END, BufferedReader
from itertools import pairwise
from typing import Literal

from ..base.lazy_dataclass import dataclass
from .dataset_files import DatasetFile
from .datasets import (
    BOM,
    CHUNK_BYTES,
    Chunk,
    DatasetError,
    LineSource,
    lines_of,
    packed,
    parquet_reader,
    parquet_rows,
    skip_line,
    unreadable_parquet,
)

Cut = Literal["bytes", "rowGroups", "lines"]
"""What the ends of shards are counted in."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a dataset: from one place up to another, which is the first of the next shard.

    ``first_line`` is the number of its first record. ``chunks`` are its records where it carries them along.
    ``digest`` tells whether it still holds what it held when it was cut: the hash of its records where they
    were read, of what the file says of all its row groups where it is one of those.
    """

    number: int
    cut: Cut
    start: int
    end: int
    first_line: int = 1
    share: float = 0.0
    chunks: tuple[Chunk, ...] = ()
    digest: str | None = None

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        match self.cut:
            case "bytes":
                return f"bytes {self.start:,} to {self.end:,}"
            case "rowGroups":
                return f"row groups {self.start:,} to {self.end - 1:,}, from row {self.first_line:,} on"
            case "lines":
                return f"lines {self.start:,} to {self.end - 1:,}"

    def read(self, dataset: DatasetFile, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        """The records of the shard, with the numbers that they have in the dataset."""
        match self.cut:
            case "bytes":
                return _read_bytes(self, dataset, chunk_bytes)
            case "rowGroups":
                return _read_groups(self, dataset, chunk_bytes)
            case "lines":
                return iter(self.chunks)


@dataclass(frozen=True, slots=True)
class ShardIndex:
    """How many lines a shard has, how many of them are records, good or bad, and a hash of these."""

    lines: int
    rows: int
    digest: str


def changed_meanwhile(dataset: DatasetFile, first_line: int) -> DatasetError:
    message = "its records are not those that it had when this began"
    return DatasetError(f"{dataset.name}:{first_line}: {message}; run again when nobody writes to it")


class ShardHash:
    """A hash of the records of a shard, however they are cut into chunks, whatever line it begins with."""

    def __init__(self, first_line: int) -> None:
        self._hash, self._first = hashlib.blake2b(digest_size=16), first_line
        # By itself, for it depends on the chunks between which lines a bad one is told.
        self._bad = hashlib.blake2b(digest_size=16)

    def add(self, chunk: Chunk) -> None:
        if chunk.numbers:
            self._hash.update(chunk.data)
            self._hash.update(b"\n")
        for problem in chunk.bad:
            self._bad.update(f"\0{problem.line - self._first}\0{problem.message}\0".encode())

    def hexdigest(self) -> str:
        whole = self._hash.copy()
        whole.update(self._bad.digest())
        return whole.hexdigest()


def index_shard(shard: Shard, dataset: DatasetFile) -> ShardIndex:
    """What a shard holds, read once and not scored."""
    return index_chunks(shard.read(dataset), shard.first_line)


def index_chunks(chunks: Iterable[Chunk], first_line: int) -> ShardIndex:
    digest, last, rows = ShardHash(first_line), first_line - 1, 0
    for chunk in chunks:
        digest.add(chunk)
        last = max(last, chunk.last_line)
        rows += chunk.rows
    return ShardIndex(last - first_line + 1, rows, digest.hexdigest())


class _ByteRange:
    """The bytes of a file up to an end."""

    def __init__(self, file: LineSource, end: int) -> None:
        self._file, self._end = file, end

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, self._end - self._file.tell()))

    def readline(self, size: int, /) -> bytes:
        return self._file.readline(min(size, self._end - self._file.tell()))

    def tell(self) -> int:
        return self._file.tell()


def _read_bytes(shard: Shard, dataset: DatasetFile, chunk_bytes: int) -> Iterator[Chunk]:
    size = dataset.size
    if size < shard.end:
        raise DatasetError(f"{dataset.name}: has become shorter than it was; what was cut off is not scored")
    with dataset.open() as file:
        file.seek(shard.start)
        if shard.start == 0 and file.peek(3).startswith(BOM):
            file.read(3)
        part = _ByteRange(file, shard.end)
        yield from lines_of(part, dataset.name, chunk_bytes, size, shard.first_line)


def _read_groups(shard: Shard, dataset: DatasetFile, chunk_bytes: int) -> Iterator[Chunk]:
    with dataset.open() as file:
        groups = range(shard.start, shard.end)
        if _footer_digest(file) != shard.digest:
            raise changed_meanwhile(dataset, shard.first_line)
        file.seek(0)
        yield from packed(parquet_rows(dataset.name, file, groups, shard.first_line - 1), chunk_bytes)


def _footer_digest(file: BufferedReader) -> str:
    """A hash of what a Parquet file says of its row groups: sizes, places and statistics of their columns."""
    size = file.seek(0, SEEK_END)
    file.seek(max(0, size - _FOOTER_END))
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(0, size - _FOOTER_END - length))
    return hashlib.blake2b(file.read(length), digest_size=16).hexdigest()


# The length of the footer, and the mark of the format.
_FOOTER_END = 8


def can_be_cut(dataset: DatasetFile) -> Cut:
    """What a dataset can be cut by; ``lines`` where it is read from front to end."""
    match dataset.suffix:
        case ".csv" | ".tsv":
            return "lines"
        case ".parquet":
            return "rowGroups"
        case _:
            return "bytes"


def shard_bytes(size: int, workers: int, *, asks_models: bool, has_budget: bool = False) -> int:
    """How large shards are: several for each worker, not too many, and none that takes minutes.

    What waits for a model is cut finely: a shard that is lost is paid for twice. With a budget it is cut more
    finely still: a shard that is begun is finished.
    """
    least, most, of_each = (1 << 14, 1 << 18, 16) if asks_models else (1 << 18, 1 << 24, 4)
    if asks_models and has_budget:
        most = least
    return max(least, min(most, size // (workers * of_each)), size // _MOST_SHARDS)


_MOST_SHARDS = 5_000
Ends = Mapping[int, int]
"""Where shards that were scored before end, by their numbers; they are cut as they were."""


def byte_shards(dataset: DatasetFile, size: int, ends: Ends) -> list[Shard]:
    """JSON lines in ranges of about ``size`` bytes that begin and end with a line."""
    total, places = dataset.size, [0]
    with dataset.open() as file:
        while places[-1] < total:
            number, start = len(places) - 1, places[-1]
            end = ends.get(number) or _line_start(file, start + size)
            places.append(min(end, total) if end > start else total)
    return [Shard(n, "bytes", *span, share=span[1] / total) for n, span in enumerate(pairwise(places))]


def _line_start(file: BufferedReader, place: int) -> int:
    """Where the first line begins that begins at a place or after it."""
    file.seek(place - 1)
    skip_line(file)
    return file.tell()


def group_shards(dataset: DatasetFile, size: int, ends: Ends) -> list[Shard]:
    """Row groups of a Parquet file, several small ones together."""
    parquet = parquet_reader(dataset.name)
    try:
        with dataset.open() as file:
            digest = _footer_digest(file)
            file.seek(0)
            facts = parquet.read_metadata(file)
    except (OSError, ValueError) as error:
        raise unreadable_parquet(dataset.name, 1, error) from None
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    sizes = [(group.num_rows, group.total_byte_size) for group in groups]
    shards: list[Shard] = []
    start, rows, weight_so_far = 0, 0, 0
    first_line, total = 1, sum(rows for rows, _ in sizes)
    for number, (count, weight) in enumerate(sizes, 1):
        rows, weight_so_far = rows + count, weight_so_far + weight
        known = ends.get(len(shards))
        if number == len(sizes) or (weight_so_far >= size if known is None else number >= known):
            share = (first_line + rows - 1) / max(1, total)
            shards.append(Shard(len(shards), "rowGroups", start, number, first_line, share, digest=digest))
            start, first_line, rows, weight_so_far = number, first_line + rows, 0, 0
    return shards


def numbered(shards: Iterable[Shard], indexes: Iterable[ShardIndex]) -> Iterator[Shard]:
    """Shards with the numbers of their first lines, from how many lines each has."""
    first = 1
    for shard, index in zip(shards, indexes, strict=True):
        yield replace(shard, first_line=first, digest=index.digest)
        first += index.lines


def carried_shards(chunks: Iterator[Chunk], size: int, ends: Ends) -> Iterator[Shard]:
    """Shards that carry their records along, each of about ``size`` bytes; places are lines."""
    number, start, carried, weight = 0, 1, list[Chunk](), 0

    def made(end: int) -> Shard:
        return Shard(number, "lines", start, end, start, carried[-1].share, tuple(carried))

    for whole in chunks:
        chunk = whole
        while chunk.numbers or chunk.bad:
            end = known if (known := ends.get(number, 0)) > start else None
            part = chunk if end is None else chunk.between(start - 1, end - 1)
            if part.numbers or part.bad:
                carried.append(part)
                weight += len(part.data)
            is_over = weight >= size if end is None else chunk.last_line >= end - 1
            if not is_over:
                break
            last = carried[-1].last_line if end is None else end - 1
            if carried:
                yield made(last + 1)
            number, start, carried, weight = number + 1, last + 1, [], 0
            chunk = chunk.between(last, chunk.last_line)
    if carried:
        yield made(carried[-1].last_line + 1)


def whole_dataset(dataset: DatasetFile, chunk_bytes: int) -> Iterator[Chunk]:
    """A dataset at an address from its beginning to its end."""
    dataset.check()
    cut = can_be_cut(dataset)
    if cut == "lines":
        message = "CSV and TSV are read from a path; save it there, or as JSON lines or Parquet"
        raise DatasetError(f"{dataset.name}: {message}")
    shards = group_shards(dataset, 1, {}) if cut == "rowGroups" else [Shard(0, cut, 0, dataset.size)]
    for shard in shards:
        yield from shard.read(dataset, chunk_bytes)
