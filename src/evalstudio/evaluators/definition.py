"""Definitions: functions and classes turned into evaluators that remember how they were made.

``define_evaluator`` infers what is not given. A definition stays callable, so it is tested like any
function. An ``Entry`` is a definition in use: its config parsed, its gate settled.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast, get_args, overload

from pydantic import BaseModel

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem
from ..base.schemas import Schema
from ..configs import (
    ConfigShape,
    StrictConfig,
    check_options,
    config_of,
    first_paragraph,
    label_from,
    locals_of_caller,
    module_of_caller,
    read_mapping_form,
    type_of,
)
from .contract import (
    Cost,
    EvaluationResult,
    EvaluatorContext,
    Gate,
    Kind,
    Reduce,
    RepeatedResult,
    Returned,
    TurnFacts,
)
from .criteria import criterion_references
from .records import CriterionResult, record_of

Function = Callable[[EvaluatorContext[Any]], Returned | Awaitable[Returned]]
GateRule = Gate | Callable[[Any], Gate]
InlineRule = bool | Callable[[Any], bool]
UnitRule = str | Callable[[Any], str] | None
# About how many steps a call takes, as many as a text has characters where it is read once.
WorkRule = Callable[[Any, TurnFacts], float] | None

_OURS = "evalstudio."
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
    unit: UnitRule = None
    work: WorkRule = None
    is_async: bool = False
    module: str = ""
    plugin: str = ""

    def __call__(self, ctx: EvaluatorContext[Any]) -> Any:
        """What the function returns, which the caller may change."""
        returned: Any = self.function(ctx)
        if isinstance(returned, list):
            return [_own(result) for result in cast(list[object], returned)]
        return _own(returned)

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
        written = {**(config or {}), **settings}
        try:
            parsed = self.config.parse(self.type, written)
        except InvalidInput as error:
            raise error.within("config", subject=self.type) from None
        if gate is not None and self.kind == "metric":
            message = "a metric has no gate: it measures and cannot fail"
            raise InvalidInput(Problem(message, ("gate",), "leave it out", subject=self.type))
        chosen = gate or (self.gate(parsed) if callable(self.gate) else self.gate)
        if chosen not in _GATES:
            raise self._wrong("gate", chosen, _GATES)
        if (reduce or self.reduce) not in _REDUCES:
            raise self._wrong("reduce", reduce, _REDUCES)
        inline = self.inline(parsed) if callable(self.inline) else self.inline
        return Entry(
            self,
            parsed,
            chosen,
            name,
            reduce or self.reduce,
            key=name or self.type,
            inline=inline and not self.is_async,
            builtin=self.module.startswith(_OURS),
            unit=self.unit(parsed) if callable(self.unit) else self.unit,
            threshold=_threshold(parsed),
            written=written,
        )

    def _wrong(self, key: str, choice: object, choices: Sequence[str]) -> InvalidInput:
        message = f"{choice!r} is not one of {', '.join(choices)}"
        return InvalidInput(Problem(message, (key,), subject=self.type))

    def gate_text(self) -> str:
        """The gate for a reader: the default one where it depends on the config."""
        if not callable(self.gate):
            return self.gate
        try:
            return self.gate(self.config.parse(self.type, {}))
        except InvalidInput:
            return self.gate(None)

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "label": self.label,
            "description": self.description,
            "kind": self.kind,
            "gate": self.gate_text(),
            "gateByConfig": callable(self.gate),
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
    builtin: bool = False
    unit: str | None = None
    threshold: float | None = None
    written: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    """The config as it was given, before it was parsed."""

    @property
    def kind(self) -> Kind:
        return self.definition.kind

    @property
    def criterion_names(self) -> set[str]:
        """The criteria that the config says are scored, by the entry itself or by its rules."""
        return {name for _, name in criterion_references(self.config)}


def _own(returned: object) -> object:
    return returned.own() if isinstance(returned, RepeatedResult) else returned


def _threshold(config: Any) -> float | None:
    """The score from which on an entry holds, where its config has one."""
    threshold: Any = (
        cast(Mapping[str, Any], config).get("threshold")
        if isinstance(config, Mapping)
        else getattr(config, "threshold", None)
    )
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    return float(threshold) if is_number else None


def with_keys(entries: list[Entry]) -> list[Entry]:
    """Give every entry its own key: its name, else its type, else ``type#2`` and so on."""
    names = [entry.name for entry in entries if entry.name is not None]
    if twice := next((name for name in names if names.count(name) > 1), None):
        message = f"the name {twice!r} is used twice"
        raise InvalidInput(Problem(message, ("evaluators",), "names must be unique"))
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
def define_evaluator(type: Function | type | Mapping[str, Any], /) -> EvaluatorDefinition: ...
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
    unit: UnitRule = None,
    work: WorkRule = None,
) -> Callable[[Function], EvaluatorDefinition]: ...
def define_evaluator(
    type: str | Function | type | Mapping[str, Any] | None = None,
    **options: Any,
) -> EvaluatorDefinition | Callable[[Function], EvaluatorDefinition]:
    """Make an evaluator of a function. What is not given is read off the function itself.

    Also taken: a mapping with ``evaluate`` and the options, and a class with a ``type`` and ``evaluate``.
    """
    names, subject = locals_of_caller(), cast(Any, type)
    check_options("define_evaluator", options, _OPTIONS)
    if isinstance(subject, Mapping):
        function, fields = read_mapping_form("define_evaluator", type, "evaluate", ("type", *_OPTIONS))
        return _define(function, fields.pop("type", None), fields, names, module_of_caller())
    if inspect.isclass(subject):
        return adapt_class(_class_style(subject))
    if callable(subject):
        return _define(cast(Function, subject), None, options, names)
    return lambda function: _define(function, subject, options, names)


