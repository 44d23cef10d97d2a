"""Datasets as a stream of chunks: JSON lines, CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import orjson

from ..base.extras import needs_extra
from ..base.files import open_regular
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput

# Results take up to twenty times as much, and what is in memory once should not be asked of the system again.
CHUNK_BYTES = 1 << 16
LONGEST_LINE = 16 << 20


class BadRecord(ValueError):
    """A record that cannot be read or scored, named by file and line."""

    def __init__(self, path: str, line: int, message: str) -> None:
        self.path, self.line, self.message = path, line, message
        super().__init__(f"{path}:{line}: {message}")

    def __reduce__(self) -> tuple[type[BadRecord], tuple[str, int, str]]:
        return BadRecord, (self.path, self.line, self.message)


STANDARD_INPUT = Path("/dev/stdin")


class DatasetError(InvalidInput):
    """A dataset that cannot be read at all."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: where it is, and what is in it or wrong with it."""

    line: int
    share: float
    content: dict[str, Any] | BadRecord


def check_readable(path: Path) -> None:
    """Refuse what is no dataset before anything is written."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None
    if not os.access(path, os.R_OK):
        raise DatasetError(f"{path}: cannot be read: no permission")
    if path.is_dir():
        raise DatasetError(f"{path}: is a folder; name a .jsonl, .csv, .tsv or .parquet file")
    if not path.is_file() and path != STANDARD_INPUT:
        hint = f"save what it gives to a file first, or name {STANDARD_INPUT}"
        raise DatasetError(f"{path}: is a pipe or a device, not a file; {hint}")
    if size == 0 and path.is_file():
        raise DatasetError(f"{path}:1: is empty; a dataset needs at least one record")


def _opened(path: Path) -> BufferedReader:
    """The dataset itself; a pipe only where the caller has opened it for us."""
    return open(path, "rb") if path == STANDARD_INPUT else open_regular(path)


class LineSource(Protocol):
    """A file, or a part of one, that is read from front to end."""

    def read(self, size: int, /) -> bytes: ...
    def readline(self, size: int, /) -> bytes: ...
    def tell(self) -> int: ...


def share_of(file: LineSource, size: int) -> float:
    """How much of the file has been read; a pipe has no size and never says."""
    return min(1.0, file.tell() / size) if size else 0.0


def too_long(name: str, number: int) -> BadRecord:
    return BadRecord(name, number, f"the line is longer than {LONGEST_LINE >> 20} MB")


def skip_line(file: LineSource) -> None:
    """Go to the end of an oversized line in bounded memory."""
    while (part := file.readline(CHUNK_BYTES)) and not part.endswith(b"\n"):
        pass


BOM = b"\xef\xbb\xbf"
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
    def rows(self) -> int:
        """How many records it holds, good or bad; an empty line is none."""
        return len(self.bad) + sum(1 for _, text in self.lines() if text and not text.isspace())

    @property
    def last_line(self) -> int:
        last = self.numbers[-1] if self.numbers else 0
        return max(last, *(bad.line for bad in self.bad)) if self.bad else last

    def between(self, after: int, last: int) -> Chunk:
        """The part of the chunk after one line and up to another."""
        part = [(number, line) for number, line in self.lines() if after < number <= last]
        bad = [problem for problem in self.bad if after < problem.line <= last]
        return Chunk(b"\n".join(line for _, line in part), [number for number, _ in part], bad, self.share)


def read_chunks(
    path: Path, *, chunk_bytes: int = CHUNK_BYTES, response_column: str = "response"
) -> Iterator[Chunk]:
    """The records of a dataset in chunks of about ``chunk_bytes``."""
    check_readable(path)
    match path.suffix.lower():
        case ".csv" | ".tsv":
            return packed(csv_rows(path, response_column), chunk_bytes)
        case ".parquet":
            return packed(parquet_rows(path), chunk_bytes)
        case _:
            return _json_lines(path, chunk_bytes)


def _json_lines(path: Path, chunk_bytes: int) -> Iterator[Chunk]:
    size = path.stat().st_size
    with _opened(path) as file:
        if file.peek(3).startswith(BOM):
            file.read(3)
        yield from lines_of(file, str(path), chunk_bytes, size)


def lines_of(file: LineSource, name: str, chunk_bytes: int, size: int, number: int = 1) -> Iterator[Chunk]:
    """The lines from where a file is read on, the first of which has a number."""
    rest, bad = b"", list[BadRecord]()
    while block := file.read(chunk_bytes):
        cut = block.rfind(b"\n")
        if cut < 0:
            rest += block
            if len(rest) > LONGEST_LINE:
                bad.append(too_long(name, number))
                skip_line(file)
                number, rest = number + 1, b""
            continue
        if rest and len(rest) + (first := block.find(b"\n")) > LONGEST_LINE:
            # Whether a line is too long must not depend on how the file is read.
            bad.append(too_long(name, number))
            number, rest, block, cut = number + 1, b"", block[first + 1 :], cut - first - 1
            if cut < 0:
                rest = block
                continue
        data, rest = rest + block[:cut], block[cut + 1 :]
        count = data.count(b"\n") + 1
        yield Chunk(data, range(number, number + count), bad, share_of(file, size))
        number, bad = number + count, []
    if rest or bad:
        yield Chunk(rest, range(number, number + 1) if rest else (), bad, 1.0)


def packed(rows: Iterator[Row], chunk_bytes: int) -> Iterator[Chunk]:
    """Rows of a table as chunks of JSON lines, the form in which work goes to the workers."""
    numbers, lines, bad, size, share = list[int](), list[bytes](), list[BadRecord](), 0, 0.0
    for row in rows:
        share = row.share
        if isinstance(row.content, BadRecord):
            bad.append(row.content)
            size += _BAD_BYTES
        else:
            numbers.append(row.line)
            lines.append(orjson.dumps(row.content, default=_as_text, option=orjson.OPT_NON_STR_KEYS))
            size += len(lines[-1])
        if size >= chunk_bytes:
            yield Chunk(b"\n".join(lines), numbers, bad, share)
            numbers, lines, bad, size = [], [], [], 0
    if numbers or bad:
        yield Chunk(b"\n".join(lines), numbers, bad, share)


def _as_text(value: object) -> str:
    """What JSON has no form for. A column of bytes is how some programs write texts into Parquet."""
    with suppress(UnicodeDecodeError):
        if isinstance(value, bytes):
            return value.decode()
    return str(value)


class _Lines:
    """The lines of a file as text. A bad one raises, and the next call goes on after it."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self.number = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LONGEST_LINE)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            skip_line(self._file)
            raise too_long(str(self._path), self.number)
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise BadRecord(str(self._path), self.number, "is not UTF-8 text") from None


