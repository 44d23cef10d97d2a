"""Tables as rows: CSV and TSV in bounded memory, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from .dataset_files import (
    LONGEST_LINE,
    BadRecord,
    DatasetError,
    Row,
    share_of,
    skip_line,
    too_long,
)


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
            raise too_long(self._path, self.number)
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise BadRecord(str(self._path), self.number, "is not UTF-8 text") from None


def csv_rows(path: Path) -> Iterator[Row]:
    """The rows of a CSV or TSV file; the first one names the columns."""
    csv.field_size_limit(LONGEST_LINE)
    dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    size = path.stat().st_size
    with open(path, "rb") as file:
        lines = _Lines(file, path)
        reader = csv.reader(lines, dialect=dialect, strict=True)
        header = _header(path, reader)
        while True:
            line = lines.number + 1
            try:
                cells = next(reader)
                content = _content(path, line, header, cells) if cells else None
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
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DatasetError(f'{path}:1: column "{twice}" appears twice')
    for name in names:
        if inside := next((other for other in names if other.startswith(f"{name}.")), None):
            raise DatasetError(f'{path}:1: column "{inside}" reaches into "{name}", which is a column itself')
    return names


def _content(path: Path, line: int, header: list[str], cells: list[str]) -> dict[str, Any] | BadRecord:
    if len(cells) != len(header):
        return BadRecord(str(path), line, f"has {len(cells)} cells where the header has {len(header)}")
    row: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        # An empty cell says nothing, as a missing field does.
        if cell != "":
            _put(row, name.split("."), cell)
    return row


def _put(row: dict[str, Any], parts: list[str], cell: str) -> None:
    """``context.order`` as a column name reaches into ``context``."""
    for part in parts[:-1]:
        row = cast(dict[str, Any], row.setdefault(part, {}))
    row[parts[-1]] = cell


def parquet_rows(path: Path) -> Iterator[Row]:
    """The rows of a Parquet file, counted from 1."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise DatasetError(
            f'{path}: reading Parquet needs pyarrow. Install it with: pip install "evalstudio[parquet]"'
        ) from None
    number = 0
    try:
        with parquet.ParquetFile(path) as source:
            total = source.metadata.num_rows
            for batch in source.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    content = {key: item for key, item in row.items() if item is not None}
                    yield Row(number, number / total, content)
    except (OSError, ValueError) as error:
        # pyarrow's errors are these two; a file may break after many good rows.
        raise DatasetError(f"{path}:{number + 1}: is not a readable Parquet file: {error}") from None
