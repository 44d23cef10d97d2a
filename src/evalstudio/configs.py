"""Configs of evaluators and connectors: one definition is the validation, the schema and the form.

A config is a pydantic model or a raw JSON Schema, read off the annotation of the function it belongs to
when it is not given.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from .base.schemas import Schema, compile_schema, path_text, problems, with_defaults

EMPTY_SCHEMA: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*\Z")


class StrictConfig(BaseModel):
    """The base of our own configs: camelCase in JSON, unknown keys refused, never changed after loading."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
    )


class InvalidConfig(ValueError):
    """A config its evaluator or connector cannot use; ``problems`` are (path, message) pairs."""

    def __init__(self, what: str, found: list[tuple[str, str]]) -> None:
        self.what = what
        self.problems = found
        lines = "; ".join(f"{path}: {message}" if path else message for path, message in found)
        super().__init__(f"{what}: {lines}")


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

    def parse(self, what: str, raw: Mapping[str, Any] | None) -> Any:
        given = dict(raw or {})
        if self.shape is None:
            if given:
                raise InvalidConfig(what, [(next(iter(given)), "takes no config")])
            return {}
        if isinstance(self.shape, dict):
            return self._parse_schema(what, self.shape, given)
        return self._parse_model(what, self.shape, given)

    def _parse_schema(self, what: str, schema: Schema, given: dict[str, Any]) -> dict[str, Any]:
        filled = with_defaults(schema, given)
        assert self._validator is not None
        if found := problems(self._validator, filled):
            raise InvalidConfig(what, found)
        return filled

    def _parse_model(self, what: str, model: type[BaseModel], given: dict[str, Any]) -> BaseModel:
        if model.model_config.get("extra") in (None, "ignore"):
            known = set(model.model_json_schema(by_alias=True).get("properties", ())) | set(
                model.model_fields
            )
            if unknown := [key for key in given if key not in known]:
                raise InvalidConfig(what, [(unknown[0], f"unknown key; known are {_listed(known)}")])
        try:
            return model.model_validate(given)
        except ValidationError as error:
            raise InvalidConfig(what, _with_known_keys(model, error)) from None


def _with_known_keys(model: type[BaseModel], error: ValidationError) -> list[tuple[str, str]]:
    """The errors, an unknown key of the config itself with those that are known."""
    known = [field.alias or name for name, field in model.model_fields.items()]
    return [
        (path, f"unknown key{closest(path, known) or f'; known are {_listed(set(known))}'}")
        if item["type"] == "extra_forbidden" and len(item["loc"]) == 1
        else (path, message)
        for item, (path, message) in zip(error.errors(), readable(error), strict=True)
    ]


def readable(error: ValidationError) -> list[tuple[str, str]]:
    """Pydantic's errors as (path, message) pairs without its boilerplate."""
    return [
        (path_text(item["loc"]), item["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, "))
        for item in error.errors(include_url=False, include_input=False)
    ]


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


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
    if inspect.isclass(model) and issubclass(model, BaseModel):
        return model
    return None


def type_of(function: Callable[..., Any], given: str | None) -> str:
    """The type name given, or the function's own name in kebab case."""
    name = given or function.__name__.strip("_").replace("_", "-")
    if not TYPE_NAME.match(name):
        raise ValueError(f"type {name!r} must start with a letter and hold no blanks")
    return name


def locals_of_caller() -> Mapping[str, Any]:
    """The names where a decorator is applied, for annotations of classes defined inside a function."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    return caller.f_locals if caller else {}


def closest(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant, to end an error message with."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""
