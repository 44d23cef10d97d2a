"""Files of definitions, read with the line of every part, so that a mistake is named by file and line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..base.files import ConfigError
from ..base.located import Located, parse_json, parse_yaml
from .config import CONFIG_NAMES

SUFFIXES = (".yaml", ".yml", ".json")
MOST_BYTES = 20_000_000


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


def read_located(path: Path) -> list[Located]:
    """The documents of a file."""
    return parse_located(read_text(path), str(path), is_json=path.suffix.lower() == ".json")


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


def parse_located(text: str, path: str, *, is_json: bool) -> list[Located]:
    """The documents in a text. JSON is read as JSON: YAML would misread some of it."""
    if is_json:
        return [parse_json(text, path)]
    return parse_yaml(text, path)
