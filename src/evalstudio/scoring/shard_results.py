"""Results in shards, written in any order, and put together in the order of the dataset.

Beside the results file a folder has, for each shard that is scored, a small file that says what it held and
what it came to; where it exists, the shard's results are whole. The manifest says how many shards have been
appended to the results file and how long that is, so that a stop at any moment neither loses nor doubles one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import orjson
from pydantic import TypeAdapter

from ..base.lazy_dataclass import dataclass
from ..base.locks import lock, write_all
from ..base.problems import InvalidInput
from .plan import ScoringJob, ScoringPlan
from .results_file import (
    UNFINISHED,
    check_replaceable,
    fingerprint,
    note_of,
    open_output,
    read_settings,
    recover,
)
from .shard_folders import LocalFolder, ShardFolder, write_safely
from .shards import Cut, Shard
from .summary import DatasetSummary

Ids = Iterable[tuple[str, int]]
_HEAD = re.compile(rb'^\{"recordId":("(?:[^"\\]|\\.)*"),"line":(\d+)', re.MULTILINE)
_COPY_BYTES = 1 << 20
MANIFEST = "manifest.json"
_DESCRIPTION = re.compile(r"\d{6,}\.json")


@dataclass(frozen=True, slots=True)
class ScoredShard:
    """What a shard held and came to. Its results are in a file of this name, if any are kept."""

    number: int
    start: int
    end: int
    first_line: int
    lines: int
    digest: str
    results: str | None
    size: int
    summary: DatasetSummary

    def holds(self, shard: Shard) -> bool:
        """Whether this is where the shard is in the dataset."""
        return (self.start, self.end, self.first_line) == (shard.start, shard.end, shard.first_line)


_SCORED = TypeAdapter(ScoredShard)


def _dumped(scored: ScoredShard) -> bytes:
    """As JSON that keeps numbers that are not finite, and half characters in the messages of plugins."""
    return json.dumps(_SCORED.dump_python(scored, mode="json")).encode()


def _loaded(data: bytes) -> ScoredShard:
    return _SCORED.validate_python(json.loads(data))


def folder_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.shards")


class ShardWriter:
    """Takes the results of one shard into a file of its own, which counts once ``commit`` says so.

    Two workers may write the same shard, when one was taken for dead: who commits last is believed, and names
    its own file.
    """

    def __init__(self, folder: ShardFolder, number: int) -> None:
        self._folder, self._number = folder, number
        self.name = f"{number:06}-{secrets.token_hex(4)}.jsonl"
        self._file = folder.create(self.name)
        self.size = 0

    def write(self, lines: list[bytes]) -> None:
        for line in lines:
            self._file.write(line)
            self._file.write(b"\n")
            self.size += len(line) + 1

    def commit(self, scored: ScoredShard) -> None:
        self._folder.close(self._file)
        self._folder.write(_description(self._number), _dumped(scored))

    def discard(self) -> None:
        self._file.close()
        self._folder.remove(self.name)


def _description(number: int) -> str:
    return f"{number:06}.json"


class ShardedResults:
    """What the shards of a job come to, counted in the order of the dataset. Their results are not kept."""

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary) -> None:
        self._job, self._plan, self._summary = job, plan, summary
        self._waiting: dict[int, tuple[ScoredShard, Ids]] = {}
        self._manifest: dict[str, Any] = {}
        self._next = 0
        self.folder: ShardFolder | None = None
        self.done: dict[int, ScoredShard] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def token(self) -> str | None:
        """What a worker that looks into the right folder finds in its manifest."""
        return self._manifest.get("token")

    @property
    def cut(self) -> tuple[Cut, int] | None:
        """How the dataset was cut when this was begun, if it was."""
        return (self._manifest["cut"], self._manifest["shardBytes"]) if "cut" in self._manifest else None

    def set_cut(self, cut: Cut, size: int) -> None:
        self._manifest |= {"cut": cut, "shardBytes": size}
        self._write_manifest()

    def _write_manifest(self) -> None:
        if self.folder is not None:
            self.folder.write(MANIFEST, orjson.dumps(self._manifest))

    def _begin_anew(self) -> None:
        self._manifest["token"] = secrets.token_hex(8)
        self._write_manifest()

    def _go_on(self, folder: ShardFolder, output: str) -> None:
        """Read which shards are done; those whose results are not whole are scored again."""
        listing = folder.listing()
        try:
            self._manifest = cast(dict[str, Any], orjson.loads(folder.read(MANIFEST)))
            scored = [_loaded(folder.read(name)) for name in sorted(listing) if _DESCRIPTION.fullmatch(name)]
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"{output}: cannot be resumed: {folder.name} cannot be read: {error}"
            ) from None
        # After a power cut a file may be shorter.
        self.done = {
            one.number: one
            for one in scored
            if self._is_merged(one) or listing.get(one.results or "") == one.size
        }
        self._clear_away(folder, listing)
        self._summary.resumed = sum(one.summary.records for one in self.done.values())

    def _is_merged(self, scored: ScoredShard) -> bool:
        """Whether its results are in the results file."""
        return scored.number < self._manifest.get("merged", 0)

    def _clear_away(self, folder: ShardFolder, listing: Iterable[str]) -> None:
        """Remove what killed workers left: files that no description names."""
        named = {one.results for one in self.done.values() if not self._is_merged(one)}
        for name in listing:
            if name not in named and (name.endswith(".jsonl") or name.startswith(".")):
                folder.remove(name)

    def keep(self, scored: ScoredShard, lines: bytes | None = None) -> None:
        """Keep the results of a shard whose worker could not write them where they belong."""
        if self.folder is not None and lines is not None and scored.results is not None:
            self.folder.write(scored.results, lines)
            self.folder.write(_description(scored.number), _dumped(scored))

    def take(self, scored: ScoredShard, ids: Ids = ()) -> None:
        """A scored shard, in any order: it counts, and is appended, once all before it have been.

        ``ids`` are those of its records where no results are kept to read them from.
        """
        self._waiting[scored.number] = scored, ids
        while (following := self._waiting.pop(self._next, None)) is not None:
            self._append(*following)
            self._next += 1

    def _append(self, scored: ScoredShard, ids: Ids) -> None:
        self._summary.merge(scored.summary)
        for record_id, line in ids:
            self._summary.duplicates.add(record_id, line)

    def forget_after(self, number: int) -> None:
        """Forget shards behind one whose dataset has to be mended: the places of what follows will change."""
        if self.folder is None:
            return
        first = max(number + 1, self._manifest.get("merged", 0))
        for name in self.folder.listing():
            if _DESCRIPTION.fullmatch(name) and int(name.partition(".")[0]) >= first:
                self.folder.remove(name)

    def finish(self) -> None:
        """All shards are scored."""

    def recount(self) -> None:
        """The results file was changed in place: from now on it says itself what it comes to."""

    def count_again(self) -> None:
        """Count what an earlier start has appended, where the shards no longer tell."""


class MergedShards(ShardedResults):
    """Results of shards that are appended to one file, in the order of the dataset."""

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary, output: Path) -> None:
        super().__init__(job, plan, summary)
        self._path, self._folder = output, LocalFolder(folder_of(output).resolve())
        self._manifest = {"merged": 0, "size": 0, "counted": "shards"}
        self._read_up_to = 0
        self.folder = self._folder

    def __enter__(self) -> Self:
        self._file = open_output(self._job)
        try:
            self._begin(self._file, self._path)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _begin(self, file: BinaryIO, path: Path) -> None:
        if not lock(file):
            raise InvalidInput(f"{path}: another run is writing to it")
        if not path.is_file():
            raise InvalidInput(f"{path}: is a pipe or a device; results of shards need a file")
        mark = fingerprint(self._job, self._plan)
        if self._job.resume and (
            path.stat().st_size or any(map(_DESCRIPTION.fullmatch, self._folder.listing()))
        ):
            if "shards" not in read_settings(note_of(path), mark, path):
                message = "it was not scored in shards; go on with the same command and --on local"
                raise InvalidInput(f"{path}: cannot be resumed: {message}")
            self._go_on(self._folder, str(path))
            self._write_note(UNFINISHED)
            return
        check_replaceable(path, note_of(path))
        file.truncate(0)
        shutil.rmtree(self._folder.path, ignore_errors=True)
        self._folder.path.mkdir(parents=True)
        self._begin_anew()
        self._write_note(UNFINISHED)

    def _write_note(self, partial: str | None) -> None:
        """How it was scored and, as where no shards are, whether that has not come to its end."""
        mark = fingerprint(self._job, self._plan)
        more = {} if partial is None else {"partial": partial}
        note = {**mark, **more, "shards": self._folder.path.name}
        write_safely(note_of(self._path), orjson.dumps(note))

    def finish(self) -> None:
        self._write_note(None)

    def _go_on(self, folder: ShardFolder, output: str) -> None:
        super()._go_on(folder, output)
        size: int = self._manifest["size"]
        if self._path.stat().st_size < size:
            raise InvalidInput(f"{output}: cannot be resumed: it is shorter than what was written to it")
        os.truncate(self._path, size)

    def _append(self, scored: ScoredShard, ids: Ids) -> None:
        is_merged = self._is_merged(scored)
        from_file = is_merged and self._manifest["counted"] == "file"
        summary = _beside_results(scored.summary) if from_file else scored.summary
        super()._append(replace(scored, summary=summary), self._merge(scored, is_merged))

    def _merge(self, scored: ScoredShard, is_merged: bool) -> Iterator[tuple[str, int]]:
        if scored.results is None:
            return
        if is_merged:
            yield from self._ids_of_merged(scored.size)
            return
        with self._folder.open(scored.results) as part:
            yield from _copied(part, self._file)
        os.fsync(self._file.fileno())
        self._manifest |= {"merged": scored.number + 1, "size": self._manifest["size"] + scored.size}
        self._write_manifest()
        self._folder.remove(scored.results)

    def _ids_of_merged(self, size: int) -> Iterator[tuple[str, int]]:
        if self._manifest["counted"] == "file":
            return
        with self._path.open("rb") as file:
            file.seek(self._read_up_to)
            self._read_up_to += size
            yield from ids_in(file.read(size))

    def recount(self) -> None:
        self._manifest |= {"size": self._path.stat().st_size, "counted": "file"}
        self._write_manifest()

    def count_again(self) -> None:
        if self._manifest["counted"] == "file" and self.done:
            recover(self._path, self._summary, None)


def _beside_results(summary: DatasetSummary) -> DatasetSummary:
    """What a shard held beside its results."""
    return DatasetSummary(bad=summary.bad, unsampled=summary.unsampled, left_out=summary.left_out)


def _copied(part: BinaryIO, target: BinaryIO) -> Iterator[tuple[str, int]]:
    """Append a file to another, and the ids and lines of its results."""
    for block in blocks_of(part):
        write_all(target, block)
        yield from ids_in(block)


def blocks_of(file: BinaryIO) -> Iterator[bytes]:
    """A file in parts of whole lines."""
    while block := file.read(_COPY_BYTES):
        yield block if block.endswith(b"\n") else block + file.readline()


def ids_in(results: bytes) -> Iterator[tuple[str, int]]:
    for match in _HEAD.finditer(results):
        record_id = match[1]
        text = orjson.loads(record_id) if b"\\" in record_id else record_id[1:-1].decode()
        yield text, int(match[2])
