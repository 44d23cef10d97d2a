"""Paths into nested data: ``context.order[0].id``, over dicts, lists and models alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel

MISSING: Any = object()

_BRACKET = re.compile(r"\[(\d+|\"[^\"]*\"|'[^']*')\]")


@lru_cache(maxsize=1024)
def split_path(path: str) -> tuple[str, ...]:
    """``a.b[0]`` as ``("a", "b", "0")``."""
    dotted = _BRACKET.sub(lambda found: "." + found[1].strip("\"'"), path)
    return tuple(part for part in dotted.split(".") if part)


def lookup(value: Any, parts: Sequence[str]) -> Any:
    """Follow the parts into the value; ``MISSING`` where the way ends."""
    for part in parts:
        value = _step(value, part)
        if value is MISSING:
            return MISSING
    return value


def _step(value: Any, part: str) -> Any:
    if isinstance(value, Mapping):
        return cast(Mapping[str, Any], value).get(part, MISSING)
    if isinstance(value, list | tuple):
        items = cast(Sequence[Any], value)
        return items[int(part)] if part.isdecimal() and int(part) < len(items) else MISSING
    if isinstance(value, BaseModel):
        return _field(value, part)
    if is_dataclass(value):
        return getattr(value, _snake(part), MISSING)
    return MISSING


def _field(model: BaseModel, part: str) -> Any:
    if model.model_extra and part in model.model_extra:
        return model.model_extra[part]
    name = part if part in type(model).model_fields else _snake(part)
    return getattr(model, name) if name in type(model).model_fields else MISSING


def _snake(part: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", part).lower()
