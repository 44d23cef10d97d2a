"""Which files the stored definitions were applied from, so that what differs since can be pointed out.

The record is a file of this machine beside the project's data, for paths mean nothing to others. It saves
reading definitions again: a file with the same bytes and a definition of the same version differ in nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import orjson

from ..base.files import open_regular
from ..base.problems import InvalidInput
from .changes import SUFFIXES, DefinitionKey, ProjectState, change_of, read_files
from .documents import Document
from .secrets import SecretBox

# Hidden, so that it is not taken for a file of definitions itself.
_RECORD = Path("data", ".applied.json")


def remember(folder: Path, documents: Iterable[Document], state: ProjectState) -> None:
    """Keep where these definitions came from. A folder that cannot be written to keeps nothing."""
    record = _read(folder)
    hashes: dict[Path, str | None] = {}
    for document in documents:
        entity = state.entity(document.key)
        if document.located is None or entity is None:
            continue
        path = Path(document.located.path).resolve()
        if path.suffix.lower() not in SUFFIXES:
            # Imported from lines of JSON, which apply does not read.
            continue
        digest = hashes[path] if path in hashes else hashes.setdefault(path, _digest(path))
        if digest is not None:
            record[_name(document.key)] = {
                "file": _seen_from(folder, path),
                "hash": digest,
                "version": entity.version,
            }
    with suppress(OSError):
        _write(folder / _RECORD, record)


def suspects(folder: Path, versions: Mapping[DefinitionKey, int]) -> dict[str, set[DefinitionKey]]:
    """The files that may no longer say what is stored, and which of these definitions came from them."""
    record = _read(folder)
    files: dict[str, set[DefinitionKey]] = {}
    hashes: dict[str, str | None] = {}
    for key, version in versions.items():
        entry = record.get(_name(key))
        if entry is None:
            continue
        file = str(entry.get("file"))
        if file not in hashes:
            hashes[file] = _digest(folder / file)
        if (hashes[file], version) != (entry.get("hash"), entry.get("version")):
            files.setdefault(file, set()).add(key)
    return files


def differing(
    folder: Path,
    suspected: Mapping[str, set[DefinitionKey]],
    state: ProjectState,
    box: SecretBox | None,
) -> list[str]:
    """Those of the suspected files that do say something else, not merely in a comment."""
    return [
        text for file, keys in sorted(suspected.items()) for text in _differs(folder, file, keys, state, box)
    ]


def _differs(
    folder: Path, file: str, keys: set[DefinitionKey], state: ProjectState, box: SecretBox | None
) -> Iterator[str]:
    path = folder / file
    if not path.is_file():
        yield f"{file} (is gone)"
        return
    try:
        documents = {document.key: document for document in read_files([path])}
        # What the file no longer defines is no less different than what it defines otherwise.
        if any(key not in documents or change_of(state, documents[key], box) for key in keys):
            yield file
    except InvalidInput:
        yield f"{file} (cannot be read)"


def _name(key: DefinitionKey) -> str:
    return "/".join(key)


def _seen_from(folder: Path, path: Path) -> str:
    root = folder.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _digest(path: Path) -> str | None:
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, InvalidInput):
        return None


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        data: object = orjson.loads((folder / _RECORD).read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    entries = cast(dict[str, Any], data)
    return {key: cast(dict[str, Any], entry) for key, entry in entries.items() if isinstance(entry, dict)}


def _write(path: Path, record: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        fresh.write_bytes(orjson.dumps(record, option=orjson.OPT_SORT_KEYS))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
