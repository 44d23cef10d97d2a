"""Loading plugins: what the config file lists, and what installed packages declare as entry points.

An entry is a path, an installed distribution or a module. Files are imported under names of their own.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distributions
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import groupby
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, cast

from ..base.files import read_mapping
from ..base.installed import changed_at, may_declare
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem, ProblemList
from ..base.trust import check_trusted
from .registry import (
    Definition,
    Plugin,
    PluginError,
    PluginRegistry,
    create_registry,
    definitions_of,
    made_in,
)

Problems = dict[str, str]


def load_plugins(config_path: Path | str, *, problems: Problems | None = None) -> PluginRegistry:
    """A registry with the built-ins, what the config file lists and what installed packages declare.

    Raises ``InvalidInput`` for a config file that cannot be read and ``PluginError`` for a plugin; with
    ``problems`` the others are loaded all the same, and what is wrong is put there by the plugin's name.
    """
    config = Path(config_path).absolute()
    check_trusted(config)
    registry = create_registry()
    loaded = load_named(registry, plugin_names(config), config.parent, problems)
    for source in declared_plugins():
        if source.identity not in loaded:
            with _problem_noted(source.name, problems):
                _load(registry, source, automatic=True)
    return registry


def load_named(
    registry: PluginRegistry, names: Iterable[str], base: Path, problems: Problems | None = None
) -> set[tuple[str, str]]:
    """Add the named plugins to a registry, paths relative to a folder; returns their identities."""
    names = list(names)
    # A plugin given by path can import what is beside it.
    make_importable([base, *(path_of(name, base).parent for name in names if is_path(name))])
    loaded: set[tuple[str, str]] = set()
    for name in names:
        with _problem_noted(name, problems):
            _check_trusted(name, base)
            with _import_explained(name):
                source = find_plugin(name, base)
            if source.identity not in loaded:
                loaded.add(source.identity)
                _load(registry, source)
    return loaded


def _check_trusted(name: str, base: Path) -> None:
    """Refuse the code of others: files that are named, and modules that lie beside the config file."""
    top = base / name.partition(".")[0]
    places = [path_of(name, base)] if is_path(name) else [top, top.with_suffix(".py")]
    try:
        for place in places:
            if place.exists():
                check_trusted(place)
    except InvalidInput as error:
        raise PluginError(f'Plugin "{name}" is not loaded: {error}') from None


@contextmanager
def _problem_noted(name: str, problems: Problems | None) -> Generator[None]:
    """Where problems are gathered, one plugin's does not keep the others from being loaded."""
    try:
        yield
    except PluginError as error:
        if problems is None:
            raise
        problems[name] = str(error)


def plugin_names(config: Path) -> list[str]:
    """The entries of ``plugins`` and of its synonym ``evaluators``."""
    located = read_mapping(config)
    problems = ProblemList()
    names: list[str] = []
    for key in ("plugins", "evaluators"):
        entries: object = located.data.get(key, [])
        if not isinstance(entries, list):
            problems.append(Problem("expected a list of paths, modules or distributions", (key,)))
            continue
        for number, name in enumerate(cast(list[object], entries)):
            if isinstance(name, str) and name.strip():
                names.append(name.strip())
            else:
                problems.append(Problem("expected a path, module or distribution", (key, number)))
    ProblemList(map(located.placed, problems)).check()
    return names


@contextmanager
def _import_explained(name: str) -> Generator[None]:
    """Whatever a plugin's code raises while it is imported, as an error that names the plugin."""
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f'Plugin "{name}" could not be imported:\n{last_lines(error)}') from None


