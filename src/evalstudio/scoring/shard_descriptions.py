"""What is written down of each scored shard, and reading its results again.

Anybody may have changed these files since: what they say is checked before it is used, names never lead out
of their folder, and what a shard comes to is counted from its results.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, Literal, Self, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from ..base.problems import problems_of
from .result_lines import BadResult, read_result
from .shard_folders import MANIFEST, ShardFolder
from .shards import Cut, Shard
from .summary import DatasetSummary

_NAME = "[0-9]{6,12}-[0-9a-f]{1,16}-[0-9a-f]{1,16}"
_RESULTS = rf"{_NAME}\.jsonl"
_DESCRIPTION = re.compile(rf"{_NAME}\.json")
_OF_SHARD = re.compile(rf"{_NAME}\.jsonl?")
_HALF_WRITTEN = re.compile(rf"\.(manifest\.json|{_NAME}\.jsonl?)\.[0-9a-f]{{1,16}}")
# Thousands of names fit; what is longer is none of ours.
_LARGEST_FILE = 1 << 26
_READ_AT_ONCE = 16

Natural = Annotated[int, Field(ge=0)]
ResultsName = Annotated[str, Field(pattern=f"^{_RESULTS}$")]


class BadShard(ValueError):
    """A file beside the results of shards that does not say what was written there."""


class _Written(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True)

    def to_json(self) -> bytes:
        return orjson.dumps(self.model_dump(by_alias=True, exclude_none=True))


class ShardDescription(_Written):
    """Where a scored shard is in the dataset, what it held, and the file of its results, if they are kept.

    Of several for one shard, the one of the latest ``attempt`` counts: what errored was scored again.
    """

    number: Natural
    start: Natural
    end: Natural
    first_line: Annotated[int, Field(ge=1)]
    lines: Natural
    digest: str
    results: ResultsName | None = None
    size: Natural = 0
    records: Natural
    bad: Natural = 0
    unsampled: Natural = 0
    left_out: list[Annotated[tuple[int, str], Field(strict=False)]] = []
    attempt: Natural = 0

    @model_validator(mode="after")
    def _own_results(self) -> Self:
        if self.results is not None and number_in(self.results) != self.number:
            raise ValueError("its results are those of another shard")
        if self.end <= self.start:
            raise ValueError("it ends before it begins")
        return self

    @property
    def last_line(self) -> int:
        return self.first_line + self.lines - 1

    @property
    def rows(self) -> int:
        """How many records of the dataset it accounts for."""
        return self.records + self.bad + self.unsampled

    def holds(self, shard: Shard) -> bool:
        """Whether this is where the shard is in the dataset."""
        return (self.start, self.end, self.first_line) == (shard.start, shard.end, shard.first_line)

    def beside_results(self) -> DatasetSummary:
        """What the shard held beside its results."""
        return DatasetSummary(bad=self.bad, unsampled=self.unsampled, left_out=[*self.left_out])


class Manifest(_Written):
    """How a dataset is cut into shards, what they are scored with, and how far that is.

    ``merged`` of them are in a results file; where there is none, ``results`` are the files that count.
    """

    job: Annotated[str, Field(pattern="^[0-9a-f]{1,16}$")]
    token: str
    cut: Cut | None = None
    shard_bytes: Annotated[int, Field(ge=1)] | None = None
    merged: Natural = 0
    settings: dict[str, Any] = {}
    is_complete: bool = False
    partial: Literal["budget"] | None = None
    results: list[ResultsName] | None = None


def new_manifest(**more: Any) -> Manifest:
    return Manifest(job=secrets.token_hex(4), token=secrets.token_hex(8), **more)


def new_results_name(folder: ShardFolder, number: int) -> str:
    return f"{number:06}-{folder.start.job}-{secrets.token_hex(4)}.jsonl"


def description_name(results: str) -> str:
    """Of the file that describes the shard whose results are in a file of this name."""
    return results.removesuffix("l")


def results_name(description: str) -> str:
    """Of the file with the results that a description of this name belongs to."""
    return f"{description}l"


def number_in(name: str) -> int:
    """The number of the shard that a file belongs to."""
    return int(name.partition("-")[0])


def is_description(name: str, job: str) -> bool:
    """Whether it is a description that a job has written."""
    return _DESCRIPTION.fullmatch(name) is not None and name.split("-")[1] == job


def is_of_shard(name: str) -> bool:
    """Whether it is a file of a shard, whichever job has written it, or one that is half written."""
    return _OF_SHARD.fullmatch(name) is not None or is_half_written(name)


def is_half_written(name: str) -> bool:
    """Whether it is a file that a stop has left before it got its name."""
    return _HALF_WRITTEN.fullmatch(name) is not None


def read_manifest(folder: ShardFolder) -> Manifest:
    return _read(folder, MANIFEST, Manifest)


def read_descriptions(folder: ShardFolder, names: Iterable[str]) -> list[ShardDescription]:
    """Several at once: at an address each takes a moment, and there may be thousands."""
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        return list(pool.map(partial(_description, folder), names))


def _description(folder: ShardFolder, name: str) -> ShardDescription:
    shard = _read(folder, name, ShardDescription)
    if shard.results is None or description_name(shard.results) != name:
        raise BadShard(f"{name}: results: it names those of another description")
    return shard


_Kind = TypeVar("_Kind", bound=_Written)


def _read(folder: ShardFolder, name: str, kind: type[_Kind]) -> _Kind:
    try:
        with folder.open(name) as file:
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise BadShard(f"{name}: it is too long to have been written by evalstudio")
        return kind.model_validate(orjson.loads(data))
    except ValidationError as error:
        raise BadShard(f"{name}: {'; '.join(map(str, problems_of(error)))}") from None
    except orjson.JSONDecodeError as error:
        raise BadShard(f"{name}: {error}") from None


def latest_descriptions(
    folder: ShardFolder, manifest: Manifest, listing: dict[str, int]
) -> dict[int, ShardDescription]:
    """What is described and whole, by number: a file that is shorter than it was is as good as none."""
    latest: dict[int, ShardDescription] = {}
    names = [name for name in sorted(listing) if is_description(name, manifest.job)]
    for shard in read_descriptions(folder, names):
        is_whole = shard.number < manifest.merged or listing.get(shard.results or "") == shard.size
        known = latest.get(shard.number)
        if is_whole and (known is None or known.attempt <= shard.attempt):
            latest[shard.number] = shard
    return dict(sorted(latest.items()))


def results_in(lines: Iterable[bytes], shard: ShardDescription) -> Iterator[dict[str, Any]]:
    """The results of a shard: each of one of its records, in order, and as many as were written."""
    last, count = shard.first_line - 1, 0
    for count, line in enumerate(lines, 1):
        try:
            result = read_result(line)
            if not last < result["line"] <= shard.last_line:
                raise ValueError(f"line {result['line']} of the dataset does not belong here")
        except (ValueError, KeyError, TypeError) as error:
            raise BadResult(count, f"{type(error).__name__}: {error}") from None
        last = result["line"]
        yield result
    if count != shard.records:
        raise BadResult(count, f"of {shard.records:,} results there are {count:,}")


def shard_results(folder: ShardFolder, shard: ShardDescription) -> Iterator[dict[str, Any]]:
    """The results of a shard in its own file."""
    assert shard.results is not None
    try:
        with folder.open(shard.results) as file:
            yield from results_in(file, shard)
    except BadResult as error:
        raise BadResult(error.number, error.reason, shard.results) from None
