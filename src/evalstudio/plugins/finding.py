"""Finding what a config entry means: a path, an installed distribution, or a module.

Nothing of the plugin itself runs here, except the parent packages of a dotted module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, entry_points
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from .importing import import_path
from .registry import PluginError

GROUP = "evalstudio.plugins"


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin that can be loaded: its name for the user, its identity, and what to import."""

    name: str
    identity: tuple[str, str]
    imports: tuple[Callable[[], object], ...]


def is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or "/" in name or "\\" in name or name.endswith(".py")


def path_of(name: str, base: Path) -> Path:
    return (base / Path(name).expanduser()).resolve()


def find(name: str, base: Path) -> Found:
    """The plugin an entry of the config file in ``base`` names."""
    if is_path(name):
        return _find_path(name, path_of(name, base))
    distribution = _find_distribution(name)
    if distribution is not None and (points := _announced_by(distribution)):
        return _from_points(name, distribution.name, points)
    if _is_module(name):
        return Found(name, ("module", name), (partial(import_module, name),))
    if distribution is None:
        raise PluginError(
            f'Plugin "{name}" not found. Looked in: modules importable from {base}, packages installed '
            f'in {sys.prefix}. Install it with "pip install {name}".'
        )
    modules = [module for module in _top_level(distribution) if _is_module(module)]
    imports = tuple(partial(import_module, module) for module in modules)
    return Found(name, ("distribution", _normal(distribution.name)), imports)


def announced() -> Iterator[Found]:
    """The plugins that installed packages announce by themselves, one per package."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (_owner(point), point.name))
    for owner, of_owner in groupby(points, _owner):
        yield _from_points(owner, owner, of_owner)


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.name


def _from_points(name: str, distribution: str, points: Iterable[EntryPoint]) -> Found:
    return Found(name, ("distribution", _normal(distribution)), tuple(point.load for point in points))


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _find_path(name: str, path: Path) -> Found:
    if not path.exists():
        raise PluginError(
            f'Plugin "{name}" not found. Looked in: {path}. Paths are relative to the config file.'
        )
    if path.is_dir() and not (path / "__init__.py").is_file():
        raise PluginError(f'Plugin "{name}" is a folder without an __init__.py: {path}. Name a file in it.')
    if path.is_file() and path.suffix != ".py":
        raise PluginError(f'Plugin "{name}" is not a Python file: {path}.')
    return Found(name, ("path", str(path)), (partial(import_path, path),))


def _find_distribution(name: str) -> Distribution | None:
    try:
        return Distribution.from_name(name)
    except (PackageNotFoundError, ValueError):
        return None


def _announced_by(distribution: Distribution) -> list[EntryPoint]:
    return [point for point in distribution.entry_points if point.group == GROUP]


def _is_module(name: str) -> bool:
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            return False
        raise
    except ValueError:
        return False


def _top_level(distribution: Distribution) -> list[str]:
    """The modules a distribution installs; an editable one lists none, so its own name is tried too."""
    listed = (distribution.read_text("top_level.txt") or "").split()
    for file in distribution.files or ():
        if file.suffix == ".py" and not file.parts[0].startswith(("..", "__")):
            listed.append(file.parts[0].removesuffix(".py"))
    return list(dict.fromkeys([*listed, distribution.name.replace("-", "_")]))
