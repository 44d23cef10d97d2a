"""Where two JSON values first differ, exactly or as far as the expected one goes, and how to write that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, cast
from unicodedata import normalize

from .json_text import json_text
from .lazy_dataclass import dataclass
from .paths import MISSING
from .text import cut

Match = Literal["subset", "exact"]
Path = tuple[str | int, ...]

_LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values part, and what each has there; ``MISSING`` where one has nothing."""

    path: Path
    expected: Any
    actual: Any

    def __str__(self) -> str:
        return f"expected {value_text(self.expected)}, got {value_text(self.actual)}"


def first_difference(expected: Any, actual: Any, match: Match, path: Path = ()) -> Difference | None:
    """The first place where the actual value is not what is expected.

    As a subset, objects may hold more keys than expected, also inside lists; lists are always as long.
    """
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        pairs = _by_key(cast(Mapping[str, Any], expected), cast(Mapping[str, Any], actual), match)
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        items = zip_longest(cast(Sequence[Any], expected), cast(Sequence[Any], actual), fillvalue=MISSING)
        pairs = ((place, *both) for place, both in enumerate(items))
    else:
        return None if _same(expected, actual) else Difference(path, expected, actual)
    for key, expected_item, actual_item in pairs:
        if difference := first_difference(expected_item, actual_item, match, (*path, key)):
            return difference
    return None


def _by_key(
    expected: Mapping[str, Any], actual: Mapping[str, Any], match: Match
) -> Iterator[tuple[str, Any, Any]]:
    for key, item in expected.items():
        yield key, item, actual.get(key, MISSING)
    if match == "exact":
        for key, item in actual.items():
            if key not in expected:
                yield key, MISSING, item


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str) and isinstance(actual, str):
        return normalize("NFC", expected) == normalize("NFC", actual)
    # In JSON true is not 1, though 1 is 1.0.
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def value_text(value: Any) -> str:
    """A value as JSON, cut to what a reason can hold."""
    return "nothing" if value is MISSING else cut(json_text(value), _LONGEST_SHOWN)


def same_start(one: bytes | str, other: bytes | str) -> int:
    """How many characters agree from the start, by halving: comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
