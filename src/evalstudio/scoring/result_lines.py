"""Results as JSON lines: whatever an evaluator put into one, a line comes out.

Used by every writer of results, so that an odd value costs its place in the line and never the line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AnySet
from datetime import UTC, datetime
from typing import Any, Protocol, cast

import orjson

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_SERIALIZE_NUMPY
_DEEPEST = 100


class HasJson(Protocol):
    def to_json(self) -> dict[str, Any]: ...


def to_line(result: HasJson | Mapping[str, Any]) -> bytes:
    """One result as a JSON line. NaN becomes null, functions vanish, dates become ISO text."""
    value: Any = dict(result) if isinstance(result, Mapping) else result.to_json()
    return to_bytes(value) + b"\n"


def to_bytes(value: Mapping[str, Any]) -> bytes:
    """Compact JSON. The common case is one call; odd values are brought into shape on a second try."""
    try:
        return orjson.dumps(value, default=_default, option=_OPTIONS)
    except (_Vanishes, orjson.JSONEncodeError):
        return orjson.dumps(_clean(value), default=str, option=_OPTIONS)


class _Vanishes(TypeError):
    """A value that has no place in JSON."""


def _default(value: object) -> object:
    if isinstance(value, datetime):
        return _iso(value)
    if callable(value):
        raise _Vanishes
    if isinstance(value, AnySet):
        return list(cast(AnySet[Any], value))
    as_json = _json_of(value)
    return str(value) if as_json is None else as_json


def _json_of(value: object) -> object | None:
    if isinstance(value, type):
        return None
    to_json: Any = getattr(value, "to_json", None) or getattr(value, "model_dump", None)
    return to_json() if callable(to_json) else None


def _iso(moment: datetime) -> str:
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clean(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return {_text(str(key)): _clean(item, depth + 1) for key, item in items if not callable(item)}
    if isinstance(value, list | tuple | AnySet):
        several = cast(Sequence[Any], value)
        return [_clean(item, depth + 1) for item in several if not callable(item)]
    return _clean_one(value, depth)


def _clean_one(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    as_json = _json_of(value)
    return value if as_json is None else _clean(as_json, depth + 1)


def _text(value: str) -> str:
    """Text without halves of characters, which no encoding can hold."""
    return value.encode("utf-8", "replace").decode()
