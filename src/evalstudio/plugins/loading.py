"""Loading plugins: what the config file lists, and what installed packages announce.

Every way it can go wrong ends in one ``PluginError`` that names the plugin as the user spelled it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

from ..files import ConfigError, read_mapping
from .finding import Found, announced, find, is_path, path_of
from .importing import last_lines, make_importable
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
    """A registry with the built-ins, what the config file lists and what installed packages announce.

    Raises ``ConfigError`` for a config file that cannot be read and ``PluginError`` for a plugin; with
    ``problems`` the others are loaded all the same, and what is wrong is put there by the plugin's name.
    """
    config = Path(config_path).absolute()
    registry = create_registry()
    seen = load_named(registry, plugin_names(config), config.parent, problems)
    for found in announced():
        if found.identity not in seen:
            with _noted(found.name, problems):
                _load(registry, found, automatic=True)
    return registry


def load_named(
    registry: PluginRegistry, names: Iterable[str], base: Path, problems: Problems | None = None
) -> set[tuple[str, str]]:
    """Add the named plugins to a registry, paths relative to a folder; says which they were."""
    wanted = list(names)
    make_importable([base, *_folders(wanted, base)])
    seen: set[tuple[str, str]] = set()
    for name in wanted:
        with _noted(name, problems):
            found = _guarded_find(name, base)
            if found.identity not in seen:
                seen.add(found.identity)
                _load(registry, found)
    return seen


@contextmanager
def _noted(name: str, problems: Problems | None) -> Generator[None]:
    """Where problems are gathered, one plugin's does not keep the others from being loaded."""
    try:
        yield
    except PluginError as error:
        if problems is None:
            raise
        problems[name] = str(error)


def plugin_names(config: Path) -> list[str]:
    """The entries of ``plugins`` and of its synonym ``evaluators``."""
    raw = read_mapping(config)
    names: list[str] = []
    for key in ("plugins", "evaluators"):
        given: object = raw.get(key, [])
        if not isinstance(given, list):
            raise ConfigError(f"{config}: {key}: expected a list of paths, modules or distributions")
        for place, name in enumerate(cast(list[object], given)):
            if not isinstance(name, str) or not name.strip():
                raise ConfigError(f"{config}: {key}[{place}]: expected a path, module or distribution")
            names.append(name.strip())
    return names


def _folders(names: Iterable[str], base: Path) -> list[Path]:
    """The folders of plugins given by path, so that they can import what lies beside them."""
    return [path_of(name, base).parent for name in names if is_path(name)]


def _guarded_find(name: str, base: Path) -> Found:
    try:
        return find(name, base)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise _import_failure(name, error) from None


def _load(registry: PluginRegistry, found: Found, *, automatic: bool = False) -> None:
    loaded = [_imported(found.name, load) for load in found.imports]
    definitions = [d for part in loaded for d in _contributed(part, found.name)]
    if not definitions:
        raise PluginError(
            f'Plugin "{found.name}" has no evaluators or connectors. '
            "Use define_evaluator() or define_connector() at module level."
        )
    if automatic:
        # The config may already list a module of this package.
        definitions = [d for d in definitions if not _is_known(registry, d)]
    if definitions:
        registry.add_plugin(definitions, found.name, _file_of(loaded))


def _is_known(registry: PluginRegistry, definition: Definition) -> bool:
    """Whether this very definition is there already, not merely one of its type."""
    name = definition.type
    return registry.get_evaluator(name) is definition or registry.get_connector(name) is definition


def _imported(name: str, load: Callable[[], object]) -> object:
    try:
        return load()
    except (Exception, SystemExit) as error:
        raise _import_failure(name, error) from None


def _import_failure(name: str, error: BaseException) -> PluginError:
    return PluginError(f'Plugin "{name}" could not be imported:\n{last_lines(error)}')


def _contributed(loaded: object, name: str) -> list[Definition]:
    """What an imported module, or the object an entry point names, brings."""
    if not isinstance(loaded, ModuleType):
        return definitions_of(loaded, name)
    explicit = getattr(loaded, "plugin", None)
    return definitions_of(explicit, name) if isinstance(explicit, Plugin) else made_in(loaded)


def _file_of(loaded: Iterable[object]) -> str | None:
    for part in loaded:
        module = part if isinstance(part, ModuleType) else sys.modules.get(getattr(part, "module", ""))
        if file := getattr(module, "__file__", None):
            return str(file)
    return None