def _load(registry: PluginRegistry, source: PluginSource, *, automatic: bool = False) -> None:
    with _import_explained(source.name):
        loaded = [load() for load in source.imports]
    definitions = [d for part in loaded for d in _contributed(part, source.name)]
    if not definitions:
        raise PluginError(
            f'Plugin "{source.name}" has no evaluators or connectors. '
            "Use define_evaluator() or define_connector() at module level."
        )
    if automatic:
        # The config may already list a module of this package.
        definitions = [d for d in definitions if not _is_known(registry, d)]
    if definitions:
        registry.add_plugin(definitions, source.name, _file_of(loaded))


def _is_known(registry: PluginRegistry, definition: Definition) -> bool:
    """Whether this very definition is there already, not merely one of its type."""
    known = (registry.get_evaluator(definition.type), registry.get_connector(definition.type))
    return any(one is not None and one.function is definition.function for one in known)


def _contributed(loaded: object, name: str) -> list[Definition]:
    """What an imported module, or the object an entry point names, contributes."""
    if not isinstance(loaded, ModuleType):
        return definitions_of(loaded, name)
    explicit = getattr(loaded, "plugin", None)
    if isinstance(explicit, Mapping):
        explicit = _as_plugin(cast(Mapping[str, Any], explicit), name)
    return definitions_of(explicit, name) if isinstance(explicit, Plugin) else made_in(loaded)


def _as_plugin(fields: Mapping[str, Any], name: str) -> Plugin:
    """A plugin stated as a mapping with lists of connectors and evaluators."""
    for key, item in fields.items():
        if key not in ("connectors", "evaluators") or not isinstance(item, list | tuple):
            raise PluginError(
                f'Plugin "{name}": "{key}" in plugin is not a list of connectors or evaluators.'
            )
    return Plugin(**fields)


def _file_of(loaded: Iterable[object]) -> str | None:
    for part in loaded:
        module = part if isinstance(part, ModuleType) else sys.modules.get(getattr(part, "module", ""))
        if file := getattr(module, "__file__", None):
            return str(file)
    return None


GROUP = "evalstudio.plugins"


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Where a plugin comes from: its name for the user, its identity, and what to import."""

    name: str
    identity: tuple[str, str]
    imports: tuple[Callable[[], object], ...]


def is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or "/" in name or "\\" in name or name.endswith(".py")


def path_of(name: str, base: Path) -> Path:
    return (base / Path(name).expanduser()).resolve()


def find_plugin(name: str, base: Path) -> PluginSource:
    """The plugin an entry of the config file in ``base`` names."""
    if is_path(name):
        return _find_path(name, path_of(name, base))
    distribution = _find_distribution(name)
    if distribution is not None and (points := list(distribution.entry_points.select(group=GROUP))):
        return _from_points(name, distribution.name, points)
    if _is_module(name):
        return PluginSource(name, ("module", name), (partial(import_module, name),))
    if distribution is None:
        raise PluginError(
            f'Plugin "{name}" not found. Looked in: modules importable from {base}, packages installed '
            f'in {sys.prefix}. Install it with "pip install {name}".'
        )
    modules = [module for module in _top_level(distribution) if _is_module(module)]
    imports = tuple(partial(import_module, module) for module in modules)
    return PluginSource(name, ("distribution", _normal(distribution.name)), imports)


def declared_plugins() -> Iterator[PluginSource]:
    """The plugins that installed packages declare as entry points, one per package."""
    points = sorted(_declared_points(), key=lambda point: (_owner(point), point.name))
    for owner, of_owner in groupby(points, _owner):
        yield _from_points(owner, owner, of_owner)


def _declared_points() -> Iterator[EntryPoint]:
    """As ``importlib.metadata.entry_points`` has them: of two packages of one name the first counts."""
    names = {name for folder in sys.path for name in _declaring(folder, changed_at(folder))}
    for name in names:
        yield from Distribution.from_name(name).entry_points.select(group=GROUP)


@lru_cache(maxsize=1024)
def _declaring(folder: str, _changed_at: int) -> list[str]:
    """The packages in a folder that declare plugins. Reading them all takes long; installing one changes
    the folder's time."""
    packages = distributions(path=[folder]) if may_declare(folder, GROUP) else ()
    return [one.name for one in packages if one.entry_points.select(group=GROUP)]


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.name


