"""Plans that build on others: what a plan says is laid over what the plans it extends say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from ..files import ConfigError, read_mapping
from ..plugins.finding import is_path, path_of

EVALUATORS = ("evaluators", "evaluatorConfigs")
_ADD_UP = frozenset({"criteria", "plugins", *EVALUATORS})


def read_extended(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """What a plan's file says, on top of what the plans it extends say."""
    if path in seen:
        raise ConfigError(f"{path}: extends itself, through {' → '.join(p.name for p in (*seen, path))}")
    if seen and not path.exists():
        raise ConfigError(f"{seen[-1]}: extends {path}, which does not exist")
    raw = read_mapping(path)
    bases: Any = raw.get("extends") or []
    merged: dict[str, Any] = {}
    for base in [bases] if isinstance(bases, str) else _listed(bases, path):
        merged = _merge(merged, read_extended((path.parent / base).resolve(), (*seen, path)))
    own = {key: item for key, item in raw.items() if key not in ("extends", "$schema")}
    return _merge(merged, _absolute_plugins(own, path))


def _listed(bases: Any, path: Path) -> list[str]:
    names: list[Any] = cast(list[Any], bases) if isinstance(bases, list) else [None]
    if not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{path}: extends: expected a path or a list of paths")
    return names


def _absolute_plugins(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """Plugins stay relative to the file that names them."""
    if isinstance(raw.get("plugins"), list):
        raw["plugins"] = [
            str(path_of(item, path.parent)) if isinstance(item, str) and is_path(item) else item
            for item in raw["plugins"]
        ]
    return raw


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Named things add up by name, settings inside settings one by one; anything else is replaced."""
    spelled = next((name for name in EVALUATORS if name in over), None)
    merged = {spelled if spelled and key in EVALUATORS else key: item for key, item in base.items()}
    for key, value in over.items():
        known = merged.get(key)
        if key in _ADD_UP and isinstance(known, list) and isinstance(value, list):
            merged[key] = _added(cast(list[Any], known), cast(list[Any], value))
        else:
            merged[key] = _replaced(known, value)
    return merged


def _replaced(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    known, given = cast(dict[str, Any], base), cast(dict[str, Any], over)
    return known | {key: _replaced(known.get(key), value) for key, value in given.items()}


def _added(base: list[Any], over: list[Any]) -> list[Any]:
    """Things of the same name are replaced where they stand, the others come after."""
    kept, names, new = list(base), [_name(item) for item in base], list[Any]()
    for item in over:
        name = _name(item)
        if name is not None and name in names:
            place = names.index(name)
            # Each is replaced once: a name given twice must still be found out.
            kept[place], names[place] = item, None
        else:
            new.append(item)
    return kept + new


def _name(item: Any) -> str | None:
    """What a thing is known by in its list: a plugin by itself, the others by their names."""
    name: object = cast(dict[str, Any], item).get("name") if isinstance(item, dict) else item
    return name if isinstance(name, str) else None
