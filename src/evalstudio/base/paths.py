"""Paths into nested data: ``choices[0].message``, ``order["the id"]``, ``items[-1]``, ``items.0``.

One syntax for dicts, lists and models alike. A path is read once and followed often; nothing raises while
following, whatever shape the data has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel


class _Missing:
    """The one value that stands for nothing at all, also after a way through another process."""

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
Steps = tuple[str | int, ...]

_STEP = re.compile(r"""\.?([^.\[\]"']+)|\.?\[(-?\d+)\]|\.?\["([^"]*)"\]|\.?\['([^']*)'\]""")
_INDEX = re.compile(r"-?\d{1,18}")
_ROOT = re.compile(r"\A\s*\$(?=[.\[]|\s*\Z)")


@lru_cache(maxsize=1024)
def read_path(text: str) -> Steps:
    """The steps of a path; ``ValueError`` says where it cannot be read."""
    rest = _ROOT.sub("", text).strip()
    steps: list[str | int] = []
    place = 0
    while place < len(rest):
        match = _STEP.match(rest, place)
        if match is None:
            raise ValueError(f'"{text}" is not a path such as choices[0].message: stuck at "{rest[place:]}"')
        name, index, *quoted = match.groups()
        key = next((part for part in (name, *quoted) if part is not None), "")
        steps.append(key if index is None else int(index))
        place = match.end()
    return tuple(steps)


def _checked(text: str) -> str:
    read_path(text)
    return text


PathText = Annotated[str, AfterValidator(_checked)]


def lookup(value: Any, path: str) -> Any:
    """What is at a path, a key written exactly like it first; ``MISSING`` where there is nothing."""
    if path and isinstance(value, Mapping) and path in value:
        return cast(Mapping[str, Any], value)[path]
    try:
        return follow(value, read_path(path))
    except ValueError:
        return MISSING


def follow(value: Any, steps: Sequence[str | int]) -> Any:
    """What is at the end of the steps; ``MISSING`` where the way ends before."""
    for step in steps:
        value = _step(value, step)
        if value is MISSING:
            return MISSING
    return value


def _step(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return cast(Mapping[str, Any], value).get(str(step), MISSING)
    if isinstance(value, list | tuple):
        items = cast(Sequence[Any], value)
        if isinstance(step, str) and not _INDEX.fullmatch(step):
            return MISSING
        place = int(step)
        return items[place] if -len(items) <= place < len(items) else MISSING
    if isinstance(value, BaseModel):
        return _field(value, str(step))
    if is_dataclass(value):
        return getattr(value, _snake(str(step)), MISSING)
    return MISSING


def _field(model: BaseModel, name: str) -> Any:
    if model.model_extra and name in model.model_extra:
        return model.model_extra[name]
    name = name if name in type(model).model_fields else _snake(name)
    return getattr(model, name) if name in type(model).model_fields else MISSING


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def texts_in(value: Any, path: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Every text in plain data, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, item in cast(Mapping[str, Any], value).items():
            yield from texts_in(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(cast(list[Any], value)):
            yield from texts_in(item, (*path, number))


def strings_in(value: Any) -> Iterator[str]:
    """Every text in plain data, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in cast(Mapping[str, Any], value).items():
            yield str(name)
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from strings_in(item)


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of an object; none where it is something else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Any] | None:
    """The items of a list, if it is one."""
    return cast(list[Any], value) if isinstance(value, list) else None
