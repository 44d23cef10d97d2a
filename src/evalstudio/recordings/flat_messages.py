"""Messages as OpenInference writes them: every field of every message is an attribute of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..messages import as_fields

_LONGEST_NUMBER = 9


class UnreadableContent(ValueError):
    """Content of a span that is there and cannot be read."""


def flattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Messages whose every field is an attribute; their numbers have gaps and may begin anywhere."""
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            _put(tree, name[len(prefix) :].split("."), value)
    return [_flat_message(item) for item in _numbered(tree)]


def _put(tree: dict[str, Any], steps: list[str], value: Any) -> None:
    for step in steps[:-1]:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            raise UnreadableContent(f'the attribute "{".".join(steps)}" contradicts another one')
        tree = cast(dict[str, Any], inner)
    tree[steps[-1]] = value


def _numbered(tree: Any) -> list[Any]:
    """What stands under numbers, in their order."""
    fields = cast(dict[str, Any], tree) if isinstance(tree, dict) else {}
    numbers = (key for key in fields if key.isdecimal() and len(key) <= _LONGEST_NUMBER)
    return [fields[number] for number in sorted(numbers, key=int)]


def _flat_message(item: Any) -> dict[str, Any]:
    fields = dict(cast(dict[str, Any], item).get("message") or {}) if isinstance(item, dict) else {}
    calls = [_flat_call(one) for one in _numbered(fields.pop("tool_calls", None))]
    blocks = [_flat_block(one) for one in _numbered(fields.pop("contents", None))]
    if name := fields.pop("function_call_name", None):
        calls.append(
            {"function": {"name": name, "arguments": fields.pop("function_call_arguments_json", "{}")}}
        )
    if calls:
        fields["tool_calls"] = calls
    if blocks and not fields.get("content"):
        fields["content"] = blocks
    return fields


def _flat_call(item: Any) -> dict[str, Any]:
    call = dict((as_fields(item) or {}).get("tool_call") or {})
    return {"id": call.get("id", ""), "type": "function", "function": call.get("function") or {}}


def _flat_block(item: Any) -> dict[str, Any]:
    block = dict((as_fields(item) or {}).get("message_content") or {})
    return block if "type" in block or "text" not in block else {"type": "text", **block}
