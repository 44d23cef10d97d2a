"""Messages in OpenAI's shape, lenient in what they accept.

The lowest layer: everything else uses these types. Other shapes (content parts with inline tool
calls, tool arguments as objects) are brought to OpenAI's shape once, on the way in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from .base.json_text import json_text


class ContentBlock(BaseModel):
    """One part of a multi-part content; unknown kinds keep their fields."""

    model_config = ConfigDict(extra="allow")

    type: str = "text"
    text: str | None = None


class FunctionCall(BaseModel):
    """The function a tool call names, its arguments as JSON text."""

    model_config = ConfigDict(extra="allow")

    name: str
    arguments: str = "{}"

    @field_validator("arguments", mode="before")
    @classmethod
    def _as_json_text(cls, value: object) -> object:
        if value is None or value == "":
            return "{}"
        return value if isinstance(value, str) else json_text(value)


class ToolCall(BaseModel):
    """A call the agent made to one of its tools."""

    model_config = ConfigDict(extra="allow")

    id: str = ""
    type: str = "function"
    function: FunctionCall

    @model_validator(mode="before")
    @classmethod
    def _from_other_shapes(cls, value: object) -> object:
        """Accept ``{name, args}`` and ``{toolName, args, toolCallId}`` beside OpenAI's shape."""
        if not isinstance(value, Mapping) or "function" in value:
            return cast(object, value)
        fields = dict(cast(Mapping[str, Any], value))
        name = fields.pop("toolName", None) or fields.pop("name", None)
        if not isinstance(name, str):
            return fields
        names = ("arguments", "args", "toolArguments", "input")
        arguments = next((fields.pop(key) for key in names if key in fields), None)
        call_id = fields.pop("toolCallId", None) or fields.pop("id", None) or ""
        return {"id": str(call_id), "function": {"name": name, "arguments": arguments}}

    @property
    def name(self) -> str:
        return self.function.name

    def arguments(self) -> Any:
        """The parsed arguments; ``ValueError`` when the agent wrote something that is not JSON."""
        try:
            return orjson.loads(self.function.arguments)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"arguments of {self.name} are not valid JSON: {error}") from None


class TokensUsage(BaseModel):
    """Tokens one invocation used. A missing total is the sum of its parts."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0

    @model_validator(mode="before")
    @classmethod
    def _from_other_names(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = cast(Mapping[str, Any], value)
        read = {
            "input_tokens": _first(fields, "input_tokens", "prompt_tokens", "inputTokens", "input"),
            "output_tokens": _first(fields, "output_tokens", "completion_tokens", "outputTokens", "output"),
            "total_tokens": _first(fields, "total_tokens", "totalTokens", "total"),
        }
        if read["total_tokens"] is None:
            read["total_tokens"] = (read["input_tokens"] or 0) + (read["output_tokens"] or 0)
        return {key: number or 0 for key, number in read.items()}

    def __add__(self, other: TokensUsage) -> TokensUsage:
        return TokensUsage.model_construct(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
        )


class Message(BaseModel):
    """One chat message. Unknown fields are kept as they came."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[ContentBlock] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_content_parts(cls, value: object) -> object:
        if isinstance(value, Mapping) and "contentParts" in value:
            return _read_content_parts(dict(cast(Mapping[str, Any], value)))
        return cast(object, value)

    @field_validator("content", mode="before")
    @classmethod
    def _blocks_from_strings(cls, value: object) -> object:
        """A list may hold plain strings beside blocks; a lone block stands for a list of one."""
        if isinstance(value, Mapping):
            return [cast(object, value)]
        if isinstance(value, list):
            items = cast(list[object], value)
            return [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]
        return value

    @property
    def text(self) -> str:
        return text_of(self)

    def to_json(self) -> dict[str, Any]:
        """The message as it goes over the wire: OpenAI's names, nothing that is not set."""
        return self.model_dump(exclude_none=True)


def text_of(message: Message | str | Iterable[ContentBlock] | None) -> str:
    """The text of a message or of its content; text blocks are joined by line breaks."""
    content = message.content if isinstance(message, Message) else message
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if block.text is not None and block.type in _TEXT_BLOCKS)


def tool_calls_of(messages: Iterable[Message]) -> list[ToolCall]:
    """Every tool call an assistant made in these messages, in order."""
    return [call for message in messages if message.role == "assistant" for call in message.tool_calls or ()]


_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text", "refusal"})


def _first(fields: Mapping[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _read_content_parts(fields: dict[str, Any]) -> dict[str, Any]:
    """Turn content parts into content and tool calls; the parts themselves stay readable by path."""
    blocks: list[dict[str, Any]] = []
    calls: list[Any] = list(fields.get("tool_calls") or [])
    # A message that was read before and stored has its calls in both places.
    known = [ToolCall.model_validate(call) for call in calls]
    for part in _parts(fields["contentParts"]):
        kind = part.get("type")
        if kind == "tool_call":
            if not known or ToolCall.model_validate(part) not in known:
                calls.append(part)
        elif kind == "tool_result":
            result = part.get("result")
            text = result if isinstance(result, str) else json_text(result)
            fields.setdefault("tool_call_id", part.get("toolCallId"))
            blocks.append({"type": "text" if fields.get("role") == "tool" else "tool_result", "text": text})
        else:
            blocks.append(part)
    if any(block.get("text") is not None for block in blocks) or not fields.get("content"):
        fields["content"] = blocks or fields.get("content")
    if calls:
        fields["tool_calls"] = calls
    return fields


def _parts(value: object) -> list[dict[str, Any]]:
    items: list[object] = cast(list[object], value) if isinstance(value, list) else []
    texts = [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]
    return [dict(cast(Mapping[str, Any], item)) for item in texts if isinstance(item, Mapping)]


def text_for_model(message: Message) -> str:
    """Its text; tool calls are written as text, for the tools cannot be offered here."""
    text = text_of(message)
    if message.role == "tool":
        return f"[result of {message.name or message.tool_call_id or 'a tool'}] {text}"
    calls = [f"[called {call.name} with {call.function.arguments}]" for call in message.tool_calls or ()]
    return "\n".join([text, *calls] if text else calls)


def as_text(value: Any) -> str | None:
    """The text of a value: strings, messages and plain numbers have one, containers do not."""
    if isinstance(value, str):
        return value
    if isinstance(value, Message):
        return text_of(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return None
