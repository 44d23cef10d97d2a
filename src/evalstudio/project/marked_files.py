"""Files of definitions, read with the line of every part, so that a mistake is named by file and line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..files import ConfigError
from .config import CONFIG_NAMES

SUFFIXES = (".yaml", ".yml", ".json")
Place = tuple[str | int, ...]
MOST_BYTES = 20_000_000
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


def definition_files(path: Path) -> list[Path]:
    """The files a path stands for: itself, or everything of ours below a folder."""
    if path.is_dir():
        return sorted(_below(path))
    if not path.exists():
        raise ConfigError(f"{path}: no such file or folder")
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{path}: definitions are read from {', '.join(SUFFIXES)} files")
    return [path]


def _below(folder: Path) -> Iterator[Path]:
    """Files of definitions; what is hidden, and the config file itself, is left out."""
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith((".", "__"))]
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith(".") and name not in CONFIG_NAMES:
                yield Path(place, name)


def read_marked(path: Path) -> list[Marked]:
    """The documents of a file."""
    return parse_marked(read_text(path), str(path), is_json=path.suffix.lower() == ".json")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """A file as text, if it is not larger than it should be."""
    try:
        if path.stat().st_size > most:
            raise ConfigError(
                f"{path}: is larger than {most // 1_000_000} MB; keep many cases in a CSV or JSONL file"
            )
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None


def parse_marked(text: str, path: str, *, is_json: bool) -> list[Marked]:
    """The documents in a text. JSON is read as JSON: YAML would misread some of it."""
    if is_json:
        from .marked_json import parse_json

        return [parse_json(text, path)]
    from .marked_yaml import parse_yaml

    return parse_yaml(text, path)


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
