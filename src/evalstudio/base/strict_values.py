"""Numbers and truth values that are written as such: ``"900"`` is no number and ``1`` is not true.

Pydantic's own strict mode would refuse lists for tuples and words for enums as well, so only these three are
made strict, in the schema pydantic has made of a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from .booleans import read_bool
from .problems import FieldPath, Problem, quotes_hint

Check = Callable[[Any], Any]

# What pydantic reads by itself where a model does not say otherwise.
_NUMBER = re.compile(r"\s*[-+]?[\d_]*\.?\d+(?:[eE][-+]?\d+)?\s*")
_TRUTH = re.compile(r"0|off|f|false|n|no|1|on|t|true|y|yes", re.IGNORECASE)
_EXPECTED: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}


def _whole_number(value: Any) -> Any:
    return _number(value, "int_type")


def _any_number(value: Any) -> Any:
    return _number(value, "float_type")


def _number(value: Any, wrong: Any) -> Any:
    if isinstance(value, str | bytes | bytearray) or read_bool(value) is not None:
        raise PydanticKnownError(wrong)
    return value


def _truth(value: Any) -> bool:
    truth = read_bool(value)
    if truth is None:
        raise PydanticKnownError("bool_type")
    return truth


_CHECKS: dict[str, Check] = {"int": _whole_number, "float": _any_number, "bool": _truth}


_HOLDERS = (dict, list)
_KEPT = frozenset(("metadata", "serialization", "default"))


def _strict(schema: Any, owner: type | None) -> Any:
    """The schema with a check before each number and truth value; with an owner, of its own fields alone."""
    if type(schema) is list:
        items = cast(list[Any], schema)
        return [_strict(item, owner) if type(item) in _HOLDERS else item for item in items]
    parts = cast(dict[str, Any], schema)
    kind: Any = parts.get("type")
    if kind in ("int", "float", "bool"):
        return core_schema.no_info_before_validator_function(_CHECKS[kind], cast(Any, parts))
    if owner is not None and kind == "model" and parts["cls"] is not owner:
        return parts
    if kind == "function-before" and parts["function"]["function"] in _CHECKS.values():
        return parts
    return {
        key: _strict(item, owner) if type(item) in _HOLDERS and key not in _KEPT else item
        for key, item in parts.items()
    }


class StrictValues(BaseModel):
    """A model whose own numbers and truth values are not read from text, nor from each other."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _strict(handler(source), source)


def values_in_other_forms(model: BaseModel, data: Mapping[str, Any]) -> list[Problem]:
    """The numbers and truth values that a model of somebody else's has read from something else.

    A model that says ``strict=False`` itself is left to it.
    """
    if isinstance(model, StrictValues) or model.model_config.get("strict") is False:
        return []
    return list(_converted(model, data, ()))


def _converted(parsed: object, data: object, path: FieldPath) -> Iterator[Problem]:
    if expected := _EXPECTED.get(type(parsed)):
        if _is_other_form(parsed, data):
            yield Problem(f"expected {expected}", path, quotes_hint(expected, data))
        return
    for step, inner, written in _pairs(parsed, data):
        yield from _converted(inner, written, (*path, step))


def _pairs(parsed: object, data: object) -> Iterator[tuple[str | int, object, object]]:
    """The parts of what was read, each with what it was read from."""
    if isinstance(data, Mapping):
        written = cast(Mapping[str, object], data)
        if isinstance(parsed, BaseModel):
            for name, field in type(parsed).model_fields.items():
                keys = {key for key in (name, field.alias, field.validation_alias) if isinstance(key, str)}
                yield from ((key, getattr(parsed, name), written[key]) for key in keys if key in written)
        elif isinstance(parsed, Mapping):
            items = cast(Mapping[str, object], parsed).items()
            yield from ((key, item, written[key]) for key, item in items if key in written)
    elif isinstance(parsed, list | tuple) and isinstance(data, list | tuple):
        pairs = zip(cast(Sequence[object], parsed), cast(Sequence[object], data), strict=False)
        yield from ((number, *pair) for number, pair in enumerate(pairs))


def _is_other_form(parsed: object, data: object) -> bool:
    """Whether pydantic has made the value of other data; what only a function could read is left to it."""
    if isinstance(parsed, bool):
        is_number = isinstance(data, int | float) and not isinstance(data, bool)
        return is_number or (isinstance(data, str) and bool(_TRUTH.fullmatch(data)))
    return isinstance(data, bool) or (isinstance(data, str) and bool(_NUMBER.fullmatch(data)))
