"""What the readers of all formats share: from items that hold messages to a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ..base.json_text import json_kind
from ..base.paths import fields_of, items_of
from ..messages import UnreadableItem, as_fields, read_messages, read_usage
from .conversation import ConversationBuilder, RecordedConversation
from .times import time_in

Fields = dict[str, Any]

_USAGES = ("usage", "usage_metadata", "usageMetadata", "tokensUsage", "token_usage", "tokenUsage")
_LATENCIES = ("latencyMs", "latency_ms", "durationMs", "duration_ms")


class UnreadableConversation(ValueError):
    """A conversation that cannot be read; the words say why."""


def first_of(fields: Mapping[str, Any], *names: str) -> Any:
    """What stands under the first of these names that holds something."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def text_under(fields: Mapping[str, Any], *names: str) -> str | None:
    """A text, or a number as text, under one of these names."""
    value = first_of(fields, *names)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def build(items: Iterable[Any]) -> ConversationBuilder:
    """The turns of a list of items in any shape. ``UnreadableItem`` says which cannot be read."""
    builder = ConversationBuilder()
    for place, item in enumerate(items, 1):
        add_item(builder, item, place)
    return builder


def add_item(builder: ConversationBuilder, item: Any, place: int) -> None:
    """Add the messages of one item, with its time and what it used."""
    try:
        messages = read_messages([item])
    except UnreadableItem as error:
        raise UnreadableItem(place, error.problem, error.role) from None
    fields = as_fields(item) or {}
    usage, problem = read_usage(_usage_in(fields))
    at, latency = _time_of(fields), latency_in(fields)
    for number, message in enumerate(messages):
        is_first = number == 0
        builder.add(
            message, at=at, usage=usage if is_first else None, latency_ms=latency if is_first else None
        )
    if problem and builder.turns:
        builder.turns[-1].usage_missing = problem


def _usage_in(fields: Mapping[str, Any]) -> Any:
    """What a message says it used; LangChain says it in the data of the response, too."""
    return first_of(fields, *_USAGES) or first_of(fields_of(fields.get("response_metadata")), *_USAGES)


def _time_of(fields: Mapping[str, Any]) -> datetime | None:
    inner = (fields, fields_of(fields.get("metadata")), fields_of(fields.get("additional_kwargs")))
    return next((at for one in inner if (at := time_in(one)) is not None), None)


def latency_in(fields: Mapping[str, Any]) -> float | None:
    """How long an answer took, where it is said in milliseconds."""
    value = first_of(fields, *_LATENCIES)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 else None


def add_usage(builder: ConversationBuilder, value: Any) -> None:
    """Count what stands beside the messages for the last turn, where the messages do not say it."""
    if value is None or not builder.turns or any(turn.tokens_usage for turn in builder.turns):
        return
    usage, problem = read_usage(value)
    builder.turns[-1].tokens_usage = usage
    builder.turns[-1].usage_missing = problem


def add_latency(builder: ConversationBuilder, milliseconds: float | None) -> None:
    """Count a time that stands beside the messages for the last turn, where they do not say it."""
    if milliseconds is not None and builder.turns and builder.turns[-1].latency_ms is None:
        builder.turns[-1].latency_ms = milliseconds


def conversation_of(builder: ConversationBuilder, conversation_id: str | None) -> RecordedConversation:
    if not builder.turns:
        raise UnreadableConversation("has no message of the user, so nothing was asked of the agent")
    return RecordedConversation(id=conversation_id or "", turns=builder.turns, seeds=builder.seeds)


def tool_schemas(value: Any) -> list[Fields]:
    """The tools an agent had, in OpenAI's shape, whoever described them."""
    declared: list[Fields] = []
    for item in items_of(value) or ():
        tool = fields_of(item)
        inner = first_of(tool, "functionDeclarations", "function_declarations")
        declared += [_schema(fields_of(one)) for one in items_of(inner) or ()] if inner else [_schema(tool)]
    return [tool for tool in declared if tool]


def _schema(tool: Fields) -> Fields:
    if fields_of(tool.get("function")) or not isinstance(tool.get("name"), str):
        return tool
    names = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
    parameters = first_of(tool, *names)
    function = {"name": tool["name"], "description": tool.get("description"), "parameters": parameters}
    return {
        "type": "function",
        "function": {name: item for name, item in function.items() if item is not None},
    }


def list_under(fields: Mapping[str, Any], name: str) -> list[Any]:
    """The list under a name; what is there and is none cannot be read."""
    value = fields.get(name)
    items = items_of(value)
    if items is None:
        raise UnreadableConversation(f'"{name}" is a JSON {json_kind(value)}, not a list')
    return items
