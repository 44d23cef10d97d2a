"""The registry: every evaluator and connector type there is, and which plugin it comes from.

``create_registry`` fills one with the built-ins; ``loading.py`` adds what the config file lists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import cached_property, partial
from importlib import import_module
from inspect import isabstract, isclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from .. import connectors
from ..base.lazy_dataclass import dataclass
from ..connectors.contract import ConnectorDefinition
from ..evaluators import builtin
from ..evaluators.definition import EvaluatorDefinition, adapt_class, is_class_style

BUILT_IN = "built-in"

Definition = EvaluatorDefinition | ConnectorDefinition
D = TypeVar("D", EvaluatorDefinition, ConnectorDefinition)


class PluginError(Exception):
    """A plugin that cannot be used. The message is complete: nothing else needs to be shown."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a plugin contributes, stated explicitly. Evaluators may be definitions or class-style."""

    connectors: Sequence[ConnectorDefinition] = ()
    evaluators: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin as it was loaded: its name in the config, where it was found, its types."""

    name: str
    path: str | None
    evaluators: list[str] = field(default_factory=list[str])
    connectors: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class _Registered(Generic[D]):
    """A type with who brought it; the module of a built-in one is imported when it is first asked for."""

    def __init__(self, load: Callable[[], D], source: str, *, auto: bool = False) -> None:
        self._load = load
        self.source = source
        self.auto = auto
        self.is_loaded = False

    @cached_property
    def definition(self) -> D:
        self.is_loaded = True
        return self._load()

    @classmethod
    def of(cls, definition: D, source: str, *, auto: bool = False) -> _Registered[D]:
        registered = cls(lambda: definition, source, auto=auto)
        registered.is_loaded = True
        return registered


class PluginRegistry:
    """Evaluator and connector types by name. A type is registered once and never replaced."""

    def __init__(self) -> None:
        self._evaluators: dict[str, _Registered[EvaluatorDefinition]] = {}
        self._connectors: dict[str, _Registered[ConnectorDefinition]] = {}
        self.plugins: list[LoadedPlugin] = []

    def register(self, x: object, source: str | None = None) -> None:
        """Add a definition, a class-style evaluator or a ``Plugin``: all of it, or nothing and an error."""
        self._add(definitions_of(x, source), source)

    def add_plugin(self, definitions: Iterable[Definition], name: str, path: str | None) -> None:
        """Register what a loaded plugin contributes, and remember where it came from."""
        # Its name stays with each definition, for errors of its code.
        named = [replace(definition, plugin=name) for definition in definitions]
        self.plugins.append(LoadedPlugin(name, path, *self._add(named, name)))

    def extended(self, definitions: Iterable[Definition]) -> PluginRegistry:
        """Another registry with these before what is here: for definitions that live in a piece of code."""
        registry = PluginRegistry()
        registry._add(definitions, None)
        registry._evaluators = self._evaluators | registry._evaluators
        registry._connectors = self._connectors | registry._connectors
        registry.plugins = list(self.plugins)
        return registry

    def _add(self, definitions: Iterable[Definition], source: str | None) -> tuple[list[str], list[str]]:
        evaluators: dict[str, _Registered[EvaluatorDefinition]] = {}
        connectors: dict[str, _Registered[ConnectorDefinition]] = {}
        for definition in definitions:
            owner = source or definition.module or "code"
            if isinstance(definition, EvaluatorDefinition):
                _refuse_twice("Evaluator", definition.type, owner, self._evaluators, evaluators)
                evaluators[definition.type] = _Registered[EvaluatorDefinition].of(
                    definition, owner, auto=definition.auto
                )
            else:
                _refuse_twice("Connector", definition.type, owner, self._connectors, connectors)
                connectors[definition.type] = _Registered[ConnectorDefinition].of(definition, owner)
        self._evaluators |= evaluators
        self._connectors |= connectors
        return list(evaluators), list(connectors)

    def get_evaluator(self, type: str) -> EvaluatorDefinition | None:
        entry = self._evaluators.get(type)
        return entry.definition if entry else None

    def get_connector(self, type: str) -> ConnectorDefinition | None:
        entry = self._connectors.get(type)
        return entry.definition if entry else None

    def auto_evaluators(self) -> list[EvaluatorDefinition]:
        """The evaluators that run on every scenario without being listed."""
        return [entry.definition for entry in self._evaluators.values() if entry.auto]

    def loaded_connectors(self) -> list[ConnectorDefinition]:
        """All but the built-in ones that nobody has asked for."""
        return [entry.definition for entry in self._connectors.values() if entry.is_loaded]

    def list_evaluator_types(self) -> list[dict[str, Any]]:
        return [_described(entry) for entry in self._evaluators.values()]

    def list_connector_types(self) -> list[dict[str, Any]]:
        return [_described(entry) for entry in self._connectors.values()]

    def add_built_in(self) -> None:
        """Register the built-in types, none of which is imported yet."""
        for type_name, module in connectors.BUILTIN_TYPES.items():
            load = partial(_built_in, ConnectorDefinition, f"{connectors.__name__}.{module}", type_name)
            self._connectors[type_name] = _Registered(load, BUILT_IN)
        for type_name, module in builtin.BUILTIN_TYPES.items():
            load = partial(_built_in, EvaluatorDefinition, f"{builtin.__name__}.{module}", type_name)
            auto = type_name in builtin.AUTOMATIC
            self._evaluators[type_name] = _Registered(load, BUILT_IN, auto=auto)


def _described(entry: _Registered[Any]) -> dict[str, Any]:
    return entry.definition.to_json() | {"builtin": entry.source == BUILT_IN, "source": entry.source}


def _refuse_twice(
    what: str, name: str, owner: str, known: Mapping[str, _Registered[Any]], new: Mapping[str, Any]
) -> None:
    if name in new:
        raise PluginError(f'Plugin "{owner}" defines {what.lower()} type "{name}" twice.')
    if name in known:
        first = known[name].source
        holder = first if first == BUILT_IN else f'plugin "{first}"'
        raise PluginError(
            f'{what} type "{name}" is already registered ({holder}). Plugin "{owner}" cannot override it.'
        )


def definitions_of(x: object, source: str | None) -> list[Definition]:
    """What is registered, as definitions."""
    items = (*x.connectors, *x.evaluators) if isinstance(x, Plugin) else (x,)
    return [_definition_of(item, source) for item in items]


def _definition_of(x: object, source: str | None) -> Definition:
    if isinstance(x, EvaluatorDefinition | ConnectorDefinition):
        return x
    if is_class_style(x):
        return adapt_class(x)
    where = f'Plugin "{source}": ' if source else ""
    name = x.__name__ if isinstance(x, type) else f"a {type(x).__name__}"
    raise PluginError(
        f"{where}{name} is neither an evaluator nor a connector. Use define_evaluator() or "
        "define_connector(), or a class with a type and an evaluate method."
    )


def made_in(module: ModuleType) -> list[Definition]:
    """Every definition made in a module or its loaded submodules, in order; not what they import."""
    inside = module.__name__ + "."
    names = [module.__name__, *(name for name in list(sys.modules) if name.startswith(inside))]
    definitions: dict[int, Definition] = {}
    for name in names:
        for key, value in list(vars(sys.modules[name]).items()) if name in sys.modules else ():
            home = getattr(value, "module" if isinstance(value, Definition) else "__module__", None)
            if not isinstance(home, str) or not (home + ".").startswith(inside):
                continue
            if isinstance(value, Definition):
                definitions[id(value)] = value
            elif (
                isclass(value) and not key.startswith("_") and not isabstract(value) and is_class_style(value)
            ):
                definitions[id(value)] = adapt_class(value)
    return list(definitions.values())


def _built_in(kind: type[D], module: str, type_name: str) -> D:
    definitions = made_in(import_module(module))
    return next(one for one in definitions if isinstance(one, kind) and one.type == type_name)


def create_registry() -> PluginRegistry:
    """A registry with the built-in types."""
    registry = PluginRegistry()
    registry.add_built_in()
    return registry
