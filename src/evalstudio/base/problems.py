"""What is wrong with something a person gave: each problem with its path, its words and a hint.

One exception carries problems from the first check to the command line, the API and the page.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake

from .json_text import json_text
from .lazy_dataclass import dataclass
from .text import cut

FieldPath = tuple[str | int, ...]
MOST_PROBLEMS = 50
_LONGEST_VALUE = 40
_BARE = re.compile(r"true|false|-?\d+(?:\.\d+)?")
_EXPECTED = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "named settings",
    "model_type": "named settings",
    "model_attributes_type": "named settings",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}


def path_text(path: Sequence[str | int]) -> str:
    """``("rules", 0, "tool")`` as ``rules[0].tool``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    ``path`` is the field, ``place`` the ``file:line``, ``subject`` what the path belongs to where that
    is not clear from the place, such as ``scenario "Hello"``.
    """

    message: str
    path: FieldPath = ()
    hint: str = ""
    place: str = ""
    subject: str = ""

    def within(self, *path: str | int, subject: str = "") -> Problem:
        """The same problem seen from further out. A path from there says more than the subject did."""
        subjects = [text for text in (subject, "" if path else self.subject) if text]
        return replace(self, path=path + self.path, subject=": ".join(subjects))

    def with_hint(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def __str__(self) -> str:
        parts = (self.place, self.subject, path_text(self.path), self.with_hint())
        return ": ".join(part for part in parts if part)


class InvalidInput(ValueError):
    """Something given by a person that cannot be used as it is, with everything that is wrong with it."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = [one if isinstance(one, Problem) else Problem(one) for one in problems]
        super().__init__(*self.problems)

    @classmethod
    def at(cls, place: str | Path, message: str, hint: str = "") -> InvalidInput:
        """One problem with a file, or a line of it."""
        return cls(Problem(message, hint=hint, place=str(place)))

    def within(self, *path: str | int, subject: str = "") -> InvalidInput:
        return InvalidInput(*(problem.within(*path, subject=subject) for problem in self.problems))

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        lines = [f"{len(self.problems):,} problems:", *map(str, self.problems[:MOST_PROBLEMS])]
        if len(self.problems) > MOST_PROBLEMS:
            lines.append(f"and {len(self.problems) - MOST_PROBLEMS:,} more")
        return "\n  ".join(lines)


class ProblemList(list[Problem]):
    """Problems gathered on the way, so that all of them are told at once."""

    @contextmanager
    def collect(self, *path: str | int, subject: str = "") -> Generator[None]:
        """Gather the problems of what is done inside, and go on after it."""
        try:
            yield
        except InvalidInput as error:
            self.extend(error.within(*path, subject=subject).problems)

    def check(self) -> None:
        """Raise all of them, if there are any."""
        if self:
            raise InvalidInput(*self)


