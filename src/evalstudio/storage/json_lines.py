"""Results as JSON lines: one compact line per result, appended, safe for several processes at once.

A line torn by a crash is never glued to the next one, and is set aside on reading.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from ..base.files import open_regular
from ..base.json_text import HasJson, json_line
from ..base.locks import lock, write_all
from ..base.paths import fields_of, items_of

log = logging.getLogger("evalstudio")


class JsonFileStorageProvider:
    """Appends every result to one file. Parent folders are made; the file comes with the first result."""

    def __init__(self, file_path: str | os.PathLike[str]) -> None:
        if not str(file_path):
            raise ValueError("file_path must name a file")
        self.path = Path(file_path)
        self.path.parent.mkdir(parents=True, exist_ok=True)

    async def save_result(self, result: HasJson | Mapping[str, Any]) -> None:
        line = json_line(result)
        await asyncio.get_running_loop().run_in_executor(None, self.append, line)

    def append(self, lines: bytes) -> None:
        """Add whole lines in one write, after completing a torn one."""
        with open(self.path, "ab", buffering=0) as file:
            lock(file, wait=True)
            write_all(file, lines if _ends_whole(self.path) else b"\n" + lines)


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
        fields = cast(dict[str, Any], result)
        if (
            _within(fields, since, until)
            and (agent_id is None or fields.get("agentId") == agent_id)
            and (session_id is None or fields.get("sessionId") == session_id)
            and (criterion_name is None or _judges(fields, criterion_name))
        ):
            yield fields


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    with open_regular(Path(path)) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _within(result: Mapping[str, Any], since: int | None, until: int | None) -> bool:
    if since is None and until is None:
        return True
    moment = result.get("timestamp")
    if not isinstance(moment, int | float):
        return False
    return (since is None or moment >= since) and (until is None or moment <= until)


def _judges(result: Mapping[str, Any], criterion_name: str) -> bool:
    rows = items_of(result.get("results")) or []
    return any(fields_of(row).get("criterionName") == criterion_name for row in rows)
