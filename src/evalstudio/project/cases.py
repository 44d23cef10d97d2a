"""Cases of a scenario: listed in it, or rows of a CSV or JSON-lines file inside the project folder."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from ..configs import readable
from ..conversation.definitions import Case, Scenario
from ..files import ConfigError

MOST_CASES = 100_000
_CASE_KEYS = frozenset({"name", "vars", "groundTruth", "context"})


def cases_of(scenario: Scenario, folder: Path) -> list[Case]:
    """The cases of a scenario; none means one run without values."""
    if isinstance(scenario.cases, list):
        return scenario.cases
    path = inside(folder, scenario.cases)
    cases = [_case(path, line, row) for line, row in _rows(path)]
    if not cases:
        raise ConfigError(f"{path}: has no cases")
    if len(cases) > MOST_CASES:
        raise ConfigError(f"{path}: has {len(cases):,} cases; {MOST_CASES:,} are the most")
    return cases


def inside(folder: Path, name: str) -> Path:
    """A path given by a user, resolved, that must not lead out of the project folder."""
    root = folder.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise ConfigError(f'"{name}" leads out of the project folder; use a path inside it')
    return path


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    return _csv_rows(path, text) if path.suffix.lower() == ".csv" else _json_rows(path, text)


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ConfigError(f"{path}:{reader.line_num}: has more or fewer cells than the header")
            yield reader.line_num, dict(row)
    except csv.Error as error:
        raise ConfigError(f"{path}:{reader.line_num}: is not valid CSV: {error}") from None


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row: Any = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"{path}:{number}: is not valid JSON: {error.msg}") from None
        if not isinstance(row, dict):
            raise ConfigError(f"{path}:{number}: is not an object")
        yield number, row


def _case(path: Path, line: int, row: dict[str, Any]) -> Case:
    """A row: what is not part of a case by name is one of its values."""
    known = {key: item for key, item in row.items() if key in _CASE_KEYS}
    values = {key: item for key, item in row.items() if key not in _CASE_KEYS}
    if values:
        known["vars"] = {**values, **(known.get("vars") or {})}
    try:
        return Case.model_validate(known)
    except ValidationError as error:
        where, message = readable(error)[0]
        raise ConfigError(f"{path}:{line}: {where}: {message}") from None
