"""Files of definitions, read with the line of every part, so that a mistake is named by file and line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from ..files import ConfigError

SUFFIXES = (".yaml", ".yml", ".json")
Place = tuple[str | int, ...]
_MOST_PARTS = 500_000


@dataclass(slots=True)
class Marked:
    """Plain data from a file, with the line each part stands on."""

    path: Path
    data: Any
    lines: dict[Place, int] = field(default_factory=dict[Place, int])

    def at(self, place: Place) -> str:
        """``file:line`` of a place, or of the nearest part around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.path}:{self.lines.get(place, 1)}"

    def part(self, place: Place) -> Marked:
        """One part of the data, its places counted from there."""
        data = self.data
        for step in place:
            data = data[step]
        inner = {key[len(place) :]: line for key, line in self.lines.items() if key[: len(place)] == place}
        return Marked(self.path, data, inner)


def definition_files(path: Path) -> list[Path]:
    """The files a path stands for: itself, or everything of ours below a folder."""
    if path.is_dir():
        found = [
            file for file in sorted(path.rglob("*")) if file.suffix.lower() in SUFFIXES and file.is_file()
        ]
        return [
            file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
    if not path.exists():
        raise ConfigError(f"{path}: no such file or folder")
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{path}: definitions are read from {', '.join(SUFFIXES)} files")
    return [path]


def read_marked(path: Path) -> Iterator[Marked]:
    """The documents of a file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    loader: Any = _Loader(text if path.suffix.lower() != ".json" else text.replace("\t", " "))
    try:
        while loader.check_node():
            node = cast(yaml.Node, loader.get_node())
            marked = Marked(path, None)
            marked.data = _build(loader, node, (), marked.lines, path)
            if marked.data is not None:
                yield marked
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{path}:{line}: cannot be read: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Plain YAML, but dates stay text: a script may say 2024-01-01."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _build(loader: Any, node: yaml.Node, place: Place, lines: dict[Place, int], path: Path) -> Any:
    lines[place] = node.start_mark.line + 1
    if len(lines) > _MOST_PARTS:
        # Aliases of aliases can make a small file stand for an endless one.
        raise ConfigError(f"{path}: has more than {_MOST_PARTS:,} parts")
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = str(loader.construct_object(key_node, deep=True))
            if key in found:
                raise ConfigError(f'{path}:{key_node.start_mark.line + 1}: the key "{key}" is given twice')
            found[key] = _build(loader, value_node, (*place, key), lines, path)
            lines[*place, key] = key_node.start_mark.line + 1
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, item, (*place, n), lines, path) for n, item in enumerate(node.value)]
    return loader.construct_object(node, deep=True)
