"""The file behind a cassette: JSON lines, one exchange each, whole lines only, one writer at a time.

A line is ``{"kind", "take", "asker", "key", "request", "response"}``. Every recording of a file is a new
take; what it asked again replaces what earlier takes had heard.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import orjson
from pydantic import BaseModel

from .errors import CassetteError

log = logging.getLogger("evalstudio")

_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_LONGEST_INTEGER = 19
_PARTS = ("request", "response")


@dataclass(slots=True, frozen=True)
class Exchange:
    """One line. Its request and response are read when needed: a cassette may be large."""

    line: int
    kind: str
    take: int
    asker: str
    key: str
    raw: bytes

    @property
    def request(self) -> dict[str, Any]:
        return orjson.loads(self.raw)["request"]

    @property
    def response(self) -> dict[str, Any]:
        return orjson.loads(self.raw)["response"]


def to_bytes(value: object) -> bytes:
    """JSON that is the same for equal values, whatever the order of their keys."""
    try:
        return orjson.dumps(value, default=_plain, option=_SORTED)
    except orjson.JSONEncodeError:
        # Halves of surrogate pairs and integers beyond 64 bits: rare, so the slow way.
        text = json.dumps(value, default=_plain, ensure_ascii=False).encode("utf-8", "replace")
        return orjson.dumps(json.loads(text, parse_int=_number), option=_SORTED)


def _number(text: str) -> int | float:
    return int(text) if len(text) < _LONGEST_INTEGER else float(text)


def _plain(value: object) -> object:
    return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else str(value)


def key_of(request: Mapping[str, Any]) -> str:
    """The name of a request: equal requests have the same, others do not."""
    return hashlib.sha256(to_bytes(request)).hexdigest()[:32]


def read_tape(path: Path) -> list[Exchange]:
    """Every exchange in the file. A last line torn by a crash is set aside; a broken one is an error."""
    exchanges: list[Exchange] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                exchanges.append(_read(line, number))
            except ValueError as error:
                if line.endswith(b"\n"):
                    raise CassetteError(f"{path}:{number}: not an exchange of a cassette: {error}") from None
                log.warning("%s:%d is torn and was set aside", path, number)
    return exchanges


def _read(line: bytes, number: int) -> Exchange:
    found: Any = orjson.loads(line)
    if not isinstance(found, dict):
        raise ValueError("an object is expected")
    fields = cast(dict[str, Any], found)
    missing = [part for part in _PARTS if not isinstance(fields.get(part), dict)]
    if missing or not isinstance(fields.get("kind"), str):
        raise ValueError(f"it has no {missing[0] if missing else 'kind'}")
    take: Any = fields.get("take", 1)
    return Exchange(
        line=number,
        kind=fields["kind"],
        take=take if isinstance(take, int) else 1,
        asker=str(fields.get("asker", "")),
        # Made anew, so that a request corrected by hand is found under what it now says.
        key=key_of(fields["request"]),
        raw=line,
    )


class Tape:
    """A file that exchanges are appended to. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = open(path, "a+b", buffering=0)  # noqa: SIM115 - open as long as the cassette
        try:
            _lock(self._file, path)
            self.take = max((exchange.take for exchange in read_tape(path)), default=0) + 1
            self._mend()
        except BaseException:
            self._file.close()
            raise

    def append(
        self, kind: str, asker: str, key: str, request: Mapping[str, Any], response: Mapping[str, Any]
    ) -> None:
        """One exchange as one whole line."""
        head = {"kind": kind, "take": self.take} | ({"asker": asker} if asker else {}) | {"key": key}
        # The order is for people: what it is first, then what was asked, then the answer.
        parts = [
            orjson.dumps(head)[:-1],
            b',"request":',
            to_bytes(request),
            b',"response":',
            to_bytes(response),
        ]
        view = memoryview(b"".join([*parts, b"}\n"]))
        while view:
            view = view[self._file.write(view) :]

    def close(self) -> None:
        self._file.close()

    def _mend(self) -> None:
        """Complete a last line without its end, or cut off what a crash left of one."""
        with self.path.open("rb") as file:
            data = file.read()
        rest = data[data.rfind(b"\n") + 1 :]
        if not rest.strip():
            return
        try:
            _read(rest, 0)
        except ValueError:
            os.truncate(self.path, len(data) - len(rest))
        else:
            self._file.write(b"\n")


def _lock(file: IO[bytes], path: Path) -> None:
    with contextlib.suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CassetteError(
                f"{path} is being recorded by another process; record to another file"
            ) from None
