"""What a request nobody recorded looks like beside the nearest one that was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ..messages import json_text
from ..schemas import path_text
from .tape import Exchange, to_bytes

Path = tuple[str | int, ...]

_BEFORE, _AFTER = 24, 56
_ABSENT = object()


def nearest(request: dict[str, Any], recorded: Iterable[Exchange]) -> Exchange | None:
    """The exchange whose request has most in common with this one at its beginning and its end."""
    wanted = to_bytes(request)
    return max(recorded, key=lambda exchange: _closeness(wanted, to_bytes(exchange.request)), default=None)


def _closeness(one: bytes, other: bytes) -> float:
    same = _same_start(one, other) + _same_start(one[::-1], other[::-1])
    return same / max(len(one), len(other))


def _same_start(one: bytes | str, other: bytes | str) -> int:
    """How many characters agree from the start, by halving: comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def first_difference(asked: Any, recorded: Any, path: Path = ()) -> str | None:
    """The first place where two values differ, with what stands there in both."""
    if isinstance(asked, dict) and isinstance(recorded, dict):
        return _in_objects(cast(dict[str, Any], asked), cast(dict[str, Any], recorded), path)
    if isinstance(asked, list) and isinstance(recorded, list):
        return _in_lists(cast(list[Any], asked), cast(list[Any], recorded), path)
    if asked == recorded and isinstance(asked, bool) == isinstance(recorded, bool):
        return None
    start = 0
    if isinstance(asked, str) and isinstance(recorded, str):
        start = _same_start(asked, recorded)
    return (
        f"{path_text(path) or 'the whole'}: asked {_shown(asked, start)}, recorded {_shown(recorded, start)}"
    )


def _in_objects(asked: dict[str, Any], recorded: dict[str, Any], path: Path) -> str | None:
    names = [*asked, *(name for name in recorded if name not in asked)]
    pairs = ((name, asked.get(name, _ABSENT), recorded.get(name, _ABSENT)) for name in names)
    return next((found for name, a, r in pairs if (found := first_difference(a, r, (*path, name)))), None)


def _in_lists(asked: list[Any], recorded: list[Any], path: Path) -> str | None:
    for place in range(max(len(asked), len(recorded))):
        pair = (items[place] if place < len(items) else _ABSENT for items in (asked, recorded))
        if found := first_difference(*pair, path=(*path, place)):
            return found
    return None


def _shown(value: Any, start: int) -> str:
    if value is _ABSENT:
        return "nothing"
    if not isinstance(value, str):
        return excerpt(json_text(value))
    first = max(0, start - _BEFORE)
    return f'"{"…" if first else ""}{excerpt(value[first:])}"'


def excerpt(text: str, most: int = _BEFORE + _AFTER) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: most * 2].split())
    return line if len(line) <= most and len(text) <= most * 2 else line[: most - 1] + "…"
