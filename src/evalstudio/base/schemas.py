"""JSON Schemas that never fetch, with their defaults filled in and errors a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from typing import Any, cast

import jsonschema_rs

from .paths import fields_of
from .problems import Problem

Schema = dict[str, Any]

# Enough for any sane pattern; a hostile one ends here instead of running on.
_BACKTRACKS = 100_000


class InvalidSchema(ValueError):
    """Not a usable JSON Schema."""


# Some of the library's releases type this exception as a plain class.
_Referencing = cast(type[Exception], jsonschema_rs.ReferencingError)


def compile_schema(schema: Mapping[str, Any] | bool) -> jsonschema_rs.Validator:
    """A validator for the schema. Remote references are refused here, before any use."""
    document: Any = schema if isinstance(schema, bool) else dict(schema)
    try:
        return jsonschema_rs.validator_for(
            document,
            retriever=_refuse,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS),
        )
    except (ValueError, _Referencing) as error:
        detail = getattr(error, "message", None) or str(error)
        raise InvalidSchema(f"not a usable JSON Schema: {detail}") from None


def _refuse(uri: str) -> Any:
    raise ValueError(f"reference {uri} points outside the schema, and schemas are never fetched")


def problems(validator: jsonschema_rs.Validator, value: Any, most: int = 5) -> list[Problem]:
    """Where and how a value breaks the schema."""
    errors = islice(validator.iter_errors(value), most)
    return [Problem(error.message, tuple(error.instance_path)) for error in errors]


def with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    """A copy of the value in which missing properties have their schema's defaults."""
    if not isinstance(value, Mapping):
        return deepcopy(value)
    filled: dict[str, Any] = {key: deepcopy(item) for key, item in cast(Mapping[str, Any], value).items()}
    for name, part in fields_of(schema.get("properties")).items():
        rules = fields_of(part)
        if name in filled:
            filled[name] = with_defaults(rules, filled[name])
        elif "default" in rules:
            filled[name] = deepcopy(rules["default"])
    return filled
