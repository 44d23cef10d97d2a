"""Messages that are in OpenAI's shape already: told quickly, and kept off the slow path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from .parts import Fields, as_fields

KNOWN_ROLES = ("assistant", "user", "tool", "system", "developer", "function")
_PLAIN = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "id"})
_PLAIN_CALL = frozenset({"id", "type", "function"})
_TEXT, _LIST = (str, type(None)), (list, type(None))


def is_plain(fields: Mapping[str, Any]) -> bool:
    """Whether a message is in OpenAI's shape already: the common case, kept off the slow path."""
    return (
        _PLAIN.issuperset(fields)
        and fields.get("role") in KNOWN_ROLES
        and isinstance(fields.get("content"), _TEXT)
        and isinstance(fields.get("id"), _TEXT)
        and isinstance(fields.get("tool_call_id"), _TEXT)
        and isinstance(fields.get("tool_calls"), _LIST)
        and all(map(_is_plain_call, fields.get("tool_calls") or ()))
    )


def _is_plain_call(call: Any) -> bool:
    function = as_fields(cast(Fields, call).get("function")) if isinstance(call, dict) else None
    return function is not None and function.keys() == {"name", "arguments"} and bool(function["name"])


def is_read(fields: Mapping[str, Any]) -> bool:
    """Whether reading a message would leave it as it is: plain, and nothing but the call in its calls."""
    calls = fields.get("tool_calls")
    return calls != [] and is_plain(fields) and all(map(is_read_call, cast(Iterable[Any], calls or ())))


def is_read_call(call: object) -> bool:
    """Whether reading a call would leave it as it is; one that brings its result along is taken apart."""
    if not isinstance(call, dict) or not _PLAIN_CALL.issuperset(cast(Fields, call)):
        return False
    fields = cast(Fields, call)
    function: Any = fields.get("function")
    return (
        isinstance(fields.get("id"), str)
        and isinstance(fields.get("type", ""), str)
        and isinstance(function, dict)
        and cast(Fields, function).keys() == {"name", "arguments"}
        and isinstance(function["name"], str)
        and function["name"] != ""
    )
