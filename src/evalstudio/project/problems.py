"""What a model has against some data, in words: where it is, what was expected, what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake

from ..base.json_text import json_text
from ..configs import closest
from .secrets import is_secret

Place = tuple[str | int, ...]
_LONGEST_FOUND = 40
_EXPECTED = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "named settings",
    "model_type": "named settings",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong with some data, and where."""

    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class _Found:
    """An error placed in the data. ``branch`` is the way of reading it that failed, if there are several."""

    place: Place
    value: Any
    error: Any
    site: Place | None = None
    branch: str = ""


def mistakes(model: type[BaseModel], data: object, error: ValidationError) -> list[Mistake]:
    """What is wrong with the data, one mistake each, without those of ways it was not meant to be read."""
    found = [_placed(item, data) for item in error.errors(include_url=False)]
    return [Mistake(one.place, _message(model, one)) for one in _as_meant(found)]


def _placed(error: Any, data: object) -> _Found:
    """Where an error is; parts of its path that are not in the data name a way of reading it."""
    place: list[str | int] = []
    value, site, branch = data, None, ""
    last = len(error["loc"]) - 1
    for number, part in enumerate(error["loc"]):
        if (step := _step(value, part)) is not None:
            place.append(step)
            value = cast(Any, value)[step]
        elif number == last and error["type"] == "missing":
            place.append(part)
        elif site is None:
            site, branch = tuple(place), str(part)
    return _Found(tuple(place), value, error, site, branch)


def _step(value: object, part: str | int) -> str | int | None:
    if isinstance(value, Mapping) and isinstance(part, str):
        return next((name for name in (part, to_snake(part)) if name in value), None)
    if isinstance(value, list) and isinstance(part, int) and part < len(cast(list[Any], value)):
        return part
    return None


def _as_meant(found: Sequence[_Found]) -> Iterator[_Found]:
    """Of several ways to read a value, the one that got furthest is what was meant."""
    best: dict[Place, tuple[int, str]] = {}
    for one in found:
        if one.site is not None and len(one.place) > best.get(one.site, (-1, ""))[0]:
            best[one.site] = len(one.place), one.branch
    for one in found:
        if one.site is None or best[one.site][1] == one.branch:
            yield one


def _message(model: type[BaseModel], found: _Found) -> str:
    kind: str = found.error["type"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = _known_keys(model, found.place[:-1])
        hint = closest(str(found.place[-1]), known) or f"; known are {', '.join(known)}"
        return f"unknown key{hint}"
    if expected := _EXPECTED.get(kind):
        return f"expected {expected}{_shown(found, quotable=kind == 'string_type')}"
    text = found.error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return text.replace("Input should be", "must be").replace("should have at least", "must have at least")


def _shown(found: _Found, *, quotable: bool) -> str:
    text = json_text(found.value)
    if any(is_secret(part, text) for part in found.place if isinstance(part, str)):
        return ""
    short = text if len(text) <= _LONGEST_FOUND else text[: _LONGEST_FOUND - 1] + "…"
    simple = isinstance(found.value, int | float)
    return f", found {short}{'; put it in quotes' if quotable and simple else ''}"


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)


def _known_keys(model: type[BaseModel], place: Place) -> list[str]:
    """The keys the model knows at this place."""
    schema = _schema(model)
    here = _objects(schema, schema)
    for part in place:
        inner = [
            shape["items"] if isinstance(part, int) else shape.get("properties", {}).get(part, {})
            for shape in here
            if "items" in shape or "properties" in shape
        ]
        here = [shape for one in inner for shape in _objects(schema, one)]
    return list(dict.fromkeys(key for shape in here for key in shape.get("properties", {})))


def _objects(schema: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    """The shapes a part of a schema may have, references followed."""
    if "$ref" in part:
        return _objects(schema, schema["$defs"][part["$ref"].rpartition("/")[2]])
    options = part.get("anyOf") or part.get("oneOf")
    return [shape for one in options for shape in _objects(schema, one)] if options else [part]
