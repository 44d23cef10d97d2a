"""The files of a project folder that scoring can use: datasets, plans and results, each by its path."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from ..base.files import parse_text, read_text, single_data
from ..base.problems import InvalidInput, Problem
from ..project.config import CONFIG_NAMES
from ..project.entities import Moment
from ..project.secrets import secret_settings
from ..project.validation import inside
from ..reporting.statistics import Figure
from ..scoring.plan import EVALUATORS
from ..scoring.results_file import note_of

OWN_FOLDER = "data"
SCORINGS = "scorings"
UPLOADED = (".jsonl", ".ndjson", ".csv", ".tsv")
DATASETS = (*UPLOADED, ".parquet")
PLANS = (".yaml", ".yml", ".json")
MOST_FILES = 100
LARGEST_PLAN = 1_000_000
_MOST_FOLDERS = 2_000
# Readable in YAML without quotes, which a row of asterisks is not.
_HIDDEN = "(hidden)"
_MOST_TRIED = 500
_SKIPPED = frozenset({"node_modules", ".git", ".venv", "venv", "__pycache__"})


class FileEntry(Figure):
    """A file of the project folder."""

    path: str = Field(description="Relative to the project folder")
    bytes: int
    written_at: Moment


class ScoringSources(Figure):
    """What of a project can be scored, and by what."""

    datasets: list[FileEntry]
    plans: list[FileEntry]


def list_results(folder: Path) -> list[FileEntry]:
    """The results files in a folder, told by the note beside each; the newest first."""
    return _newest(folder, (path for path, names in _files(folder) if note_of(path).name in names))


def list_sources(folder: Path) -> ScoringSources:
    """The datasets and plans in a folder, the newest first; what the server keeps there is left out."""
    own = folder / OWN_FOLDER
    files = [(path, names) for path, names in _files(folder) if not path.is_relative_to(own)]
    datasets = (
        path for path, names in files if path.suffix.lower() in DATASETS and note_of(path).name not in names
    )
    candidates = [path for path, _ in files if path.suffix.lower() in PLANS and path.name not in CONFIG_NAMES]
    plans = (path for path in candidates[:_MOST_TRIED] if _plan_in(path) is not None)
    return ScoringSources(datasets=_newest(folder, datasets), plans=_newest(folder, plans))


def _files(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """Every file with the names beside it, of a bounded number of folders."""
    for number, (at, folders, files) in enumerate(os.walk(folder)):
        folders[:] = [] if number > _MOST_FOLDERS else [one for one in folders if one not in _SKIPPED]
        names = set(files)
        yield from ((Path(at) / one, names) for one in files)


def _newest(folder: Path, paths: Iterator[Path]) -> list[FileEntry]:
    entries = [entry for path in paths if (entry := _entry(folder, path)) is not None]
    return sorted(entries, key=lambda one: one.written_at, reverse=True)[:MOST_FILES]


def _entry(folder: Path, path: Path) -> FileEntry | None:
    try:
        stat = path.stat()
    except OSError:
        # Deleted since it was found, or a link that leads nowhere.
        return None
    written = datetime.fromtimestamp(stat.st_mtime, UTC)
    return FileEntry(path=path.relative_to(folder).as_posix(), bytes=stat.st_size, written_at=written)


def _plan_in(path: Path) -> tuple[str, Mapping[str, Any]] | None:
    """The text and settings of a file that is a scoring plan; nothing if it is something else."""
    try:
        text = read_text(path, LARGEST_PLAN)
        documents = parse_text(text, path.name, is_json=path.suffix.lower() == ".json")
    except InvalidInput:
        return None
    data: Any = single_data(documents)
    if not isinstance(data, dict):
        return None
    settings = cast(dict[str, Any], data)
    # A scenario has evaluators too, and a name; a config file's evaluators are names of plugins.
    entries = next((settings[name] for name in EVALUATORS if isinstance(settings.get(name), list)), None)
    holds_entries = entries is not None and any(isinstance(one, dict) for one in cast(list[Any], entries))
    is_plan = "name" not in settings and (holds_entries or "extends" in settings)
    return (text, settings) if is_plan else None


def plan_text(folder: Path, name: str) -> tuple[Path, str, bool]:
    """The path of a plan in the project folder, its text, and whether keys in it had to be masked."""
    path = inside(folder, name)
    plan = None
    if path.suffix.lower() in PLANS and path.name not in CONFIG_NAMES and os.path.isfile(path):
        plan = _plan_in(path)
    if plan is None:
        raise InvalidInput(
            Problem(f'"{name}" is not a scoring plan of the project', ("path",), "name a YAML or JSON plan")
        )
    text, settings = plan
    shown = text
    secrets = {secret for _, secret in secret_settings(settings)}
    for secret in sorted(secrets, key=len, reverse=True):
        shown = shown.replace(secret, _HIDDEN)
    return path, shown, shown != text


def source_path(folder: Path, name: str, suffixes: tuple[str, ...], field: str) -> Path:
    """A dataset or plan that somebody named: a file of the project, not one that the server keeps there."""
    try:
        path = inside(folder, name)
    except InvalidInput as error:
        raise error.within(field) from None
    root = folder.resolve()
    if path.suffix.lower() not in suffixes:
        hint = f"name a file that ends with {', '.join(suffixes)}"
        raise InvalidInput(Problem(f'"{name}" is of no kind that is read here', (field,), hint))
    if path.is_relative_to(root / OWN_FOLDER) or not os.path.isfile(path):
        raise InvalidInput(Problem(f'there is no file "{name}" in the project', (field,)))
    return path.relative_to(root)
