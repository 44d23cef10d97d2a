"""Answers kept on disk, one small file each, so that the same question is paid for once.

Several processes may share a folder: files appear whole or not at all, and one that cannot be read counts
as missing. A cache never fails a run; what cannot be written is not kept.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import orjson

from ..cassettes import key_of
from ..threads import blocking

log = logging.getLogger("evalstudio")

_LARGEST = 1_000_000_000
_MOST_COUNTED = 100_000


class AnswerCache:
    """One folder of answers; make one object per execution.

    A request asked several times within one execution (votes, repetitions) is several questions: the second
    asking never gets the first one's answer, or all votes would agree. Asked again in the next execution,
    each finds its own.
    """

    def __init__(self, folder: str | Path, *, max_bytes: int = _LARGEST) -> None:
        self.folder = Path(folder)
        self._max_bytes = max_bytes
        self._asked: OrderedDict[str, int] = OrderedDict()
        self._size: int | None = None
        self._lock = threading.Lock()
        self._warned = False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{self.folder}: no answers can be kept there ({error.strerror})") from None

    def key(self, request: Mapping[str, Any], *, counted: bool = True) -> str:
        """The name of a request; with ``counted``, of this asking of it."""
        key = key_of(request)
        if not counted:
            return key
        with self._lock:
            # Only the latest requests are counted: memory stays flat however many records are scored.
            times = self._asked.pop(key, 0)
            self._asked[key] = times + 1
            if len(self._asked) > _MOST_COUNTED:
                self._asked.popitem(last=False)
        return f"{key}-{times + 1}" if times else key

    async def get(self, key: str) -> dict[str, Any] | None:
        """The answer kept under a key, unless there is none or it cannot be read."""
        return await blocking.run(lambda: self._read(key))

    async def put(self, key: str, response: Mapping[str, Any]) -> None:
        await blocking.run(lambda: self._write(key, orjson.dumps({"key": key, "response": response})))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _read(self, key: str) -> dict[str, Any] | None:
        path = self._path(key)
        try:
            found: Any = orjson.loads(path.read_bytes())
            # What was used last is evicted last.
            os.utime(path)
        except (OSError, orjson.JSONDecodeError):
            return None
        if not isinstance(found, dict):
            return None
        entry = cast(dict[str, Any], found)
        whole = entry.get("key") == key and isinstance(entry.get("response"), dict)
        return entry["response"] if whole else None

    def _write(self, key: str, data: bytes) -> None:
        path = self._path(key)
        part = path.with_name(f".{uuid4().hex}.part")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            part.write_bytes(data)
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            if not self._warned:
                self._warned = True
                log.warning("%s: answers are not kept (%s)", self.folder, error.strerror)
            return
        with self._lock:
            self._size = self._measured() if self._size is None else self._size + len(data)
            if self._size > self._max_bytes:
                self._size = self._evict()

    def _measured(self) -> int:
        return sum(facts.st_size for _, facts in self._files())

    def _evict(self) -> int:
        """Remove what was not used for longest until a tenth is free; the size that is left."""
        files = sorted(self._files(), key=lambda file: file[1].st_mtime_ns)
        size = sum(facts.st_size for _, facts in files)
        for path, facts in files:
            if size <= self._max_bytes * 0.9:
                break
            with suppress(OSError):
                path.unlink()
            size -= facts.st_size
        return size

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob("??/*"):
            # Another process may have removed it meanwhile.
            with suppress(OSError):
                yield path, path.stat()