def suggestion(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint at what may have been meant. Where nothing is near, ``otherwise`` begins a list of all."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"{otherwise} {', '.join(names) or 'none'}" if otherwise else ""


@dataclass(frozen=True, slots=True)
class _Placed:
    """An error of pydantic's in the data. ``branch`` is the way of reading it that failed, of several."""

    path: FieldPath
    value: Any
    error: Any
    site: FieldPath | None = None
    branch: str = ""
    expected: str = ""


def problems_of(
    error: ValidationError | Sequence[Any],
    data: object = None,
    model: type[BaseModel] | None = None,
    *,
    is_secret: Callable[[str, str], bool] | None = None,
) -> list[Problem]:
    """What pydantic has against some data, in words, without the ways the data was not meant to be read.

    Values are repeated only where the caller can tell which of them are secrets.
    """
    errors = error.errors(include_url=False) if isinstance(error, ValidationError) else error
    placed = [_placed(item, data) for item in errors]
    return [_problem(model, one, is_secret) for one in _as_meant(placed)]


def _placed(error: Any, data: object) -> _Placed:
    """Where an error is; parts of its path that are not in the data name a way of reading it."""
    if data is None:
        return _Placed(tuple(error["loc"]), error.get("input"), error)
    path: list[str | int] = []
    value, site, branch = data, None, ""
    last = len(error["loc"]) - 1
    for number, part in enumerate(error["loc"]):
        if (step := _step(value, part)) is not None:
            path.append(step)
            value = cast(Any, value)[step]
        elif number == last and error["type"] == "missing":
            path.append(part)
        elif site is None:
            site, branch = tuple(path), str(part)
    return _Placed(tuple(path), value, error, site, branch)


def _step(value: object, part: str | int) -> str | int | None:
    if isinstance(value, Mapping) and isinstance(part, str):
        return next((name for name in (part, to_snake(part)) if name in value), None)
    if isinstance(value, list) and isinstance(part, int) and part < len(cast(list[Any], value)):
        return part
    return None


def _as_meant(placed: Sequence[_Placed]) -> Iterator[_Placed]:
    """Of several ways to read a value, the one that got furthest is what was meant."""
    ways: dict[FieldPath, list[_Placed]] = {}
    for one in placed:
        if one.site is not None:
            ways.setdefault(one.site, []).append(one)
    for one in placed:
        if one.site is None:
            yield one
        elif one is ways[one.site][0]:
            yield from _meant(ways[one.site])


def _meant(ways: list[_Placed]) -> list[_Placed]:
    """The errors of one way to read a value; where none got into it, all that it could have been."""
    # What only code can give is not what was meant in data.
    ways = [one for one in ways if one.error["type"] != "is_instance_of"] or ways
    furthest = max(ways, key=lambda one: len(one.path))
    if len(furthest.path) > len(furthest.site or ()):
        return [one for one in ways if one.branch == furthest.branch]
    if fitting := [one for one in ways if one.error["type"] not in _EXPECTED]:
        return [one for one in fitting if one.branch == fitting[0].branch]
    *others, last = dict.fromkeys(_EXPECTED[one.error["type"]] for one in ways)
    return [replace(ways[0], expected=" or ".join([", ".join(others), last] if others else [last]))]


def _problem(
    model: type[BaseModel] | None, placed: _Placed, is_secret: Callable[[str, str], bool] | None
) -> Problem:
    kind: str = placed.error["type"]
    if kind == "missing":
        return Problem("is missing", placed.path)
    if kind == "extra_forbidden":
        known = _known_keys(model, placed.path[:-1]) if model else []
        hint = suggestion(str(placed.path[-1]), known, "known are") if known else ""
        return Problem("unknown key", placed.path, hint)
    if (tag := _discriminator(placed)) is not None:
        return tag
    if expected := placed.expected or _EXPECTED.get(kind):
        quote = _quoted(placed, is_secret) if is_secret else ""
        is_number = kind == "string_type" and isinstance(placed.value, int | float)
        hint = "put it in quotes" if quote and is_number else quotes_hint(expected, placed.value)
        return Problem(f"expected {expected}{quote}", placed.path, hint)
    return Problem(_words(kind, placed.error), placed.path)


def quotes_hint(expected: str, value: object) -> str:
    """A hint where a number or a truth value is written as text."""
    if not isinstance(value, str) or not expected.startswith(("a number", "a whole number", "true or false")):
        return ""
    return "leave out the quotes" if _BARE.fullmatch(value) else ""


def _words(kind: str, error: Any) -> str:
    """An error of pydantic's in words for people who never heard of it."""
    limits: Mapping[str, Any] = error.get("ctx") or {}
    match kind:
        case "string_too_short" | "too_short":
            least, unit = limits["min_length"], "character" if kind == "string_too_short" else "item"
            if (kind, least) == ("string_too_short", 1):
                return "must not be empty"
            return f"must have at least {least:,} {unit}{'s' if least > 1 else ''}"
        case "string_too_long" | "too_long":
            unit = "items" if kind == "too_long" else "characters"
            return f"must have at most {limits['max_length']:,} {unit}"
        case "string_pattern_mismatch":
            return f"must match {limits['pattern']}"
        case _ if kind.startswith(("datetime_", "date_")):
            return "expected a date or a time such as 2026-01-31T09:30:00Z"
        case _:
            text = str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
            return text.replace("Input should be", "must be")


def _discriminator(placed: _Placed) -> Problem | None:
    """What is wrong with the field that tells which of several shapes is meant."""
    limits: Mapping[str, Any] = placed.error.get("ctx") or {}
    path = (*placed.path, str(limits.get("discriminator", "")).strip("'"))
    match placed.error["type"]:
        case "union_tag_not_found":
            return Problem("is missing", path)
        case "union_tag_invalid":
            known = [tag.strip().strip("'") for tag in str(limits["expected_tags"]).split(",")]
            tag = str(limits["tag"])
            message = f'"{cut(tag, _LONGEST_VALUE)}" is not one of {", ".join(known)}'
            return Problem(message, path, suggestion(tag, known))
        case _:
            return None


def _quoted(placed: _Placed, is_secret: Callable[[str, str], bool]) -> str:
    text = json_text(placed.value)
    if any(is_secret(part, text) for part in placed.path if isinstance(part, str)):
        return ""
    return f", found {cut(text, _LONGEST_VALUE)}"


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)


def _known_keys(model: type[BaseModel], path: FieldPath) -> list[str]:
    """The keys the model knows at this path."""
    schema = _schema(model)
    shapes = _objects(schema, schema)
    for part in path:
        inner = [shape.get("items") or shape.get("properties", {}).get(part) for shape in shapes]
        shapes = [shape for one in inner if one for shape in _objects(schema, one)]
    return list(dict.fromkeys(key for shape in shapes for key in shape.get("properties", {})))


def _objects(schema: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    """The shapes a part of a schema may have, references followed."""
    if "$ref" in part:
        return _objects(schema, schema["$defs"][part["$ref"].rpartition("/")[2]])
    options = part.get("anyOf") or part.get("oneOf")
    return [shape for one in options for shape in _objects(schema, one)] if options else [part]
