"""Configs of evaluators and connectors: one definition is the validation, the schema and the form.

A config is a pydantic model or a raw JSON Schema, read off the annotation of the function it belongs to
when it is not given.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from .base.problems import InvalidInput, Problem, problems_of, suggestion
from .base.schemas import Schema, compile_schema, problems, with_defaults
from .base.strict_values import StrictValues, values_in_other_forms

EMPTY_SCHEMA: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
# In a field's schema: the placeholders that a template fills in itself, a list of names and patterns.
OWN_PLACEHOLDERS = "x-placeholders"
TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*\Z")


class StrictConfig(StrictValues):
    """The base of our own configs: camelCase in JSON, unknown keys refused, never changed after loading."""

    # Most processes use few of them: each is built when it is first used. Bodies of requests are not: the
    # web framework builds those as it needs them.
    model_config = ConfigDict(
        defer_build=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
    )


def label_from(type_name: str) -> str:
    return re.sub(r"[-_.]+", " ", type_name).title()


class ConfigShape:
    """How a config is read: a pydantic model, a raw JSON Schema, or nothing at all."""

    def __init__(self, shape: type[BaseModel] | Schema | None) -> None:
        self.shape = shape
        self._validator = compile_schema(shape) if isinstance(shape, dict) else None

    @cached_property
    def schema(self) -> Schema:
        if self.shape is None:
            return EMPTY_SCHEMA
        return self.shape if isinstance(self.shape, dict) else self.shape.model_json_schema(by_alias=True)

    def parse(self, subject: str, raw: Mapping[str, Any] | None) -> Any:
        """The config as its owner gets it; ``subject`` is the type it belongs to, for errors."""
        config = dict(raw or {})
        if self.shape is None:
            parsed, wrong = config, [Problem("takes no config", (key,)) for key in config]
        elif isinstance(self.shape, dict):
            assert self._validator is not None
            parsed = with_defaults(self.shape, config)
            wrong = problems(self._validator, parsed)
        else:
            parsed, wrong = _validated(self.shape, config)
        if wrong:
            raise InvalidInput(*wrong).within(subject=subject)
        return parsed


def _validated(model: type[BaseModel], config: dict[str, Any]) -> tuple[BaseModel | None, list[Problem]]:
    wrong: list[Problem] = []
    if model.model_config.get("extra") in (None, "ignore"):
        known = model.model_json_schema(by_alias=True).get("properties", {}).keys() | set(model.model_fields)
        wrong = [
            Problem("unknown key", (key,), suggestion(key, sorted(known), "known are"))
            for key in config
            if key not in known
        ]
    try:
        parsed = model.model_validate(config)
    except ValidationError as error:
        return None, wrong + problems_of(error, config, model)
    return parsed, wrong + values_in_other_forms(parsed, config)


def first_paragraph(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n")[0].split())


def config_of(
    function: Callable[..., Any], context: type, names: Mapping[str, Any]
) -> type[BaseModel] | None:
    """The config model in the annotation of the function's first parameter, if there is one."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    hint: Any = first.annotation if first else None
    if isinstance(hint, str):
        if "[" not in hint:
            return None
        # The other annotations may name what is imported for type checkers only.
        alone = SimpleNamespace(__annotations__={"first": hint})
        try:
            hint = get_type_hints(alone, getattr(function, "__globals__", {}), dict(names))["first"]
        except NameError as error:
            raise TypeError(
                f"{function.__name__}: cannot read its config from {hint!r} ({error}); pass config="
            ) from None
    if get_origin(hint) is not context:
        return None
    model = get_args(hint)[0]
    return model if inspect.isclass(model) and issubclass(model, BaseModel) else None


def type_of(function: Callable[..., Any], name: str | None) -> str:
    """The type name given, or the function's own name in kebab case."""
    name = name or getattr(function, "__name__", "").strip("_").replace("_", "-")
    if not isinstance(name, str) or not TYPE_NAME.match(name):
        raise ValueError(f"type {name!r} must start with a letter and hold no blanks")
    return name


def locals_of_caller() -> Mapping[str, Any]:
    """The names where a decorator is applied, for annotations of classes defined inside a function."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    return caller.f_locals if caller else {}


def module_of_caller() -> str:
    """The module in which a definition is made, whoever wrote its functions."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    return str(caller.f_globals.get("__name__", "")) if caller else ""


def check_options(maker: str, options: Iterable[str], known: Sequence[str]) -> None:
    """Refuse what a maker of definitions does not know, by name."""
    for name in options:
        if name not in known:
            raise TypeError(f'{maker}: unknown "{name}"; {suggestion(name, known, "known are")}')


def read_mapping_form(
    maker: str, fields: Any, function: str, known: Sequence[str]
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A definition given as a mapping: its function, and its options by the names keywords have."""
    options: dict[str, Any] = {to_snake(key): item for key, item in fields.items()}
    if "config_schema" in options:
        options["config"] = options.pop("config_schema")
    check_options(maker, options, [function, *known])
    if not callable(options.get(function)):
        what = "must be a function" if function in options else "is missing"
        raise TypeError(f'{maker}: "{function}" {what}; it is what the definition does')
    return options.pop(function), options
