"""Datasets as a stream of chunks: JSON lines, CSV, and Parquet where pyarrow is installed.

Memory stays flat whatever the size of the file. Every chunk knows the line of each of its records, so
that a bad one is named by file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from .dataset_files import (
    CHUNK_BYTES,
    LONGEST_LINE,
    BadRecord,
    Row,
    check_readable,
    share_of,
    skip_line,
    too_long,
)
from .tables import csv_rows, parquet_rows

_BOM = b"\xef\xbb\xbf"
# What a bad record weighs in a chunk, so that a file full of them is cut into chunks too.
_BAD_BYTES = 256


@dataclass(slots=True)
class Chunk:
    """Some records as JSON lines, with the line each came from and what could not be read on the way.

    ``share`` is how much of the dataset has been read with its end.
    """

    data: bytes
    numbers: Sequence[int]
    bad: list[BadRecord] = field(default_factory=list[BadRecord])
    share: float = 0.0

    def lines(self) -> Iterator[tuple[int, bytes]]:
        return zip(self.numbers, self.data.split(b"\n"), strict=False)

    @property
    def last_line(self) -> int:
        last = self.numbers[-1] if self.numbers else 0
        return max(last, *(bad.line for bad in self.bad)) if self.bad else last

    def between(self, after: int, last: int) -> Chunk:
        """The part of the chunk after one line and up to another."""
        kept = [(number, line) for number, line in self.lines() if after < number <= last]
        bad = [problem for problem in self.bad if after < problem.line <= last]
        return Chunk(b"\n".join(line for _, line in kept), [number for number, _ in kept], bad, self.share)


def read_chunks(path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The records of a dataset in chunks of about ``chunk_bytes``."""
    check_readable(path)
    match path.suffix.lower():
        case ".csv" | ".tsv":
            return _packed(csv_rows(path), chunk_bytes)
        case ".parquet":
            return _packed(parquet_rows(path), chunk_bytes)
        case _:
            return _json_lines(path, chunk_bytes)


def _json_lines(path: Path, chunk_bytes: int) -> Iterator[Chunk]:
    number, rest, bad = 1, b"", list[BadRecord]()
    size = path.stat().st_size
    with open(path, "rb") as file:
        if file.peek(3).startswith(_BOM):
            file.read(3)
        while block := file.read(chunk_bytes):
            cut = block.rfind(b"\n")
            if cut < 0:
                rest += block
                if len(rest) > LONGEST_LINE:
                    bad.append(too_long(path, number))
                    skip_line(file)
                    number, rest = number + 1, b""
                continue
            data, rest = rest + block[:cut], block[cut + 1 :]
            count = data.count(b"\n") + 1
            yield Chunk(data, range(number, number + count), bad, share_of(file, size))
            number, bad = number + count, []
    if rest or bad:
        yield Chunk(rest, range(number, number + 1) if rest else (), bad, 1.0)


def _packed(rows: Iterator[Row], chunk_bytes: int) -> Iterator[Chunk]:
    """Rows of a table as chunks of JSON lines, the form in which work goes to the workers."""
    numbers, lines, bad, size, share = list[int](), list[bytes](), list[BadRecord](), 0, 0.0
    for row in rows:
        share = row.share
        if isinstance(row.content, BadRecord):
            bad.append(row.content)
            size += _BAD_BYTES
        else:
            numbers.append(row.line)
            lines.append(orjson.dumps(row.content, default=str, option=orjson.OPT_NON_STR_KEYS))
            size += len(lines[-1])
        if size >= chunk_bytes:
            yield Chunk(b"\n".join(lines), numbers, bad, share)
            numbers, lines, bad, size = [], [], [], 0
    if numbers or bad:
        yield Chunk(b"\n".join(lines), numbers, bad, share)
