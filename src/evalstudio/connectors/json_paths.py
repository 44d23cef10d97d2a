"""Paths into JSON: ``choices[0].message``, ``reply["the text"]``, ``items[-1]``; read once, followed often.

What comes from agents has any shape, so nothing here raises on a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, cast

from pydantic import AfterValidator

MISSING: Any = object()
Steps = tuple[str | int, ...]

_STEP = re.compile(r"""\.?([^\s.\[\]"']+)|\[(-?\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")


def read_path(text: str) -> Steps:
    """The steps of a path; ``ValueError`` says where it cannot be read."""
    rest = text.strip().removeprefix("$")
    steps: list[str | int] = []
    place = 0
    while place < len(rest):
        found = _STEP.match(rest, place)
        if found is None:
            raise ValueError(f'"{text}" is not a path such as choices[0].message: stuck at "{rest[place:]}"')
        name, index, double, single = found.groups()
        steps.append(
            int(index) if index is not None else next(s for s in (name, double, single) if s is not None)
        )
        place = found.end()
    return tuple(steps)


def follow(value: Any, steps: Steps) -> Any:
    """What is at the end of the steps; ``MISSING`` where the way ends before."""
    for step in steps:
        if isinstance(step, str) and isinstance(value, dict):
            value = cast(dict[str, Any], value).get(step, MISSING)
        elif isinstance(step, int) and isinstance(value, list):
            items = cast(Sequence[Any], value)
            value = items[step] if -len(items) <= step < len(items) else MISSING
        else:
            return MISSING
    return value


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of an object; none where it is something else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Any] | None:
    """The items of a list, if it is one."""
    return cast(list[Any], value) if isinstance(value, list) else None


def _checked(text: str) -> str:
    read_path(text)
    return text


PathText = Annotated[str, AfterValidator(_checked)]
