"""JSON Schemas that never fetch, with their defaults filled in and errors a person can read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import field
from functools import cache
from itertools import islice
from typing import Any, cast

import jsonschema_rs

from .lazy_dataclass import dataclass
from .paths import fields_of
from .problems import Problem
from .schema_keywords import FORMATS, ineffective_keyword

Schema = dict[str, Any]

# Enough for any sane pattern; a hostile one ends here instead of running on.
_BACKTRACKS = 100_000


class InvalidSchema(ValueError):
    """Not a usable JSON Schema."""


# Some of the library's releases type this exception as a plain class.
_Referencing = cast(type[Exception], jsonschema_rs.ReferencingError)


def compile_schema(schema: Mapping[str, Any] | bool) -> jsonschema_rs.Validator:
    """A validator for the schema. Remote references and keywords that check nothing are refused here."""
    document: Any = schema if isinstance(schema, bool) else dict(schema)
    if mistake := ineffective_keyword(document):
        raise InvalidSchema(f"not a usable JSON Schema: {mistake}")
    try:
        return jsonschema_rs.validator_for(
            document,
            retriever=_refuse,
            # From 2019-09 on a format is only a remark, unless it is asked for.
            validate_formats=True,
            formats=_formats(),
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS),
        )
    except (ValueError, _Referencing) as error:
        detail = getattr(error, "message", None) or str(error)
        raise InvalidSchema(f"not a usable JSON Schema: {detail}") from None


@cache
def _formats() -> dict[str, Callable[[str], bool]]:
    """Every format as the newest draft checks it: the older ones do not know all of them."""
    newest = {name: {"format": name} for name in FORMATS}
    return {
        name: jsonschema_rs.validator_for(schema, validate_formats=True).is_valid
        for name, schema in newest.items()
    }


def _refuse(uri: str) -> Any:
    raise ValueError(f"reference {uri} points outside the schema, and schemas are never fetched")


def first_problem(validator: jsonschema_rs.Validator, value: Any) -> Problem | None:
    """The first place where a value breaks the schema. There may be millions more."""
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return Problem(error.message, tuple(error.instance_path))
    return None


UNBOUNDED = 10**9
_HELD_APART = frozenset(("$defs", "definitions", "enum", "const", "default", "examples", "required"))
# What makes the checks depend on each other, so that their number cannot be told from the schema alone.
_UNBOUNDED = frozenset(
    ("$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "$id", "$anchor")
)
_PATTERN_COST, _BACKTRACKING_COST = 50, 5_000
_BACKTRACKING = re.compile(r"\(\?|\\[1-9k]|\{")


def schema_cost(schema: Any) -> int:
    """The most checks that one place of a value may need; ``UNBOUNDED`` where this cannot be told."""
    # The name of the whole document changes nothing for references inside it.
    document = {key: item for key, item in fields_of(schema).items() if key != "$id"}
    try:
        return min(UNBOUNDED, _cost(document, _Expansion(document)))
    except (RecursionError, LookupError, TypeError, ValueError):
        return UNBOUNDED


@dataclass(slots=True)
class _Expansion:
    """A schema whose references are followed: what each of its parts costs, and which are being followed."""

    root: Any
    costs: dict[str, int] = field(default_factory=dict[str, int])
    open: set[str] = field(default_factory=set[str])

    def referenced(self, reference: Any) -> int:
        if not isinstance(reference, str) or reference in self.open:
            return UNBOUNDED
        if reference not in self.costs:
            self.open.add(reference)
            self.costs[reference] = _cost(_pointed(self.root, reference), self)
            self.open.discard(reference)
        return self.costs[reference]


def _pointed(root: Any, reference: str) -> Any:
    """What a reference inside the document points at; ``LookupError`` for any other."""
    if not reference.startswith("#") or "%" in reference:
        raise LookupError(reference)
    part: Any = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        part = cast(list[Any], part)[int(name)] if isinstance(part, list) else part[name]
    return part


def _cost(part: Any, expansion: _Expansion) -> int:
    if isinstance(part, list):
        return sum(_cost(item, expansion) for item in cast(list[Any], part))
    if not isinstance(part, dict):
        return 1
    fields = cast(dict[str, Any], part)
    if not _UNBOUNDED.isdisjoint(fields):
        return UNBOUNDED
    total = 1
    for key, item in fields.items():
        if key == "$ref":
            total += expansion.referenced(item)
        elif key == "pattern":
            total += _pattern_cost(item)
        elif key == "format":
            total += _PATTERN_COST
        elif key == "patternProperties" and isinstance(item, dict):
            total += sum(map(_pattern_cost, cast(dict[str, Any], item))) + _cost(item, expansion)
        elif key == "enum" and isinstance(item, list):
            total += len(cast(list[Any], item))
        elif key not in _HELD_APART:
            total += _cost(item, expansion)
    return min(total, UNBOUNDED)


def _pattern_cost(pattern: Any) -> int:
    is_costly = not isinstance(pattern, str) or _BACKTRACKING.search(pattern) is not None
    return _BACKTRACKING_COST if is_costly else _PATTERN_COST


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
