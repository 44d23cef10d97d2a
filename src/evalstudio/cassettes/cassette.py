"""``Cassette``: either records exchanges to a file or answers from one. It knows nothing of what is in them.

Replaying needs no network and no key, and looks requests up by what they say, never by their place in the
file, so that runs may go on at once. The answers to a request asked several times come in the order in
which they were recorded. Beyond the last one the same answer is given again where all were the same;
where they differed there is no honest answer, and asking once more is a miss.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, cast

from .differences import excerpt, first_difference, nearest
from .errors import CassetteError, CassetteMiss
from .tape import Exchange, Tape, key_of, read_tape, to_bytes

Kind = Literal["model", "agent"]

_HIDDEN = "***"
# Blotting out short words would tear holes into ordinary sentences.
_SHORTEST_SECRET = 8
_MOST_MISSES = 100


class Cassette:
    """One file of exchanges, in one of two modes; open it with ``record`` or ``replay``. Safe for threads."""

    def __init__(self, path: Path, tape: Tape | None, recorded: list[Exchange]) -> None:
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
            return cls(place, Tape(place), [])
        except OSError as error:
            raise CassetteError(f"{place} cannot be recorded to ({error.strerror})") from None

    @classmethod
    def replay(cls, path: str | Path) -> Cassette:
        """Answer from a file."""
        place = Path(path)
        try:
            return cls(place, None, read_tape(place))
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
        near = nearest(asked, same_kind)
        if near is None:
            return f"Nothing a{'n agent' if kind == 'agent' else ' model'} said is recorded in it."
        where = first_difference(asked, near.request)
        return f"The nearest recorded one, in line {near.line}, differs first at {where}."


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
