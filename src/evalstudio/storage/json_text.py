"""JSON as it is kept: text that every database takes, whatever an agent or an evaluator came up with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

import orjson

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
_DEEPEST = 200


def dumps(value: Any, *, sort_keys: bool = False) -> str:
    """Compact JSON text. NaN is null, functions vanish, what JSON cannot hold becomes its ``str``."""
    options = _OPTIONS | orjson.OPT_SORT_KEYS if sort_keys else _OPTIONS
    try:
        return orjson.dumps(value, default=_plain, option=options).decode()
    except (TypeError, RecursionError):
        return orjson.dumps(_clean(value, 0), option=options).decode()


def loads(text: str) -> Any:
    return orjson.loads(text)


def clean_text(text: str) -> str:
    """Text without what databases refuse: NUL and halves of surrogate pairs."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain(value: object) -> object:
    if callable(value):
        raise TypeError("a function has no place in JSON")
    for method in ("to_json", "model_dump"):
        if (convert := getattr(value, method, None)) is not None:
            return convert()
    return str(value)


def _clean(value: Any, depth: int) -> Any:
    """The same value in what JSON can hold; the deepest parts become text."""
    if isinstance(value, str):
        return _whole(value)
    if value is None or isinstance(value, bool | float | datetime):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, Mapping | list | tuple | set):
        return _clean_container(cast("Any", value), depth) if depth < _DEEPEST else "…"
    return _clean(_plain(value), depth + 1)


def _clean_container(value: Mapping[Any, Any] | list[Any], depth: int) -> Any:
    if isinstance(value, Mapping):
        return {
            _whole(str(key)): _clean(item, depth + 1) for key, item in value.items() if not callable(item)
        }
    return [_clean(item, depth + 1) for item in value if not callable(item)]


def _whole(text: str) -> str:
    """Text with the halves of surrogate pairs replaced; NUL may stay, JSON escapes it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
