"""The files that paths, folders and patterns name, in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path

from ..base.problems import InvalidInput


def conversation_files(paths: Sequence[Path]) -> list[Path]:
    """Every file that is named, each once. ``InvalidInput`` where one is not there or is empty."""
    files = list(dict.fromkeys(file for path in paths for file in _files_of(path)))
    if not files:
        raise InvalidInput("name a file with recorded conversations, or a folder of them")
    return files


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from _inside(path)
    elif path.exists() or not has_magic(str(path)):
        _check(path)
        yield path
    else:
        matches = sorted(Path(name) for name in glob(str(path), recursive=True))
        if not matches:
            raise InvalidInput.at(path, "no file is named like this")
        for match in matches:
            yield from _files_of(match)


def _inside(folder: Path) -> Iterator[Path]:
    """The files of a folder and the folders in it, without hidden ones."""
    names = [
        Path(parent) / name
        for parent, folders, files in os.walk(folder)
        if not folders.sort() and not _is_hidden(Path(parent).relative_to(folder))
        for name in files
        if not name.startswith(".")
    ]
    if not names:
        raise InvalidInput.at(folder, "the folder holds no file")
    yield from sorted(names)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _check(path: Path) -> None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise InvalidInput.at(path, "no such file") from None
    except OSError as error:
        raise InvalidInput.at(path, f"cannot be read ({error.strerror})") from None
    if not size and path.is_file():
        raise InvalidInput.at(path, "is empty; a recording holds at least one conversation")