def _from_points(name: str, distribution: str, points: Iterable[EntryPoint]) -> PluginSource:
    return PluginSource(name, ("distribution", _normal(distribution)), tuple(point.load for point in points))


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _find_path(name: str, path: Path) -> PluginSource:
    if not path.exists():
        raise PluginError(
            f'Plugin "{name}" not found. Looked in: {path}. Paths are relative to the config file.'
        )
    if path.is_dir() and not (path / "__init__.py").is_file():
        raise PluginError(f'Plugin "{name}" is a folder without an __init__.py: {path}. Name a file in it.')
    if not path.is_dir() and (path.suffix != ".py" or not path.is_file()):
        raise PluginError(f'Plugin "{name}" is not a Python file: {path}.')
    return PluginSource(name, ("path", str(path)), (partial(import_path, path),))


def _find_distribution(name: str) -> Distribution | None:
    try:
        return Distribution.from_name(name)
    except (PackageNotFoundError, ValueError):
        return None


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


_PACKAGE = str(Path(__file__).parents[1])
_MOST_LINES = 12
_LONGEST_LINE = 300

# The import path is one per process, and so is the record of what was added to it, newest first.
_added: list[str] = []


class _FreshLoader(SourceFileLoader):
    """Always compiles the source: a file edited within the same second must not run as it was before."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def import_path(path: Path) -> ModuleType:
    """Run a Python file, or a folder with an ``__init__.py``, as a module of its own."""
    folder = [str(path)] if path.is_dir() else None
    file = path / "__init__.py" if folder else path
    name = _module_name(path)
    loader = _FreshLoader(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader, submodule_search_locations=folder)
    assert spec is not None
    _forget(name)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        _forget(name)
        raise
    return module


def _module_name(path: Path) -> str:
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:10]
    return f"evalstudio_plugin_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{digest}"


def _forget(name: str) -> None:
    for known in [known for known in sys.modules if known == name or known.startswith(name + ".")]:
        del sys.modules[known]


def make_importable(folders: Iterable[Path]) -> None:
    """Put folders on the import path, before those of projects loaded earlier in this process."""
    new = list(dict.fromkeys(str(folder) for folder in folders))
    earlier = [folder for folder in _added if folder not in new]
    foreign = [folder for folder in sys.path if folder not in _added]
    _forget_shadowed(new, set(earlier))
    _added[:] = [folder for folder in new if folder not in foreign] + earlier
    sys.path[:] = foreign + _added
    importlib.invalidate_caches()


def _forget_shadowed(new: list[str], earlier: set[str]) -> None:
    """Another project's module must not be imported for one of the same name in the new folders."""
    if not earlier:
        return
    for name, module in list(sys.modules.items()):
        if "." not in name and _folder_of(module) in earlier and any(_holds(folder, name) for folder in new):
            _forget(name)


def _folder_of(module: ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    if not file:
        return None
    # Asked of every module that is loaded, for every project that is opened: a Path takes ten times as long.
    folder, name = os.path.split(file)
    return os.path.dirname(folder) if name == "__init__.py" else folder


def _holds(folder: str, name: str) -> bool:
    place = Path(folder) / name
    return place.with_suffix(".py").is_file() or place.is_dir()


def last_lines(error: BaseException) -> str:
    """The end of a traceback, without the frames that led to the plugin."""
    trace = _from_plugin(error.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, trace, chain=False))
    lines = [line for line in text.splitlines() if line != "Traceback (most recent call last):"]
    return "\n".join("  " + line[:_LONGEST_LINE] for line in lines[-_MOST_LINES:])


def _from_plugin(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not (file.startswith(("<frozen importlib", _PACKAGE)) or file == importlib.__file__):
            return trace
        trace = trace.tb_next
    return None
