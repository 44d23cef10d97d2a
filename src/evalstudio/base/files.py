"""Files a person writes, JSON or YAML, read into plain data with the file and line in every error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

_YAML = (".yaml", ".yml")


class ConfigError(ValueError):
    """A file that cannot be used as it is; the message says which, where and why."""


def read_mapping(path: Path) -> dict[str, Any]:
    """The file's top-level object."""
    text = _read_text(path)
    try:
        value = _from_yaml(path, text) if path.suffix.lower() in _YAML else _from_json(path, text)
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
    if not isinstance(value, dict):
        found = "nothing" if value is None else f"a {type(value).__name__}"
        raise ConfigError(f"{path}: expected an object with named settings, found {found}")
    return cast(dict[str, Any], value)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None


def _from_json(path: Path, text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        message = "the file is empty" if not text.strip() else error.msg
        raise ConfigError(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {message}") from None
    except _Repeated as error:
        raise ConfigError(f"{path}: {error}") from None


class _Repeated(Exception):
    def __init__(self, key: object) -> None:
        super().__init__(f'the key "{key}" is given twice in one object')


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Repeated(key)
        found[key] = value
    return found


def _from_yaml(path: Path, text: str) -> object:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses what plain YAML silently drops: the first of two equal keys."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                name = key.value if isinstance(key, yaml.ScalarNode) else None
                if name is not None and name != "<<" and name in seen:
                    raise yaml.MarkedYAMLError(
                        problem=str(_Repeated(name)), problem_mark=cast(Any, key.start_mark)
                    )
                seen.add(name or "")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{where}: not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
