"""Copies of data handed to code that is not ours, so that it cannot change the original."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

from pydantic import BaseModel

T = TypeVar("T")

_UNCHANGING = (str, int, float, bool, type(None), bytes)


def own_copy(value: T, known: dict[int, Any] | None = None) -> T:
    """The value with every container, model and dataclass in it copied; other objects stay what they are.

    A client or a lock cannot be copied, and nobody would want it to be.
    """
    if isinstance(value, _UNCHANGING):
        return value
    known = {} if known is None else known
    if (copied := known.get(id(value))) is not None:
        return copied
    return cast(T, _copied(value, known))


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, list):
        known[id(cast(object, value))] = items = list[Any]()
        items.extend(own_copy(item, known) for item in cast(list[Any], value))
        return items
    if isinstance(value, tuple):
        items = [own_copy(item, known) for item in cast(tuple[Any, ...], value)]
        return value._make(items) if hasattr(value, "_make") else tuple(items)  # pyright: ignore
    if isinstance(value, set):
        return set(cast(set[Any], value))
    if isinstance(value, Mapping):
        known[id(cast(object, value))] = entries = dict[Any, Any]()
        entries.update((key, own_copy(item, known)) for key, item in cast(Mapping[Any, Any], value).items())
        return entries
    if isinstance(value, BaseModel):
        return _copied_model(value, known)
    if is_dataclass(value) and not isinstance(value, type):
        return _copied_dataclass(value, known)
    return value


def _copied_model(model: BaseModel, known: dict[int, Any]) -> BaseModel:
    copied = known[id(model)] = model.model_copy()
    for parts in (vars(copied), copied.__pydantic_extra__ or {}):
        for name, item in parts.items():
            if not isinstance(item, _UNCHANGING):
                parts[name] = own_copy(item, known)
    return copied


def _copied_dataclass(value: Any, known: dict[int, Any]) -> Any:
    copied = known[id(value)] = copy(value)
    for field in fields(value):
        # Frozen ones too: what they hold may be changed even where they cannot.
        object.__setattr__(copied, field.name, own_copy(getattr(value, field.name), known))
    return copied
