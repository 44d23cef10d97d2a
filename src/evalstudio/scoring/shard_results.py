"""Results in shards, written in any order, and put together in the order of the dataset.

Beside the results file a folder has, for each shard that is scored, a small file that says what it held;
where it exists, the shard's results are whole. The manifest says how many shards have been appended to the
results file, so that a stop at any moment neither loses nor doubles one.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Self

import orjson

from ..base.lazy_dataclass import dataclass
from ..base.locks import lock, write_all
from ..base.problems import InvalidInput
from .plan import ScoringJob, ScoringPlan
from .result_lines import BadResult
from .results_file import UNFINISHED, check_replaceable, fingerprint, note_of, open_output, read_settings
from .retrying import FileToMend
from .shard_descriptions import (
    BadShard,
    Manifest,
    ShardDescription,
    description_name,
    is_description,
    is_of_shard,
    latest_descriptions,
    new_manifest,
    new_results_name,
    number_in,
    read_manifest,
    results_in,
    results_name,
    shard_results,
)
from .shard_folders import MANIFEST, LocalFolder, ShardFolder, Start, check_start, write_safely
from .shards import Cut
from .summary import DatasetSummary

Ids = Iterable[tuple[str, int]]
_HEAD = re.compile(rb'^\{"recordId":("(?:[^"\\]|\\.)*"),"line":(\d+)', re.MULTILINE)
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ScoredShard:
    """A scored shard and what it came to; where an earlier start did it, its results have to tell."""

    description: ShardDescription
    summary: DatasetSummary | None = None

    @property
    def number(self) -> int:
        return self.description.number


def folder_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.shards")


class ShardWriter:
    """Takes the results of one shard into a file of its own, which counts once ``commit`` says so.

    Two workers may write the same shard, when one was taken for dead: each has files of its own.
    """

    def __init__(self, folder: ShardFolder, number: int) -> None:
        self._folder = folder
        self.name = new_results_name(folder, number)
        self._file = folder.create(self.name)
        self.size = 0

    def write(self, data: bytes) -> None:
        """Some results, each line with its end."""
        self._file.write(data)
        self.size += len(data)

    def commit(self, shard: ShardDescription) -> ShardDescription:
        """The description with the file of the results, once both are there."""
        self._folder.close(self._file)
        check_start(self._folder)
        return described(self._folder, shard, self.name, self.size)

    def discard(self) -> None:
        self._file.close()
        self._folder.remove(self.name)


def described(folder: ShardFolder, shard: ShardDescription, results: str, size: int) -> ShardDescription:
    """Write down that the results of a shard are in a file."""
    written = shard.model_copy(update={"results": results, "size": size})
    folder.write(description_name(results), written.to_json())
    return written


class ShardedResults:
    """What the shards of a job come to, counted in the order of the dataset. Their results are not kept."""

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary) -> None:
        self._job, self._plan, self._summary = job, plan, summary
        self._waiting: dict[int, tuple[ScoredShard, Ids]] = {}
        self._manifest = new_manifest()
        self._next = 0
        self.folder: ShardFolder | None = None
        self.done: dict[int, ShardDescription] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def name(self) -> str:
        """What they are called in messages."""
        return str(self._job.output)

    @property
    def cut(self) -> tuple[Cut, int] | None:
        """How the dataset was cut when this was begun, if it was."""
        manifest = self._manifest
        if manifest.cut is None or manifest.shard_bytes is None:
            return None
        return manifest.cut, manifest.shard_bytes

    def set_cut(self, cut: Cut, size: int) -> None:
        self._change_manifest(cut=cut, shard_bytes=size)

    def _change_manifest(self, **changes: Any) -> None:
        self._manifest = self._manifest.model_copy(update=changes)
        if self.folder is not None:
            self.folder.write(MANIFEST, self._manifest.to_json())

    @property
    def _start(self) -> Start:
        """What workers that look into the right folder find in its manifest."""
        return Start(self._manifest.job, self._manifest.token)

    def _go_on(self, folder: ShardFolder, manifest: Manifest) -> None:
        """Read which shards are done; those whose results are not whole are scored again."""
        listing = folder.listing()
        try:
            self.done = latest_descriptions(folder, manifest, listing)
        except (OSError, BadShard) as error:
            raise self._unreadable(folder, error) from None
        # Whoever still writes from an earlier start finds that it is no longer its folder.
        self._manifest = manifest.model_copy(update={"token": secrets.token_hex(8)})
        self._summary.resumed = sum(one.records for one in self.done.values())

    def _read_manifest(self, folder: ShardFolder) -> Manifest:
        try:
            return read_manifest(folder)
        except (OSError, BadShard) as error:
            raise self._unreadable(folder, error) from None

    def _unreadable(self, folder: ShardFolder, error: Exception) -> InvalidInput:
        return InvalidInput(f"{self.name}: cannot be resumed: {folder.name} cannot be read: {error}")

    def _clear_away(self, folder: ShardFolder) -> None:
        """Remove what killed workers left: results that no description names, and what is half written."""
        named = {one.results for one in self.done.values() if one.number >= self._manifest.merged}
        named |= {*(self._manifest.results or ())}
        for name in filter(is_of_shard, folder.listing()):
            if name not in named and not name.endswith(".json"):
                folder.remove(name)

    def keep(self, scored: ScoredShard, lines: bytes | None = None) -> ScoredShard:
        """Keep the results of a shard whose worker could not write them where they belong."""
        if self.folder is None or lines is None:
            return scored
        name = new_results_name(self.folder, scored.number)
        self.folder.write(name, lines)
        return replace(scored, description=described(self.folder, scored.description, name, len(lines)))

    def take(self, scored: ScoredShard, ids: Ids = ()) -> None:
        """A scored shard, in any order: it counts, and is appended, once all before it have been.

        ``ids`` are those of its records where no results are kept to read them from.
        """
        if scored.summary is not None:
            self._note_unfinished()
        self._waiting[scored.number] = scored, ids
        while (following := self._waiting.pop(self._next, None)) is not None:
            self._append(*following)
            self._next += 1

    def _note_unfinished(self) -> None:
        """Once something is added, that more is to come: a resume that is refused leaves all as it was."""

    def _append(self, scored: ScoredShard, ids: Ids) -> None:
        if scored.summary is None:
            self._summary.merge(scored.description.beside_results())
            return
        self._summary.merge(scored.summary)
        for record_id, line in ids:
            self._summary.duplicates.add(record_id, line)

    def _results_of(self, folder: ShardFolder, shard: ShardDescription) -> Iterator[dict[str, Any]]:
        """The results of a shard that was scored before, as they are now."""
        try:
            yield from shard_results(folder, shard)
        except BadResult as error:
            where = f"{self.name}: cannot be resumed: {folder.name}: {error}"
            advice = "remove that file, and --resume scores its records again"
            raise InvalidInput(f"{where}; {advice}") from None

    def _count(self, results: Iterable[dict[str, Any]]) -> None:
        for result in results:
            self._summary.add(result)
            self._summary.duplicates.add(result["recordId"], result["line"])

    def forget_after(self, number: int) -> None:
        """Forget shards behind one whose dataset has to be mended: the places of what follows will change."""
        if self.folder is None:
            return
        check_start(self.folder)
        first, job = max(number + 1, self._manifest.merged), self._manifest.job
        for name in self.folder.listing():
            if is_description(name, job) and number_in(name) >= first:
                self.folder.remove(name)
                self.folder.remove(results_name(name))

    def finish(self, partial: str | None = None) -> None:
        """All shards are scored, or what ended it before that."""
        if partial is None and self._waiting:
            # Nothing is known to come here, but then results would be missing without a word.
            message = f"shard {self._next} was not scored; run again with --resume"
            raise InvalidInput(f"{self.name}: {message}")

    def results(self) -> Iterator[dict[str, Any]]:
        """All results that are kept, in order."""
        raise NotImplementedError

    def replace(self, fresh: Iterator[bytes]) -> int:
        """Put fresh results in the place of those of the same lines; how many."""
        raise NotImplementedError


class MergedShards(ShardedResults):
    """Results of shards that are appended to one file, in the order of the dataset."""

    def __init__(self, job: ScoringJob, plan: ScoringPlan, summary: DatasetSummary, output: Path) -> None:
        super().__init__(job, plan, summary)
        self._path, self._folder = output, LocalFolder(folder_of(output).resolve())
        self._is_noted = False
        """Whether the note says by now that more is to come."""

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
        is_begun = any(name[:1].isdigit() for name in self._folder.listing())
        if self._job.resume and (path.stat().st_size or is_begun):
            self._resume(path)
        else:
            check_replaceable(path, note_of(path))
            file.truncate(0)
            shutil.rmtree(self._folder.path, ignore_errors=True)
            self._folder.path.mkdir(parents=True)
        self._folder = self.folder = replace(self._folder, start=self._start)
        self._change_manifest()
        self._clear_away(self._folder)
        if not self.done:
            self._note_unfinished()

    def _note_unfinished(self) -> None:
        if not self._is_noted:
            self._write_note(UNFINISHED)
            self._is_noted = True

    def _resume(self, path: Path) -> None:
        if "shards" not in read_settings(fingerprint(self._job, self._plan), path):
            message = "it was not scored in shards; go on with the same command and --on local"
            raise InvalidInput(f"{path}: cannot be resumed: {message}")
        self._go_on(self._folder, self._read_manifest(self._folder))
        self._count_merged()

    def _count_merged(self) -> None:
        """Count what is in the results file, and cut off what was being appended."""
        whole = 0
        with self._path.open("rb") as file:
            for number in range(self._manifest.merged):
                if (shard := self.done.get(number)) is None:
                    raise self._unreadable(self._folder, BadShard(f"shard {number} is not described"))
                try:
                    self._count(results_in(islice(file, shard.records), shard))
                except BadResult as error:
                    message = "cannot be resumed: it was changed, or is shorter than what was written to it"
                    where = f"results of lines {shard.first_line} to {shard.last_line}"
                    raise InvalidInput(f"{self._path}: {message}: {where}: {error.reason}") from None
                whole = file.tell()
        os.truncate(self._path, whole)

    def _write_note(self, partial: str | None) -> None:
        """How it was scored and, as where no shards are, whether that has not come to its end."""
        mark = fingerprint(self._job, self._plan)
        more = {} if partial is None else {"partial": partial}
        note = {**mark, **more, "shards": self._folder.path.name}
        write_safely(note_of(self._path), orjson.dumps(note))

    def finish(self, partial: str | None = None) -> None:
        super().finish(partial)
        self._write_note(partial)

    def _append(self, scored: ScoredShard, ids: Ids) -> None:
        shard = scored.description
        if shard.number < self._manifest.merged:
            super()._append(scored, ())
            return
        if scored.summary is None:
            self._count(self._results_of(self._folder, shard))
            deque(self._merge(shard), maxlen=0)
            super()._append(scored, ())
        else:
            super()._append(scored, self._merge(shard))

    def _merge(self, shard: ShardDescription) -> Iterator[tuple[str, int]]:
        assert shard.results is not None
        with self._folder.open(shard.results) as part:
            yield from _copied(part, self._file)
        os.fsync(self._file.fileno())
        self._change_manifest(merged=shard.number + 1)
        self._folder.remove(shard.results)

    def results(self) -> Iterator[dict[str, Any]]:
        return FileToMend(self._path).results()

    def replace(self, fresh: Iterator[bytes]) -> int:
        return FileToMend(self._path, is_locked=True).replace(fresh)


def _copied(part: BinaryIO, target: BinaryIO) -> Iterator[tuple[str, int]]:
    """Append a file to another, and the ids and lines of its results."""
    while block := part.read(_COPY_BYTES):
        whole = block if block.endswith(b"\n") else block + part.readline()
        write_all(target, whole)
        yield from _ids_in(whole)


def _ids_in(results: bytes) -> Iterator[tuple[str, int]]:
    for match in _HEAD.finditer(results):
        record_id = match[1]
        text = orjson.loads(record_id) if b"\\" in record_id else record_id[1:-1].decode()
        yield text, int(match[2])
