"""Documents as files: YAML or JSON that reads back as exactly the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

import yaml

from .documents import PLURALS, Document, Kind
from .marked_yaml import PLAIN

Format = Literal["yaml", "json"]
_LONGEST_NAME = 60
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)\Z")
_AWKWARD = re.compile("[\r\x85\u2028\u2029\ufeff]|[ \t]\n|\\A[ \n]")


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this or any other reader of YAML would take for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: Any, value: str) -> yaml.Node:
    style = '"' if _AWKWARD.search(value) else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


# PyYAML says nothing of the types of its own registries.
_registry: Any = _Dumper
_registry.add_representer(str, _text)
for _kind, _pattern in PLAIN.items():
    _registry.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _pattern, None)


def to_yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)


def to_json(data: Any) -> str:
    import orjson

    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def to_text(data: Any, form: Format) -> str:
    return to_json(data) if form == "json" else to_yaml(data)


def in_one(documents: Iterable[Document]) -> dict[str, Any]:
    """All definitions in one file, in lists by kind."""
    groups: dict[str, list[Any]] = {plural: [] for plural in PLURALS}
    for document in documents:
        groups[f"{document.kind}s"].append(document.body)
    return {plural: bodies for plural, bodies in groups.items() if bodies}


def in_files(documents: Sequence[Document], form: Format) -> Mapping[PurePosixPath, str]:
    """One file for each definition, in folders by kind, under names every file system takes."""
    files: dict[PurePosixPath, str] = {}
    for document in documents:
        path = _free_path(document.kind, document.name, form, files)
        files[path] = to_text({"kind": document.kind, **document.body}, form)
    return files


def _free_path(kind: Kind, name: str, form: Format, taken: Mapping[PurePosixPath, str]) -> PurePosixPath:
    base, number = file_name(name), 1
    while (path := PurePosixPath(f"{kind}s", f"{base}{'' if number == 1 else f'-{number}'}.{form}")) in taken:
        number += 1
    return path


def file_name(name: str) -> str:
    """A name as part of a path: letters and digits of any script, lower case, not too long."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", name).lower().replace("_", " "))
    slug = "-".join(words)[:_LONGEST_NAME].strip("-")
    while len(slug.encode()) > 3 * _LONGEST_NAME:
        slug = slug[:-1]
    return f"{slug or 'unnamed'}-" if _RESERVED.match(slug) else slug or "unnamed"
