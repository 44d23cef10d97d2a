"""Files that datasets are read from: what makes one unreadable, and how far one has been read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

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
    if size == 0 and path.is_file():
        raise DatasetError(f"{path}:1: is empty; a dataset needs at least one record")


def share_of(file: BinaryIO, size: int) -> float:
    """How much of the file has been read; a pipe has no size and never says."""
    return min(1.0, file.tell() / size) if size else 0.0


def too_long(path: Path, number: int) -> BadRecord:
    return BadRecord(str(path), number, f"the line is longer than {LONGEST_LINE >> 20} MB")


def skip_line(file: BinaryIO) -> None:
    """Go to the end of an oversized line in bounded memory."""
    while (part := file.readline(CHUNK_BYTES)) and not part.endswith(b"\n"):
        pass