def csv_rows(path: Path, response_column: str = "response") -> Iterator[Row]:
    """The rows of a CSV or TSV file; the first one names the columns.

    An empty cell says nothing, as a missing field does, but for the response: an empty answer is an answer.
    """
    csv.field_size_limit(LONGEST_LINE)
    dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    size = path.stat().st_size
    with _opened(path) as file:
        lines = _Lines(file, path)
        reader = csv.reader(lines, dialect=dialect, strict=True)
        header = _header(path, reader)
        while True:
            line = lines.number + 1
            try:
                cells = next(reader)
                content = _content(path, line, header, cells, response_column) if cells else None
            except StopIteration:
                return
            except BadRecord as error:
                content = error
            except csv.Error as error:
                content = BadRecord(str(path), line, f"is not valid CSV: {error}")
            if content is not None:
                yield Row(line, share_of(file, size), content)


def _header(path: Path, reader: Iterator[list[str]]) -> list[str]:
    """The names of the columns; without them no row can be read, so nothing here is ever skipped."""
    try:
        names = [cell.strip() for cell in next(reader, list[str]())]
    except BadRecord as error:
        raise DatasetError(str(error)) from None
    except csv.Error as error:
        raise DatasetError(f"{path}:1: is not valid CSV: {error}") from None
    if not any(names) or any("\0" in name for name in names):
        raise DatasetError(f"{path}:1: the first line must name the columns, in UTF-8 text")
    _check_columns(path, names)
    for name in names:
        if inside := next((other for other in names if other.startswith(f"{name}.")), None):
            raise DatasetError(f'{path}:1: column "{inside}" reaches into "{name}", which is a column itself')
    return names


def _content(
    path: Path, line: int, header: list[str], cells: list[str], response_column: str
) -> dict[str, Any] | BadRecord:
    if len(cells) != len(header):
        return BadRecord(str(path), line, f"has {len(cells)} cells where the header has {len(header)}")
    row: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        if cell != "" or name == response_column:
            _put(row, name.split("."), cell)
    return row


def _put(row: dict[str, Any], parts: list[str], cell: str) -> None:
    """``context.order`` as a column name reaches into ``context``."""
    for part in parts[:-1]:
        row = cast(dict[str, Any], row.setdefault(part, {}))
    row[parts[-1]] = cell


def parquet_rows(
    path: Path | str, source: Any = None, groups: Sequence[int] | None = None, number: int = 0
) -> Iterator[Row]:
    """The rows of a Parquet file, counted from 1.

    Those of some row groups, before the first of which come ``number`` rows; from an open file where given.
    """
    parquet = parquet_reader(path)
    try:
        with parquet.ParquetFile(path if source is None else source) as file:
            total = file.metadata.num_rows
            _check_columns(path, file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=256, row_groups=groups):
                for row in _python_rows(batch):
                    number += 1
                    yield Row(number, number / total, _parquet_content(path, number, row))
    except DatasetError:
        raise
    except _ARROW_ERRORS as error:
        # A file may break after many good rows.
        raise unreadable_parquet(path, number + 1, error) from None


def _python_rows(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """The rows of a batch; where one holds what Python cannot, only that one is lost."""
    try:
        yield from batch.to_pylist()
    except _ARROW_ERRORS:
        for place in range(batch.num_rows):
            try:
                yield from batch.slice(place, 1).to_pylist()
            except _ARROW_ERRORS as error:
                yield error


def _parquet_content(
    path: Path | str, number: int, row: dict[str, Any] | Exception
) -> dict[str, Any] | BadRecord:
    if isinstance(row, Exception):
        return BadRecord(str(path), number, f"holds a value that cannot be read: {_reason(row)}")
    return {key: item for key, item in row.items() if item is not None}


# A moment that Python's years do not reach overflows.
_ARROW_ERRORS = (OSError, ValueError, TypeError, OverflowError, NotImplementedError)


def unreadable_parquet(path: Path | str, line: int, error: Exception) -> DatasetError:
    return DatasetError(f"{path}:{line}: is not a readable Parquet file: {_reason(error)}")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _check_columns(path: Path | str, names: Sequence[str]) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DatasetError(f'{path}:1: column "{twice}" appears twice')


def parquet_reader(path: Path | str) -> Any:
    """The library that reads Parquet."""
    with needs_extra("parquet", f"{path}: reading Parquet", DatasetError):
        return import_module("pyarrow.parquet")
