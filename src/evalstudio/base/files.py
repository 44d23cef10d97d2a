"""Files a person writes, YAML or JSON, read one way, with the file and line of every part."""

from __future__ import annotations

import os
import stat
from errno import EISDIR
from io import BufferedReader
from pathlib import Path
from typing import Any

from .located import Located, parse_json
from .problems import InvalidInput

MOST_BYTES = 20_000_000
# Not every system has all of these.
_NO_WAITING = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def read_mapping(path: Path) -> Located:
    """A file that holds one object with named settings."""
    return mapping_of(read_file(path), path)


def mapping_of(documents: list[Located], path: str | Path) -> Located:
    """The one document, if it is an object with named settings."""
    if len(documents) > 1:
        raise InvalidInput.at(documents[1].at(), "expected one document, found another")
    data: object = documents[0].data if documents else None
    if not isinstance(data, dict):
        kind = "nothing" if data is None else "a list" if isinstance(data, list) else "a single value"
        raise InvalidInput.at(path, f"expected an object with named settings, found {kind}")
    return documents[0]


def single_data(documents: list[Located]) -> Any:
    """The data of the only document there is; nothing where there are none or several."""
    return documents[0].data if len(documents) == 1 else None


def read_file(path: Path) -> list[Located]:
    """The documents of a file."""
    return parse_text(read_text(path), str(path), is_json=path.suffix.lower() == ".json")


def parse_text(text: str, path: str, *, is_json: bool) -> list[Located]:
    """The documents in a text. JSON is read as JSON: YAML would misread some of it."""
    if is_json:
        return [parse_json(text, path)]
    # Not every process reads YAML, and importing its parser takes as long as reading a hundred files.
    from .located_yaml import parse_yaml

    return parse_yaml(text, path)


def open_regular(path: Path) -> BufferedReader:
    """A file that somebody named, opened for reading, if it is one.

    A pipe or a device would be waited for, or read, for ever. It is opened without waiting and looked at
    then: looked at first, it could be exchanged in between.
    """
    descriptor = os.open(path, os.O_RDONLY | _NO_WAITING)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise InvalidInput.at(path, f"is {_kind_of(mode)}, not a file")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _kind_of(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """A file as text, if it is not larger than it should be."""
    try:
        with open_regular(path) as file:
            content = file.read(most + 1)
        if len(content) > most:
            message = f"is larger than {most // 1_000_000} MB"
            raise InvalidInput.at(path, message, "keep many cases in a CSV or JSONL file")
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InvalidInput.at(path, "no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput.at(f"{path}:{line}", "not UTF-8 text") from None
    except OSError as error:
        raise InvalidInput.at(path, f"cannot be read ({error.strerror})") from None
