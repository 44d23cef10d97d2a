"""Cassettes: exchanges with models and agents, recorded once and replayed without either.

The file behind one is JSON lines, one exchange each, whole lines only, one writer at a time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Literal, cast

import orjson
from pydantic import BaseModel

from .base.differences import Difference, first_difference, same_start, value_text
from .base.files import open_regular
from .base.lazy_dataclass import dataclass
from .base.locks import lock, write_all
from .base.problems import path_text
from .base.redaction import Redaction
from .base.text import excerpt

__all__ = ["Cassette", "CassetteError", "CassetteMiss", "key_of"]


class CassetteError(Exception):
    """A cassette that cannot be used as it is; the message says which, where and why."""


class CassetteMiss(CassetteError):
    """A replayed cassette holds no answer to what was asked."""


log = logging.getLogger("evalstudio")

_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_LONGEST_INTEGER = 19
_PARTS = ("request", "response")
_BEFORE = 24


@dataclass(slots=True, frozen=True)
class Exchange:
    """One line. Its request and response are read when needed: a cassette may be large.

    ``recording`` counts the times the file was opened to record, ``run_key`` names the run that asked.
    In the file they are called ``take`` and ``asker``.
    """

    line: int
    kind: str
    recording: int
    run_key: str
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


def read_exchanges(path: Path) -> list[Exchange]:
    """Every exchange in the file. A last line torn by a crash is set aside; a broken one is an error."""
    exchanges: list[Exchange] = []
    with open_regular(path) as file:
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
    value: Any = orjson.loads(line)
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    fields = cast(dict[str, Any], value)
    missing = [part for part in _PARTS if not isinstance(fields.get(part), dict)]
    if missing or not isinstance(fields.get("kind"), str):
        raise ValueError(f"it has no {missing[0] if missing else 'kind'}")
    recording: Any = fields.get("take", 1)
    return Exchange(
        line=number,
        kind=fields["kind"],
        recording=recording if isinstance(recording, int) else 1,
        run_key=str(fields.get("asker", "")),
        # Made anew, so that a request corrected by hand is found under what it now says.
        key=key_of(fields["request"]),
        raw=line,
    )


class CassetteFile:
    """A file that exchanges are appended to. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise CassetteError(f"{path} is not a file; record to one")
        self._file: IO[bytes] = open(path, "a+b", buffering=0)  # noqa: SIM115 - open as long as the cassette
        try:
            if not lock(self._file):
                raise CassetteError(f"{path} is being recorded by another process; record to another file")
            self._recording = max((exchange.recording for exchange in read_exchanges(path)), default=0) + 1
            self._repair()
        except BaseException:
            self._file.close()
            raise

    def append(
        self, kind: str, run_key: str, key: str, request: Mapping[str, Any], response: Mapping[str, Any]
    ) -> None:
        """One exchange as one whole line."""
        run = {"asker": run_key} if run_key else {}
        head = {"kind": kind, "take": self._recording, **run, "key": key}
        # The order is for people: what it is first, then what was asked, then the answer.
        parts = orjson.dumps(head)[:-1], to_bytes(request), to_bytes(response)
        write_all(self._file, b'%s,"request":%s,"response":%s}\n' % parts)

    def close(self) -> None:
        self._file.close()

    def _repair(self) -> None:
        """Complete a last line without its end, or cut off what a crash left of one."""
        data = self.path.read_bytes()
        rest = data[data.rfind(b"\n") + 1 :]
        if not rest.strip():
            return
        try:
            _read(rest, 0)
        except ValueError:
            os.truncate(self.path, len(data) - len(rest))
        else:
            self._file.write(b"\n")


Kind = Literal["model", "agent"]

_SHORTEST_SECRET = 8
_MOST_MISSES = 100


