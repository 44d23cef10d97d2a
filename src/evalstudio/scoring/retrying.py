"""Scoring again what errored, and only that: the new results take the place of the old ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import orjson

from ..base.locks import lock
from ..base.problems import InvalidInput
from .datasets import Chunk


def errored_lines(path: Path) -> set[int]:
    """The lines of the dataset whose results are errors."""
    with path.open("rb") as file:
        results = map(orjson.loads, file)
        return {result["line"] for result in results if result["outcome"] == "error"}


def only_lines(chunks: Iterator[Chunk], lines: set[int]) -> Iterator[Chunk]:
    """The parts of chunks that hold these lines."""
    for chunk in chunks:
        part = [(number, line) for number, line in chunk.lines() if number in lines]
        if part:
            data = b"\n".join(line for _, line in part)
            yield Chunk(data, [number for number, _ in part], [], chunk.share)


def replace_results(path: Path, fresh: Iterator[bytes]) -> int:
    """Put fresh results, which come in the file's order, in the place of those of the same lines.

    The file is replaced when the new one is whole, so that a stop in between loses nothing that was there.
    """
    written = path.with_name(f".{path.name}.retry")
    count = 0
    try:
        with path.open("rb") as old, written.open("wb") as new:
            if not lock(old):
                raise InvalidInput(f"{path}: another run is writing to it")
            following = next(fresh, None)
            for line in old:
                if following is not None and orjson.loads(following)["line"] == orjson.loads(line)["line"]:
                    new.write(following + b"\n")
                    following, count = next(fresh, None), count + 1
                else:
                    new.write(line)
            new.flush()
            os.fsync(new.fileno())
        os.replace(written, path)
    finally:
        written.unlink(missing_ok=True)
    return count
