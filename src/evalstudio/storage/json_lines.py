"""Results as JSON lines: one compact line per result, appended, safe for several processes at once.

A line torn by a crash is never glued to the next one, and is set aside on reading.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

import orjson

log = logging.getLogger("evalstudio")

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_SERIALIZE_NUMPY


class HasJson(Protocol):
    def to_json(self) -> dict[str, Any]: ...


class JsonFileStorageProvider:
    """Appends every result to one file. Parent folders are made; the file comes with the first result."""

    def __init__(self, file_path: str | os.PathLike[str]) -> None:
        if not str(file_path):
            raise ValueError("file_path must name a file")
        self.path = Path(file_path)
        self.path.parent.mkdir(parents=True, exist_ok=True)

    async def save_result(self, result: HasJson | Mapping[str, Any]) -> None:
        line = to_line(result)
        await asyncio.get_running_loop().run_in_executor(None, self.append, line)

    def append(self, lines: bytes) -> None:
        """Add whole lines in one write, after mending a torn end."""
        with open(self.path, "ab", buffering=0) as file, _locked(file.fileno()):
            if not _ends_whole(self.path):
                lines = b"\n" + lines
            view = memoryview(lines)
            while view:
                view = view[file.write(view) :]


def to_line(result: HasJson | Mapping[str, Any]) -> bytes:
    """One result as a JSON line. NaN becomes null, functions vanish, dates become ISO text."""
    value: Any = dict(result) if isinstance(result, Mapping) else result.to_json()
    try:
        return orjson.dumps(value, default=_default, option=_OPTIONS) + b"\n"
    except (_Vanishes, orjson.JSONEncodeError):
        return orjson.dumps(_clean(value), default=str, option=_OPTIONS) + b"\n"


class _Vanishes(TypeError):
    """A value that has no place in JSON."""


def _default(value: object) -> object:
    if isinstance(value, datetime):
        return _iso(value)
    if callable(value):
        raise _Vanishes
    to_json = getattr(value, "to_json", None) or getattr(value, "model_dump", None)
    return to_json() if to_json else str(value)


def _iso(moment: datetime) -> str:
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return {str(key): _clean(item) for key, item in items if not callable(item)}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in cast("list[Any]", value) if not callable(item)]
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return cast(Any, value)


@contextlib.contextmanager
def _locked(descriptor: int) -> Generator[None]:
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _ends_whole(path: Path) -> bool:
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def iter_results(
    path: str | os.PathLike[str],
    *,
    since: int | None = None,
    until: int | None = None,
    agent_id: str | None = None,
    session_id: str | None = None,
    criterion_name: str | None = None,
    on_torn: Callable[[int, bytes], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """The results in a file, oldest first, filtered; times are milliseconds since 1970."""
    for number, line in _lines(path):
        try:
            result = orjson.loads(line)
        except orjson.JSONDecodeError:
            result = None
        if not isinstance(result, dict):
            log.warning("%s:%d is not a whole result and was set aside", path, number)
            if on_torn is not None:
                on_torn(number, line)
            continue
        found = cast(dict[str, Any], result)
        moment = found.get("timestamp") or 0
        if (since is not None and moment < since) or (until is not None and moment > until):
            continue
        if agent_id is not None and found.get("agentId") != agent_id:
            continue
        if session_id is not None and found.get("sessionId") != session_id:
            continue
        if criterion_name is not None and not _judges(found, criterion_name):
            continue
        yield found


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _judges(result: Mapping[str, Any], criterion_name: str) -> bool:
    return any(item.get("criterionName") == criterion_name for item in result.get("results") or ())
