"""Cassettes: exchanges with models and agents, recorded once and played back without either.

The file behind one is JSON lines, one exchange each, whole lines only, one writer at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, cast

import orjson
from pydantic import BaseModel

from .base.differences import Difference, excerpt, first_difference, same_start, shown
from .base.problems import path_text

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


def read_exchanges(path: Path) -> list[Exchange]:
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


class CassetteFile:
    """A file that exchanges are appended to. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = open(path, "a+b", buffering=0)  # noqa: SIM115 - open as long as the cassette
        try:
            _lock(self._file, path)
            self.take = max((exchange.take for exchange in read_exchanges(path)), default=0) + 1
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


Kind = Literal["model", "agent"]

_HIDDEN = "***"
# Blotting out short words would tear holes into ordinary sentences.
_SHORTEST_SECRET = 8
_MOST_MISSES = 100


class Cassette:
    """One file of exchanges, in one of two modes; open it with ``record`` or ``replay``. Safe for threads."""

    def __init__(self, path: Path, tape: CassetteFile | None, recorded: list[Exchange]) -> None:
        self.path = path
        self.misses: list[CassetteMiss] = []
        self._tape = tape
        self._recorded = _newest(recorded)
        self._asked: dict[tuple[str, str], int] = {}
        self._kept_once: set[str] = set()
        self._secrets: tuple[str, ...] = ()
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
        return self._tape is None

    def hide(self, secrets: Iterable[str | None]) -> None:
        """Blot these out of everything from now on, should somebody have echoed them."""
        with self._lock:
            found = {secret for secret in secrets if secret and len(secret) >= _SHORTEST_SECRET}
            # The longest first: a secret may contain another.
            self._secrets = tuple(sorted(found.union(self._secrets), key=len, reverse=True))

    def keep(
        self,
        kind: Kind,
        request: Mapping[str, Any],
        response: Mapping[str, Any],
        *,
        asker: str = "",
        once: bool = False,
    ) -> None:
        """Record one exchange; with ``once``, not again if this recording has it already."""
        asked, heard = self._without_secrets(request), self._without_secrets(response)
        key = key_of(asked)
        with self._lock:
            if self._tape is None:
                raise CassetteError(f"{self.path} is being replayed, not recorded")
            if once and key in self._kept_once:
                return
            self._tape.append(kind, asker, key, asked, heard)
            if once:
                self._kept_once.add(key)

    def find(self, kind: Kind, request: Mapping[str, Any], *, asker: str = "") -> dict[str, Any]:
        """The recorded response, or ``CassetteMiss``. What was recorded for the same asker comes first."""
        asked = self._without_secrets(request)
        key = key_of(asked)
        heard = self._recorded.get((kind, key), [])
        own = [exchange for exchange in heard if exchange.asker == asker] or heard
        with self._lock:
            place = self._asked.get((key, asker), 0)
            self._asked[key, asker] = place + 1
        if place < len(own):
            return own[place].response
        if own and _all_same(own):
            return own[-1].response
        raise self._missed(kind, asked, len(own))

    def close(self) -> None:
        with self._lock:
            if self._tape is not None:
                self._tape.close()

    def __enter__(self) -> Cassette:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _without_secrets(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A copy with the secrets blotted out: only where there are any."""
        secrets = self._secrets
        if not secrets:
            return dict(value)
        text = to_bytes(value)
        found = [secret for secret in secrets if to_bytes(secret)[1:-1] in text]
        return _blotted(value, found) if found else dict(value)

    def _missed(self, kind: Kind, asked: dict[str, Any], times: int) -> CassetteMiss:
        what = f"{self.path} holds no answer to this {kind} request: {_described(asked)}."
        if times:
            miss = CassetteMiss(
                f"{what} It was recorded {times} times and is asked once more. Record it again."
            )
        else:
            miss = CassetteMiss(f"{what} {self._nearest(kind, asked)} Record it again if this is meant.")
        with self._lock:
            if len(self.misses) < _MOST_MISSES:
                self.misses.append(miss)
        return miss

    def _nearest(self, kind: Kind, asked: dict[str, Any]) -> str:
        if len(self.misses) >= _MOST_MISSES:
            # Looking for the nearest takes a while, and the first misses have told the reason.
            return "Many others are missing too."
        same_kind = (heard[0] for (of, _), heard in self._recorded.items() if of == kind)
        wanted = to_bytes(asked)
        near = max(same_kind, key=lambda one: _closeness(wanted, to_bytes(one.request)), default=None)
        if near is None:
            return f"Nothing a{'n agent' if kind == 'agent' else ' model'} said is recorded in it."
        difference = first_difference(near.request, asked, "exact")
        where = f" at {_difference(difference)}" if difference else ""
        return f"The nearest recorded one, in line {near.line}, differs first{where}."


def _newest(recorded: list[Exchange]) -> dict[tuple[str, str], list[Exchange]]:
    """The exchanges by kind and key, each key's from the last take that asked for it."""
    found: dict[tuple[str, str], list[Exchange]] = {}
    for exchange in recorded:
        heard = found.setdefault((exchange.kind, exchange.key), [])
        if heard and heard[0].take != exchange.take:
            heard.clear()
        heard.append(exchange)
    return found


def _all_same(exchanges: list[Exchange]) -> bool:
    return len({to_bytes(exchange.response) for exchange in exchanges}) == 1


def _blotted(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {name: _blotted(item, secrets) for name, item in fields.items()}
    if isinstance(value, list | tuple):
        return [_blotted(item, secrets) for item in cast("list[Any]", value)]
    return value


def _described(request: Mapping[str, Any]) -> str:
    """A request in a few words: what is asked of whom, and the last thing said."""
    what = request.get("op", "a request")
    whom = request.get("model") or request.get("connector") or "?"
    messages: Any = request.get("newMessages") or request.get("messages") or [{}]
    said: Any = request.get("text") or messages[-1].get("content") or ""
    return f'{what} of {whom}, last said "{excerpt(said if isinstance(said, str) else str(said))}"'


def _closeness(one: bytes, other: bytes) -> float:
    """How much two requests have in common at their beginning and their end."""
    return (same_start(one, other) + same_start(one[::-1], other[::-1])) / max(len(one), len(other))


def _difference(difference: Difference) -> str:
    asked, recorded = difference.actual, difference.expected
    start = 0
    if isinstance(asked, str) and isinstance(recorded, str):
        # Long texts often share their beginning: what is shown starts shortly before they part.
        start = max(0, same_start(asked, recorded) - _BEFORE)

    def part(value: object) -> str:
        if not isinstance(value, str):
            return excerpt(shown(value))
        return f'"{"…" if start else ""}{excerpt(value[start:])}"'

    return f"{path_text(difference.path) or 'the whole'}: asked {part(asked)}, recorded {part(recorded)}"