_OPTIONS = (
    *("label", "kind", "description", "config"),
    *("gate", "reduce", "auto", "timeout", "cost", "inline", "unit", "work"),
)


def _define(
    function: Function,
    type_name: str | None,
    options: dict[str, Any],
    names: Mapping[str, Any],
    module: str = "",
) -> EvaluatorDefinition:
    name = type_of(function, type_name)
    if (kind := options.get("kind", "assertion")) not in get_args(Kind):
        raise ValueError(f"{name}: kind must be assertion or metric, not {kind!r}")
    config = options.get("config")
    settled: dict[str, Any] = {
        "label": options.get("label") or label_from(name),
        "description": options.get("description") or first_paragraph(function),
        "config": ConfigShape(config_of(function, EvaluatorContext, names) if config is None else config),
        "is_async": inspect.iscoroutinefunction(function),
        "module": module or function.__module__,
    }
    return EvaluatorDefinition(name, function, **{**options, **settled})


def _class_style(candidate: type) -> type:
    if not is_class_style(candidate):
        message = "needs a type (text) and an evaluate method, or define a function instead"
        raise TypeError(f"define_evaluator: the class {candidate.__name__} {message}")
    return candidate


def is_class_style(candidate: object) -> bool:
    """Whether this is a class or an object with a ``type`` and an ``evaluate`` method."""
    return isinstance(getattr(candidate, "type", None), str) and callable(
        getattr(candidate, "evaluate", None)
    )


class _ClassConfig(ConfigShape):
    """Reads a config by making the evaluator with it."""

    def __init__(self, maker: Any) -> None:
        super().__init__({"type": "object"})
        self._maker = maker

    def parse(self, subject: str, raw: Mapping[str, Any] | None) -> Any:
        config = dict(raw or {})
        if not isinstance(self._maker, type):
            if config:
                message = "takes no config: it is registered as an object"
                raise InvalidInput(*(Problem(message, (key,), subject=subject) for key in config))
            return self._maker
        try:
            return self._maker(**config)
        except (TypeError, ValueError) as error:
            raise InvalidInput(Problem(str(error), subject=subject)) from None


def adapt_class(candidate: Any) -> EvaluatorDefinition:
    """A definition around a class-style evaluator, class or object."""
    name: str = candidate.type
    owner: Any = cast(Any, candidate if isinstance(candidate, type) else type(candidate))
    return EvaluatorDefinition(
        type=name,
        function=_evaluate,
        label=getattr(owner, "label", None) or label_from(name),
        kind=getattr(owner, "kind", "assertion"),
        description=inspect.getdoc(owner) or "",
        config=_ClassConfig(candidate),
        gate="finally",
        is_async=True,
        module=owner.__module__,
    )


async def _evaluate(ctx: EvaluatorContext[Any]) -> Returned:
    answer: object = ctx.config.evaluate(record_of(ctx.facts), list(ctx.criteria))
    if inspect.isawaitable(answer):
        answer = await cast(Awaitable[object], answer)
    if not isinstance(answer, list | tuple):
        raise TypeError(f"evaluate returned a {type(answer).__name__}; expected a list of results")
    if not all(map(_is_of_criterion, cast(Sequence[object], answer))):
        raise TypeError("evaluate returned something in its list that is not a result with a criterionName")
    return cast(Returned, answer)


def _is_of_criterion(item: object) -> bool:
    """Whether it may be a result on a criterion; what is wrong inside of one is told by itself."""
    if isinstance(item, Mapping):
        naming = {"criterionName", "criterion_name", "success"}
        return not naming.isdisjoint(cast(Mapping[object, object], item))
    return isinstance(item, EvaluationResult | CriterionResult)
