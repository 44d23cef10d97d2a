"""Plain data that knows where it stands in its file, and what a file of definitions may hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..files import ConfigError

Place = tuple[str | int, ...]
MOST_PARTS = 500_000
DEEPEST = 100
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Marked:
    """Plain data from a file, with the line each part of the file stands on."""

    path: str
    data: Any
    lines: Mapping[Place, int] = field(default_factory=dict[Place, int], repr=False)
    root: Place = ()

    def at(self, place: Place = ()) -> str:
        """``file:line`` of a place, or of the nearest part around it."""
        whole = self.root + place
        while whole and whole not in self.lines:
            whole = whole[:-1]
        line = self.lines.get(whole)
        return f"{self.path}:{line}" if line else self.path

    def part(self, place: Place) -> Marked:
        """One part of the data, its places counted from there."""
        data = self.data
        for step in place:
            data = data[step]
        return replace(self, data=data, root=self.root + place)


def checked(value: Any, where: str) -> Any:
    """A plain value, if it is one that can be kept as it is."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: a number must be finite")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise ConfigError(f"{where}: this number is too large to be kept exactly; put it in quotes")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{where}: holds half of a surrogate pair, which is not text") from None
    return value
