"""LangChain's messages in OpenAI's shape."""

from __future__ import annotations

from typing import Any

from ..messages import TokensUsage
from .errors import ConnectorError
from .json_paths import fields_of, items_of
from .replies import read_usage

_ROLES = {
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "human": "user",
    "tool": "tool",
    "system": "system",
    "developer": "developer",
    "function": "function",
}
# Blocks that repeat what ``tool_calls`` already says.
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call"})


def to_openai(item: Any) -> dict[str, Any] | None:
    """One message as it goes on; nothing for those the user wrote and for orders to remove one."""
    given = fields_of(item)
    if not given:
        raise ConnectorError(f"the graph's state holds a {type(item).__name__} among its messages")
    kind: Any = given.get("type") or given.get("role")
    role = _ROLES.get(str(kind), str(kind))
    if role in ("user", "remove"):
        return None
    message: dict[str, Any] = {"role": role, "content": _content(given.get("content"))}
    if calls := _calls(given):
        message["tool_calls"] = calls
    for name in ("id", "name", "tool_call_id"):
        if isinstance(given.get(name), str):
            message[name] = given[name]
    if given.get("status") == "error":
        message["status"] = "error"
    return message


def usage_of(items: list[Any]) -> TokensUsage | None:
    """What all messages together used; nothing where none says."""
    given = [fields_of(fields_of(item).get("usage_metadata")) for item in items]
    found = [usage for item in given if (usage := read_usage(item or None)) is not None]
    return sum(found[1:], found[0]) if found else None


def _content(content: Any) -> Any:
    """Text stays text; of blocks those that are not tool calls stay, a lone text block becomes its text."""
    given = items_of(content)
    if given is None:
        return content
    blocks = [block for block in given if fields_of(block).get("type") not in _CALL_BLOCKS]
    match blocks:
        case []:
            return None
        case [{"type": "text", "text": str(text)}]:
            return text
        case _:
            return blocks


def _calls(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls, those with broken arguments included: the agent made them."""
    named = [items_of(given.get(name)) or [] for name in ("tool_calls", "invalid_tool_calls")]
    return [_call(fields_of(call)) for calls in named for call in calls]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if "function" in call:
        return call
    return {
        "id": str(call.get("id") or ""),
        "type": "function",
        "function": {"name": str(call.get("name") or ""), "arguments": call.get("args")},
    }