class Cassette:
    """One file of exchanges, in one of two modes; open it with ``record`` or ``replay``. Safe for threads."""

    def __init__(self, path: Path, file: CassetteFile | None, recorded: list[Exchange]) -> None:
        self.path = path
        self.misses: list[CassetteMiss] = []
        self._file = file
        self._recorded = _newest(recorded)
        self._asked: dict[tuple[str, str], int] = {}
        self._kept_once: set[str] = set()
        self._redact = Redaction()
        self._lock = threading.Lock()

    @classmethod
    def record(cls, path: str | Path) -> Cassette:
        """Append to a file, which is made where it is not there yet."""
        place = Path(path)
        try:
            return cls(place, CassetteFile(place), [])
        except OSError as error:
            raise CassetteError(f"{place} cannot be recorded to ({error.strerror})") from None

    @classmethod
    def replay(cls, path: str | Path) -> Cassette:
        """Answer from a file."""
        place = Path(path)
        try:
            return cls(place, None, read_exchanges(place))
        except FileNotFoundError:
            raise CassetteError(f"{place}: no such cassette; record it first") from None
        except OSError as error:
            raise CassetteError(f"{place} cannot be read ({error.strerror})") from None

    @property
    def replaying(self) -> bool:
        return self._file is None

    def hide(self, secrets: Iterable[str | None]) -> None:
        """Remove these from everything from now on, should somebody have echoed them."""
        with self._lock:
            self._redact = Redaction.of([*secrets, *self._redact.secrets], shortest=_SHORTEST_SECRET)

    def keep(
        self,
        kind: Kind,
        request: Mapping[str, Any],
        response: Mapping[str, Any],
        *,
        run_key: str = "",
        once: bool = False,
    ) -> None:
        """Record one exchange; with ``once``, not again if this recording has it already."""
        request, response = self._redact.everywhere(request), self._redact.everywhere(response)
        key = key_of(request)
        with self._lock:
            if self._file is None:
                raise CassetteError(f"{self.path} is being replayed, not recorded")
            if once and key in self._kept_once:
                return
            self._file.append(kind, run_key, key, request, response)
            if once:
                self._kept_once.add(key)

    def find(self, kind: Kind, request: Mapping[str, Any], *, run_key: str = "") -> dict[str, Any]:
        """The recorded response, or ``CassetteMiss``. What was recorded for the same run comes first."""
        request = self._redact.everywhere(request)
        key = key_of(request)
        exchanges = self._recorded.get((kind, key), [])
        own = [exchange for exchange in exchanges if exchange.run_key == run_key] or exchanges
        with self._lock:
            place = self._asked.get((key, run_key), 0)
            self._asked[key, run_key] = place + 1
        if place < len(own):
            return own[place].response
        if len({to_bytes(exchange.response) for exchange in own}) == 1:
            return own[-1].response
        raise self._missed(kind, request, len(own))

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> Cassette:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _missed(self, kind: Kind, request: Mapping[str, Any], times: int) -> CassetteMiss:
        why = f"It was recorded {times} times and is asked once more. Record it again."
        if not times:
            why = f"{self._nearest(kind, request)} Record it again if this is meant."
        what = f"{self.path} holds no answer to this {kind} request: {_described(request)}."
        miss = CassetteMiss(f"{what} {why}")
        with self._lock:
            if len(self.misses) < _MOST_MISSES:
                self.misses.append(miss)
        return miss

    def _nearest(self, kind: Kind, request: Mapping[str, Any]) -> str:
        if len(self.misses) >= _MOST_MISSES:
            # Looking for the nearest takes a while, and the first misses have given the reason.
            return "Many others are missing too."
        same_kind = (exchanges[0] for (of, _), exchanges in self._recorded.items() if of == kind)
        text = to_bytes(request)
        near = max(same_kind, key=lambda one: _closeness(text, to_bytes(one.request)), default=None)
        if near is None:
            return f"Nothing a{'n agent' if kind == 'agent' else ' model'} said is recorded in it."
        difference = first_difference(near.request, request, "exact")
        where = f" at {_difference(difference)}" if difference else ""
        return f"The nearest recorded one, in line {near.line}, differs first{where}."


def _newest(recorded: list[Exchange]) -> dict[tuple[str, str], list[Exchange]]:
    """The exchanges by kind and key, each key's from the last recording that asked for it."""
    newest: dict[tuple[str, str], list[Exchange]] = {}
    for exchange in recorded:
        exchanges = newest.setdefault((exchange.kind, exchange.key), [])
        if exchanges and exchanges[0].recording != exchange.recording:
            exchanges.clear()
        exchanges.append(exchange)
    return newest


def _described(request: Mapping[str, Any]) -> str:
    """A request in a few words: what is asked of whom, and the last thing said."""
    what = request.get("op", "a request")
    whom = request.get("model") or request.get("connector") or "?"
    messages: Any = request.get("newMessages") or request.get("messages") or [{}]
    last: Any = request.get("text") or messages[-1].get("content") or ""
    return f'{what} of {whom}, last said "{excerpt(str(last))}"'


def _closeness(one: bytes, other: bytes) -> float:
    """How much two requests have in common at their beginning and their end."""
    return (same_start(one, other) + same_start(one[::-1], other[::-1])) / max(len(one), len(other))


def _difference(difference: Difference) -> str:
    current, recorded = difference.actual, difference.expected
    start = 0
    if isinstance(current, str) and isinstance(recorded, str):
        # Long texts often share their beginning: what is shown starts shortly before they part.
        start = max(0, same_start(current, recorded) - _BEFORE)

    def part(value: object) -> str:
        if not isinstance(value, str):
            return excerpt(value_text(value))
        return f'"{"…" if start else ""}{excerpt(value[start:])}"'

    return f"{path_text(difference.path) or 'the whole'}: asked {part(current)}, recorded {part(recorded)}"
