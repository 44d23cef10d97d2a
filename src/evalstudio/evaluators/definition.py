"""Definitions: functions turned into evaluators that remember how they were made.

``define_evaluator`` infers what is not given. A definition stays callable, so it is tested like any
function. An ``Entry`` is a definition in use: its config parsed, its gate settled.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args, overload

from pydantic import BaseModel

from ..configs import (
    ConfigShape,
    InvalidConfig,
    StrictConfig,
    config_of,
    first_paragraph,
    label_from,
    locals_of_caller,
    type_of,
)
from ..schemas import Schema
from .contract import Cost, EvaluatorContext, Gate, Kind, Reduce, Returned

Function = Callable[[EvaluatorContext[Any]], Returned | Awaitable[Returned]]
GateRule = Gate | Callable[[Any], Gate]
InlineRule = bool | Callable[[Any], bool]

_GATES = get_args(Gate)
_REDUCES = get_args(Reduce)


class EvaluatorConfig(StrictConfig):
    """The base of the built-in evaluators' configs."""


@dataclass(frozen=True, slots=True)
class EvaluatorDefinition:
    """A kind of evaluator: what it is called, what it needs, and the function that does it."""

    type: str
    function: Function
    label: str
    kind: Kind = "assertion"
    description: str = ""
    config: ConfigShape = field(default_factory=lambda: ConfigShape(None))
    gate: GateRule = "always"
    reduce: Reduce = "last"
    auto: bool = False
    timeout: float = 60.0
    cost: Cost = "fast"
    inline: InlineRule = False
    is_async: bool = False
    module: str = ""

    def __call__(self, ctx: EvaluatorContext[Any]) -> Any:
        return self.function(ctx)

    def use(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        gate: Gate | None = None,
        name: str | None = None,
        reduce: Reduce | None = None,
        **settings: Any,
    ) -> Entry:
        """This evaluator with a config, as an entry of a scenario."""
        parsed = self.config.parse(self.type, {**(config or {}), **settings})
        chosen = gate or (self.gate(parsed) if callable(self.gate) else self.gate)
        if chosen not in _GATES:
            raise InvalidConfig(self.type, [("gate", f"{chosen!r} is not one of {', '.join(_GATES)}")])
        if (reduce or self.reduce) not in _REDUCES:
            raise InvalidConfig(self.type, [("reduce", f"{reduce!r} is not one of {', '.join(_REDUCES)}")])
        inline = self.inline(parsed) if callable(self.inline) else self.inline
        return Entry(
            definition=self,
            config=parsed,
            gate=chosen,
            name=name,
            reduce=reduce or self.reduce,
            key=name or self.type,
            inline=inline and not self.is_async,
        )

    def gate_text(self) -> str:
        """The gate for a reader: the default one where it depends on the config."""
        if not callable(self.gate):
            return self.gate
        try:
            return self.gate(self.config.parse(self.type, {}))
        except InvalidConfig:
            return self.gate(None)

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "label": self.label,
            "description": self.description,
            "kind": self.kind,
            "gate": self.gate_text(),
            "configSchema": self.config.schema,
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """A definition in use on a scenario or a record."""

    definition: EvaluatorDefinition
    config: Any
    gate: Gate
    name: str | None
    reduce: Reduce
    key: str
    inline: bool = False

    @property
    def kind(self) -> Kind:
        return self.definition.kind


def with_keys(entries: list[Entry]) -> list[Entry]:
    """Give every entry its own key: its name, else its type, else ``type#2`` and so on."""
    names = [entry.name for entry in entries if entry.name is not None]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidConfig("evaluators", [("name", f"{twice!r} is used twice; names must be unique")])
    taken = set(names)
    keyed: list[Entry] = []
    for entry in entries:
        key, number = entry.name or entry.definition.type, 1
        while entry.name is None and key in taken:
            number += 1
            key = f"{entry.definition.type}#{number}"
        taken.add(key)
        keyed.append(replace(entry, key=key))
    return keyed


@overload
def define_evaluator(type: Function, /) -> EvaluatorDefinition: ...
@overload
def define_evaluator(
    type: str | None = None,
    *,
    label: str | None = None,
    kind: Kind = "assertion",
    description: str | None = None,
    config: type[BaseModel] | Schema | None = None,
    gate: GateRule = "always",
    reduce: Reduce = "last",
    auto: bool = False,
    timeout: float = 60.0,
    cost: Cost = "fast",
    inline: InlineRule = False,
) -> Callable[[Function], EvaluatorDefinition]: ...
def define_evaluator(
    type: str | Function | None = None,  # noqa: A002
    *,
    label: str | None = None,
    kind: Kind = "assertion",
    description: str | None = None,
    config: Any = None,
    gate: GateRule = "always",
    reduce: Reduce = "last",
    auto: bool = False,
    timeout: float = 60.0,
    cost: Cost = "fast",
    inline: InlineRule = False,
) -> EvaluatorDefinition | Callable[[Function], EvaluatorDefinition]:
    """Make an evaluator of a function. What is not given is read off the function itself."""
    names = locals_of_caller()

    def define(function: Function) -> EvaluatorDefinition:
        name = type_of(function, type if isinstance(type, str) else None)
        if kind not in get_args(Kind):
            raise ValueError(f"{name}: kind must be assertion or metric, not {kind!r}")
        shape = config if config is not None else config_of(function, EvaluatorContext, names)
        return EvaluatorDefinition(
            type=name,
            function=function,
            label=label or label_from(name),
            kind=kind,
            description=description or first_paragraph(function),
            config=ConfigShape(shape),
            gate=gate,
            reduce=reduce,
            auto=auto,
            timeout=timeout,
            cost=cost,
            inline=inline,
            is_async=inspect.iscoroutinefunction(function),
            module=function.__module__,
        )

    return define(type) if callable(type) else define
