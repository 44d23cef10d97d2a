"""Datasets as a stream of chunks: JSON lines, CSV, and Parquet where pyarrow is installed.

Memory stays flat whatever the size of the file. Every chunk knows the line of each of its records, so
that a bad one is named by file and line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

CHUNK_BYTES = 1 << 18
LONGEST_LINE = 16 << 20


class BadRecord(ValueError):
    """A record that cannot be read or scored, named by file and line."""

    def __init__(self, path: str, line: int, message: str) -> None:
        self.path, self.line, self.message = path, line, message
        super().__init__(f"{path}:{line}: {message}")

    def __reduce__(self) -> tuple[type[BadRecord], tuple[str, int, str]]:
        return BadRecord, (self.path, self.line, self.message)


class DatasetError(ValueError):
    """A dataset that cannot be read at all."""


@dataclass(slots=True)
class Chunk:
    """Some records as JSON lines, with the line each came from and what could not be read on the way."""

    data: bytes
    numbers: Sequence[int]
    bad: list[BadRecord] = field(default_factory=list[BadRecord])

    def lines(self) -> Iterator[tuple[int, bytes]]:
        return zip(self.numbers, self.data.split(b"\n"), strict=False)

    @property
    def last_line(self) -> int:
        last = self.numbers[-1] if self.numbers else 0
        return max(last, *(bad.line for bad in self.bad)) if self.bad else last


def read_chunks(path: Path, *, after: int = 0, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The records of a dataset after a line, in chunks of about ``chunk_bytes``."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None
    if path.is_dir():
        raise DatasetError(f"{path}: is a folder; name a .jsonl, .csv or .parquet file")
    if size == 0:
        raise DatasetError(f"{path}: is empty; a dataset needs at least one record")
    match path.suffix.lower():
        case ".csv" | ".tsv":
            return _packed(path, _csv_rows(path), after, chunk_bytes)
        case ".parquet":
            return _packed(path, _parquet_rows(path), after, chunk_bytes)
        case _:
            return _json_lines(path, after, chunk_bytes)


def _json_lines(path: Path, after: int, chunk_bytes: int) -> Iterator[Chunk]:
    number, rest, bad = 1, b"", list[BadRecord]()
    with open(path, "rb") as file:
        if file.read(3) != b"\xef\xbb\xbf":
            file.seek(0)
        while block := file.read(chunk_bytes):
            cut = block.rfind(b"\n")
            if cut < 0:
                rest += block
                if len(rest) > LONGEST_LINE:
                    bad.append(_too_long(path, number))
                    rest = _rest_of_line(file, chunk_bytes)
                    number += 1
                continue
            data, rest = rest + block[:cut], block[cut + 1 :]
            count = data.count(b"\n") + 1
            yield from _after(Chunk(data, range(number, number + count), bad), after)
            number, bad = number + count, []
    if rest or bad:
        yield from _after(Chunk(rest, range(number, number + 1) if rest else (), bad), after)


def _after(chunk: Chunk, after: int) -> Iterator[Chunk]:
    """The chunk without the records up to a line; nothing if none is left."""
    if chunk.last_line <= after:
        return
    if chunk.numbers and chunk.numbers[0] <= after:
        kept = [(number, line) for number, line in chunk.lines() if number > after]
        data = b"\n".join(line for _, line in kept)
        chunk = Chunk(data, [number for number, _ in kept], [b for b in chunk.bad if b.line > after])
    yield chunk


def _too_long(path: Path, number: int) -> BadRecord:
    return BadRecord(str(path), number, f"the line is longer than {LONGEST_LINE >> 20} MB")


def _rest_of_line(file: io.BufferedReader, chunk_bytes: int) -> bytes:
    """Skip to the end of an oversized line in bounded memory; what follows it in the block is kept."""
    while block := file.read(chunk_bytes):
        cut = block.find(b"\n")
        if cut >= 0:
            file.seek(cut + 1 - len(block), io.SEEK_CUR)
            return b""
    return b""


Row = tuple[int, dict[str, Any] | BadRecord]


def _packed(path: Path, rows: Iterator[Row], after: int, chunk_bytes: int) -> Iterator[Chunk]:
    numbers, lines, bad, size = list[int](), list[bytes](), list[BadRecord](), 0
    for number, row in rows:
        if number <= after:
            continue
        if isinstance(row, BadRecord):
            bad.append(row)
            continue
        line = orjson.dumps(row, default=str)
        numbers.append(number)
        lines.append(line)
        size += len(line)
        if size >= chunk_bytes:
            yield Chunk(b"\n".join(lines), numbers, bad)
            numbers, lines, bad, size = [], [], [], 0
    if numbers or bad:
        yield Chunk(b"\n".join(lines), numbers, bad)


def _csv_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_LINE)
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(
            file, dialect="excel-tab" if path.suffix.lower() == ".tsv" else "excel", strict=True
        )
        header: list[str] | None = None
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except UnicodeDecodeError:
                # Nothing after the first undecodable byte can be trusted to be where it seems.
                raise BadRecord(str(path), line, "is not UTF-8 text") from None
            except csv.Error as error:
                yield line, BadRecord(str(path), line, f"is not valid CSV: {error}")
                continue
            if header is None:
                header = _header(path, cells)
            elif cells:
                yield line, _csv_row(path, line, header, cells)


def _header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DatasetError(f'{path}:1: column "{twice}" appears twice')
    return names


def _csv_row(path: Path, line: int, header: list[str], cells: list[str]) -> dict[str, Any] | BadRecord:
    if len(cells) != len(header):
        return BadRecord(str(path), line, f"has {len(cells)} cells where the header has {len(header)}")
    row: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        if cell != "":
            _put(row, name.split("."), cell)
    return row


def _put(row: dict[str, Any], parts: list[str], value: Any) -> None:
    """``context.order`` as a column name reaches into ``context``."""
    for part in parts[:-1]:
        inner = row.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        row = inner  # pyright: ignore[reportUnknownVariableType]
    row[parts[-1]] = value


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise DatasetError(
            f'{path}: reading Parquet needs pyarrow. Install it with: pip install "evalstudio[parquet]"'
        ) from None
    try:
        source: Any = parquet.ParquetFile(path)
    except Exception as error:
        raise DatasetError(f"{path}: is not a Parquet file: {error}") from None
    number = 0
    for batch in source.iter_batches(batch_size=1024):
        for row in batch.to_pylist():
            number += 1
            yield number, {key: item for key, item in row.items() if item is not None}
