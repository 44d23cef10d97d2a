"""Scoring again what errored, and only that: the new results take the place of the old ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import orjson

from ..base.lazy_dataclass import dataclass
from ..base.locks import lock
from ..base.problems import InvalidInput
from .datasets import Chunk
from .result_lines import BadResult
from .stored_results import each_result


class ResultsToMend(Protocol):
    """Results of which some are errors."""

    def results(self) -> Iterator[dict[str, Any]]:
        """All of them, in the dataset's order."""
        ...

    def replace(self, fresh: Iterator[bytes]) -> int:
        """Put fresh results, in the same order, in the place of those of the same lines; how many there were.

        A stop in between loses nothing that was there.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileToMend:
    """A results file; ``is_locked`` where who replaces results holds its lock."""

    path: Path
    is_locked: bool = False

    def results(self) -> Iterator[dict[str, Any]]:
        try:
            for _, result in each_result(self.path):
                yield result
        except BadResult as error:
            raise InvalidInput.at(
                f"{self.path}:{error.number}", f"is no result of evalstudio score ({error.reason})"
            ) from None

    def replace(self, fresh: Iterator[bytes]) -> int:
        """The file is replaced when the new one is whole."""
        written = self.path.with_name(f".{self.path.name}.retry")
        replaced: list[int] = []
        try:
            with self.path.open("rb") as old, written.open("wb") as new:
                if not self.is_locked and not lock(old):
                    raise InvalidInput(f"{self.path}: another run is writing to it")
                for line in replaced_lines(old, fresh, replaced):
                    new.write(line)
                new.flush()
                os.fsync(new.fileno())
            os.replace(written, self.path)
        finally:
            written.unlink(missing_ok=True)
        return len(replaced)


def replaced_lines(old: Iterable[bytes], fresh: Iterator[bytes], replaced: list[int]) -> Iterator[bytes]:
    """Old results, each line with its end, with fresh ones where there are some."""
    following = next(fresh, None)
    for line in old:
        if following is not None and (number := line_of(following)) == line_of(line):
            yield following + b"\n"
            replaced.append(number)
            following = next(fresh, None)
        else:
            yield line


def line_of(result: bytes) -> int:
    """The line of the dataset that a result is of."""
    return orjson.loads(result)["line"]


def errored_lines(results: Iterator[dict[str, Any]]) -> set[int]:
    """The lines of the dataset whose results are errors."""
    return {result["line"] for result in results if result["outcome"] == "error"}


def only_lines(chunks: Iterator[Chunk], lines: set[int]) -> Iterator[Chunk]:
    """The parts of chunks that hold these lines."""
    for chunk in chunks:
        part = [(number, line) for number, line in chunk.lines() if number in lines]
        if part:
            data = b"\n".join(line for _, line in part)
            yield Chunk(data, [number for number, _ in part], [], chunk.share)
