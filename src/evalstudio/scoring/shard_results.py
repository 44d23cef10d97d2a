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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson
from pydantic import TypeAdapter

from ..base.locks import lock, write_all
from ..base.problems import InvalidInput
from .plan import ScoringJob, ScoringPlan
from .results_file import check_replaceable, fingerprint, note_of, open_output, read_settings, recover
from .shards import Cut, Shard
from .summary import DatasetSummary

Ids = Iterable[tuple[str, int]]
_HEAD = re.compile(rb'^\{"recordId":("(?:[^"\\]|\\.)*"),"line":(\d+)', re.MULTILINE)
_COPY_BYTES = 1 << 20


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


def write_safely(path: Path, data: bytes) -> None:
    """The whole file or nothing, on the disk when this returns."""
    written = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(written, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, path)
    finally:
        written.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ShardWriter:
    """Takes the results of one shard into a file of its own, which counts once ``commit`` says so.

    Two workers may write the same shard, when one was taken for dead: who commits last is believed, and names
    its own file.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
        self.name = f"{number:06}-{secrets.token_hex(4)}.jsonl"
        self._file = (folder / self.name).open("wb")
        self.size = 0

    def write(self, lines: list[bytes]) -> None:
        for line in lines:
            self._file.write(line)
            self._file.write(b"\n")
            self.size += len(line) + 1

    def commit(self, scored: ScoredShard) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        write_safely(_description(self._folder, self._number), _dumped(scored))

    def discard(self) -> None:
        self._file.close()
        (self._folder / self.name).unlink(missing_ok=True)


def _description(folder: Path, number: int) -> Path:
    return folder / f"{number:06}.json"


class ShardedResults:
    """The results file of a job that is scored in shards. Without an output file it only adds up."""

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary) -> None:
        self._job, self._plan, self._summary = job, plan, summary
        self._file: BinaryIO | None = None
        self._waiting: dict[int, tuple[ScoredShard, Ids]] = {}
        self._manifest: dict[str, Any] = {"merged": 0, "size": 0, "counted": "shards"}
        self._next = 0
        self._read_up_to = 0
        self.folder: Path | None = None
        self.done: dict[int, ScoredShard] = {}

    def __enter__(self) -> ShardedResults:
        if self._job.output is None:
            return self
        self._file = open_output(self._job)
        try:
            self._begin(self._file, self._job.output)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

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

    def _begin(self, file: BinaryIO, path: Path) -> None:
        if not lock(file):
            raise InvalidInput(f"{path}: another run is writing to it")
        if not path.is_file():
            raise InvalidInput(f"{path}: is a pipe or a device; results of shards need a file")
        self.folder, mark = folder_of(path), fingerprint(self._job, self._plan)
        if self._job.resume and (path.stat().st_size or self._descriptions()):
            if "shards" not in read_settings(note_of(path), mark, path):
                message = "it was not scored in shards; go on with the same command and --on local"
                raise InvalidInput(f"{path}: cannot be resumed: {message}")
            self._go_on(path)
            return
        check_replaceable(path, note_of(path))
        file.truncate(0)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._manifest["token"] = secrets.token_hex(8)
        self._write_manifest()
        write_safely(note_of(path), orjson.dumps({**mark, "shards": self.folder.name}))

    def _descriptions(self) -> list[Path]:
        assert self.folder is not None
        return sorted(self.folder.glob("[0-9]*.json"))

    def _go_on(self, path: Path) -> None:
        assert self.folder is not None
        manifest = self.folder / "manifest.json"
        try:
            self._manifest = cast(dict[str, Any], orjson.loads(manifest.read_bytes()))
            scored = [_loaded(one.read_bytes()) for one in self._descriptions()]
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{path}: cannot be resumed: {self.folder} cannot be read: {error}") from None
        size: int = self._manifest["size"]
        if path.stat().st_size < size:
            raise InvalidInput(f"{path}: cannot be resumed: it is shorter than what was written to it")
        os.truncate(path, size)
        self.done = {one.number: one for one in scored if self._is_whole(one)}
        self._clear_away()
        self._summary.resumed = sum(one.summary.records for one in self.done.values())

    def _is_whole(self, scored: ScoredShard) -> bool:
        """Whether the results are where they should be; after a power cut a file may be shorter."""
        assert self.folder is not None
        if scored.number < self._manifest["merged"]:
            return True
        file = self.folder / (scored.results or "")
        return file.is_file() and file.stat().st_size == scored.size

    def _clear_away(self) -> None:
        """Remove what killed workers left: files that no description names."""
        assert self.folder is not None
        merged = self._manifest["merged"]
        named = {one.results for one in self.done.values() if one.number >= merged}
        for path in self.folder.glob("*.jsonl"):
            if path.name not in named:
                path.unlink(missing_ok=True)
        for path in self.folder.glob(".*"):
            path.unlink(missing_ok=True)

    def _write_manifest(self) -> None:
        if self.folder is not None:
            write_safely(self.folder / "manifest.json", orjson.dumps(self._manifest))

    def keep(self, scored: ScoredShard, lines: bytes | None = None) -> None:
        """Keep the results of a shard whose worker could not write them where they belong."""
        if self.folder is not None and lines is not None and scored.results is not None:
            write_safely(self.folder / scored.results, lines)
            write_safely(_description(self.folder, scored.number), _dumped(scored))

    def take(self, scored: ScoredShard, ids: Ids = ()) -> None:
        """A scored shard, in any order: it counts, and is appended, once all before it have been.

        ``ids`` are those of its records where no results are kept to read them from.
        """
        self._waiting[scored.number] = scored, ids
        while (following := self._waiting.pop(self._next, None)) is not None:
            self._append(*following)
            self._next += 1

    def _append(self, scored: ScoredShard, ids: Ids) -> None:
        is_merged = self._file is not None and scored.number < self._manifest["merged"]
        from_file = is_merged and self._manifest["counted"] == "file"
        self._summary.merge(_beside_results(scored.summary) if from_file else scored.summary)
        for record_id, line in ids if self._file is None else self._merge(scored, is_merged):
            self._summary.duplicates.add(record_id, line)

    def _merge(self, scored: ScoredShard, is_merged: bool) -> Iterator[tuple[str, int]]:
        if self._file is None or self.folder is None or scored.results is None:
            return
        if is_merged:
            yield from self._ids_of_merged(scored.size)
            return
        path = self.folder / scored.results
        with path.open("rb") as part:
            yield from _copied(part, self._file)
        os.fsync(self._file.fileno())
        self._manifest |= {"merged": scored.number + 1, "size": self._manifest["size"] + scored.size}
        self._write_manifest()
        path.unlink()

    def _ids_of_merged(self, size: int) -> Iterator[tuple[str, int]]:
        assert self._job.output is not None
        if self._manifest["counted"] == "file":
            return
        with self._job.output.open("rb") as file:
            file.seek(self._read_up_to)
            self._read_up_to += size
            yield from _ids_in(file.read(size))

    def forget_after(self, number: int) -> None:
        """Forget shards behind one whose dataset has to be mended: the places of what follows will change."""
        if self.folder is None:
            return
        for path in self._descriptions():
            if int(path.stem) > number and int(path.stem) >= self._manifest["merged"]:
                path.unlink(missing_ok=True)

    def recount(self) -> None:
        """The results file was changed in place: from now on it says itself what it comes to."""
        assert self._job.output is not None
        self._manifest |= {"size": self._job.output.stat().st_size, "counted": "file"}
        self._write_manifest()

    def count_again(self) -> None:
        """Count what an earlier start has appended, where the shards no longer tell."""
        if self._manifest["counted"] == "file" and self._job.output is not None and self.done:
            recover(self._job.output, self._summary, None)


def _beside_results(summary: DatasetSummary) -> DatasetSummary:
    """What a shard held beside its results."""
    return DatasetSummary(bad=summary.bad, unsampled=summary.unsampled, left_out=summary.left_out)


def _copied(part: BinaryIO, target: BinaryIO) -> Iterator[tuple[str, int]]:
    """Append a file to another, and the ids and lines of its results."""
    while block := part.read(_COPY_BYTES):
        block += part.readline() if not block.endswith(b"\n") else b""
        write_all(target, block)
        yield from _ids_in(block)


def _ids_in(results: bytes) -> Iterator[tuple[str, int]]:
    for match in _HEAD.finditer(results):
        record_id = match[1]
        text = orjson.loads(record_id) if b"\\" in record_id else record_id[1:-1].decode()
        yield text, int(match[2])
