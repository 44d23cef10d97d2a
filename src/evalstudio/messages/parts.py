"""The parts of a message as providers and frameworks write them: a tool call, a tool's result, a block.

What looks like a call or a result and cannot be read raises ``UnreadableMessage``, which quotes it: a call
that nobody sees would satisfy every check that forbids one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from pydantic import BaseModel

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.text import excerpt

Fields = dict[str, Any]

_LONGEST_QUOTE = 160
# A part or a message that has one of these has a call under it.
CALL_KEYS = frozenset(
    {
        "functionCall",
        "function_call",
        "toolUse",
        "tool_use",
        "toolCall",
        "tool_call",
        "toolInvocation",
        "tool_invocation",
        "executableCode",
        "executable_code",
    }
)
_RESULT_KEYS = frozenset(
    {
        "functionResponse",
        "function_response",
        "toolResult",
        "tool_result",
        "toolResponse",
        "tool_response",
        "codeExecutionResult",
        "code_execution_result",
    }
)
_NAMES = ("toolName", "tool_name", "name", "functionName", "function_name", "tool", "function")
_ARGUMENTS = (
    "arguments",
    "args",
    "input",
    "parameters",
    "params",
    "toolArguments",
    "tool_input",
    "toolInput",
)
_IDS = ("call_id", "callId", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "id")
_OUTPUTS = ("output", "outputs", "result", "results")
_RESULT_TEXTS = ("content", *_OUTPUTS, "response", "text", "errorText", "error")
# Types of the Responses API whose name is the tool's own.
_NAMELESS_CALL = re.compile(r"(.+)_call\Z")
_NAMED_CALLS = frozenset({"function_call", "tool_call", "custom_tool_call", "mcp_call", "server_tool_call"})
_CALL_TYPE = re.compile(
    r"(?i)(?:.*[_-])?call\Z|tool-|.*tool[_-]?(?:call|use|invocation)|function\Z|(?:dynamic-)?tool\Z"
    r"|mcp_approval_request\Z"
)
_RESULT_TYPE = re.compile(r"(?i)(?:.*[_-])?(?:tool|function|call)[_-]?(?:result|output|response|error)\Z")
# They name a tool and call none.
_NO_CALLS = frozenset(
    {"mcp_list_tools", "tool_reference", "tool-approval-request", "tool-approval-response", "tool_search"}
)
# What a model thought, and what it was given to read.
_NOT_SAID = frozenset(
    {
        "thinking",
        "redacted_thinking",
        "reasoning",
        "reasoning_text",
        "reasoning_content",
        "summary_text",
        "document",
        "file",
        "search_result",
    }
)
_WRITTEN_AS_CONTENT = frozenset({"text", "reasoning", "thinking"})
_LOOKS_LIKE_CALL = re.compile(r"(?i)(?:tool|function)_?(?:call|use|invocation|request)s?\Z")


class UnreadableMessage(ValueError):
    """A message, a call or a result in a shape that is not known."""


@dataclass(slots=True)
class Call:
    """A tool call in OpenAI's shape, with its result where the same part holds both."""

    fields: Fields
    result: Result | None = None


@dataclass(slots=True)
class Result:
    """What a tool gave back, as a message in OpenAI's shape."""

    fields: Fields


@dataclass(slots=True)
class Block:
    """Text, an image, a thought: a part that stays in the content."""

    fields: Fields


def quoted(value: object) -> str:
    """The beginning of a value, for an error."""
    return excerpt(json_text(value), _LONGEST_QUOTE)


def as_fields(value: object) -> Fields | None:
    """The fields of an object, or of another library's model; nothing where it is something else."""
    # A dict is asked for first: that it is a mapping too takes ten times as long to find out.
    if isinstance(value, dict | Mapping):
        return dict(cast(Mapping[str, Any], value))
    return value.model_dump() if isinstance(value, BaseModel) else None


def type_of(fields: Mapping[str, Any]) -> str:
    """The type a part or an item says it is; empty where it says none."""
    kind = fields.get("type")
    return kind if isinstance(kind, str) else ""


Part = Call | Result | Block


def read_part(fields: Fields, *, loose: bool = False) -> list[Part]:
    """What one part of a content holds. ``loose`` takes ``{name, args}`` without a type for a call too."""
    wrapped = _wrapped(fields)
    return wrapped if wrapped is not None else [_plain_part(fields, type_of(fields), loose)]


def _plain_part(fields: Fields, kind: str, loose: bool) -> Part:
    if kind in _NO_CALLS:
        return Block(fields)
    if _is_interface_part(fields, kind):
        return call_with_result(fields, kind)
    if _RESULT_TYPE.match(kind):
        return Result(read_result(fields))
    if (
        _CALL_TYPE.match(kind)
        or (loose and not kind and is_call(fields))
        or fields.get("toolName") is not None
    ):
        return call_with_result(fields, kind)
    _refuse_hidden_calls(fields)
    return Block(_block(fields, kind))


def is_call(fields: Mapping[str, Any]) -> bool:
    """Whether an object without a type is a call: it names a tool and has arguments for it."""
    names = any(isinstance(fields.get(name), str) for name in _NAMES)
    return names and any(name in fields for name in _ARGUMENTS)


def is_marked(fields: Mapping[str, Any]) -> bool:
    """Whether an object says itself that it is a call or a result, by its type or its keys."""
    kind = type_of(fields)
    typed = _CALL_TYPE.match(kind) or _RESULT_TYPE.match(kind)
    keys = ("toolName", *CALL_KEYS, *_RESULT_KEYS)
    return bool(typed) or any(fields.get(key) is not None for key in keys)


def is_result(fields: Mapping[str, Any]) -> bool:
    """Whether an object says by its type that it is what a tool gave back."""
    return bool(_RESULT_TYPE.match(type_of(fields)))


def hides_call(fields: Mapping[str, Any], read: Collection[str] = ()) -> str | None:
    """The key of something that looks like calls and is none of those that were read."""
    keys = (key for key, item in fields.items() if isinstance(item, list | Mapping) and item)
    return next((key for key in keys if key not in read and _LOOKS_LIKE_CALL.search(str(key))), None)


def is_said(kind: str) -> bool:
    """Whether the text of a block of this type is part of what was said, and not thought or looked up."""
    return kind not in _NOT_SAID and not _RESULT_TYPE.match(kind)


def _wrapped(fields: Fields) -> list[Part] | None:
    """Gemini, Bedrock and older interfaces put the call under a key of the part."""
    keys = [key for key in fields if key in CALL_KEYS | _RESULT_KEYS and fields[key] is not None]
    if not keys:
        return None
    parts: list[Part] = []
    rest = {key: item for key, item in fields.items() if key not in keys and item is not None}
    if isinstance(rest.get("text"), str) and rest["text"]:
        parts.append(Block(_block(rest, type_of(rest))))
    for key in keys:
        inner = as_fields(fields[key])
        if inner is None:
            raise UnreadableMessage(f'what is under "{key}" cannot be read as a tool call: {quoted(fields)}')
        parts.append(_wrapped_part(key, inner, fields))
    return parts


def _wrapped_part(key: str, inner: Fields, fields: Fields) -> Call | Result:
    if key in _RESULT_KEYS:
        return Result(read_result(_named_as_code(inner, key)))
    return call_with_result(_named_as_code(inner, key), "", fields)


def _named_as_code(inner: Fields, key: str) -> Fields:
    """Code that the model runs at its provider is a call of the tool for that."""
    if key.lower().startswith(("executable", "code")):
        return {"name": "code_execution", "input": inner, "output": inner.get("output")}
    return inner


def _is_interface_part(fields: Fields, kind: str) -> bool:
    """Vercel's parts are typed after the tool: ``tool-search``."""
    return kind.startswith("tool-") and "toolName" not in fields and ("state" in fields or "input" in fields)


def call_with_result(fields: Fields, kind: str, whole: Fields | None = None) -> Call:
    """A call, and its result where both stand in one object."""
    call = read_call(fields, kind, whole)
    named = (*_OUTPUTS, "errorText")
    output = next((name for name in named if fields.get(name) is not None), None)
    if output is None:
        return Call(call)
    result = {output: fields[output], "id": call["id"], "name": call["function"]["name"]}
    return Call(call, Result(read_result(result)))


def read_call(fields: Fields, kind: str = "", whole: Fields | None = None) -> Fields:
    """A tool call in OpenAI's shape, whoever wrote it; ``whole`` is what an error quotes."""
    inner = as_fields(fields.get("function")) or as_fields(fields.get("custom"))
    if inner:
        # OpenAI's own shape; what else it has is kept.
        others = {key: item for key, item in fields.items() if item is not None and key != "custom"}
        rest = {key: item for key, item in inner.items() if key not in _ARGUMENTS}
        function = rest | {"name": _tool_name(inner, "", whole or fields), "arguments": _arguments(inner)}
        return {**others, "id": _id(fields), "function": function}
    name = _tool_name(fields, kind, whole or fields)
    return {
        "id": _id(fields),
        "type": "function",
        "function": {"name": name, "arguments": _arguments(fields)},
    }


def _tool_name(fields: Fields, kind: str, whole: Fields) -> str:
    name = next((fields[key] for key in _NAMES if isinstance(fields.get(key), str) and fields[key]), None)
    if name is None and _is_interface_part(fields, kind):
        name = kind.removeprefix("tool-")
    if name is None and kind not in _NAMED_CALLS and (match := _NAMELESS_CALL.match(kind)):
        name = match[1]
    if name is None:
        raise UnreadableMessage(f"a tool call without the name of its tool: {quoted(whole)}")
    return name


def _arguments(fields: Fields) -> Any:
    present = [fields[name] for name in _ARGUMENTS if fields.get(name) is not None]
    if present:
        return present[0]
    kind = type_of(fields)
    if kind in _NAMED_CALLS or not _NAMELESS_CALL.match(kind):
        return None
    left_out = {"type", "status", *_IDS, *_OUTPUTS}
    return {key: item for key, item in fields.items() if key not in left_out}


def _id(fields: Fields) -> str:
    return next((id_text(fields[name]) or "" for name in _IDS if fields.get(name) is not None), "")


def id_text(value: Any) -> Any:
    """Some agents number their messages and calls."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def read_result(fields: Fields) -> Fields:
    """A tool's result as a message."""
    message: Fields = {"role": "tool", "content": _result_content(fields)}
    if call_id := _id(fields):
        message["tool_call_id"] = call_id
    if name := next((fields[key] for key in _NAMES if isinstance(fields.get(key), str)), None):
        message["name"] = name
    if fields.get("is_error") is True or fields.get("isError") is True or "errorText" in fields:
        message["status"] = "error"
    return message


def _result_content(fields: Fields) -> str | list[Any]:
    value = next((fields[name] for name in _RESULT_TEXTS if fields.get(name) is not None), "")
    inner = as_fields(value)
    if inner is not None and "value" in inner and set(inner) <= {"type", "value"}:
        value = inner["value"]
    return tool_text(value)


def tool_text(value: Any) -> str | list[Any]:
    """What a tool gave back: its text, its blocks where all of them are text, else JSON."""
    if isinstance(value, str):
        return value
    items = cast(list[Any], value) if isinstance(value, list) else []
    if items and all(
        isinstance(item, dict) and {"type", "text"} == cast(Fields, item).keys() for item in items
    ):
        return items
    return json_text(cast(object, value))


def _refuse_hidden_calls(fields: Fields) -> None:
    nested = next((key for key in ("role", "parts", "messages") if fields.get(key) is not None), None)
    if key := hides_call(fields) or nested:
        raise UnreadableMessage(f'a part with "{key}" cannot be read: {quoted(fields)}')


def _block(fields: Fields, kind: str) -> Fields:
    """A block as it is kept; what a provider writes under other names than ``text`` is its text."""
    if fields.get("thought") is True:
        return {**fields, "type": "thinking"}
    if fields.get("type", "") is None:
        fields = {key: item for key, item in fields.items() if key != "type"}
    text, content = fields.get("text"), fields.get("content")
    if kind == "refusal" and text is None:
        return {**fields, "text": fields.get("refusal")}
    if text is None and isinstance(fields.get("transcript"), str):
        return {**fields, "text": fields["transcript"]}
    if text is None and isinstance(content, str) and kind in _WRITTEN_AS_CONTENT:
        # OpenTelemetry's parts.
        return {key: item for key, item in fields.items() if key != "content"} | {"text": content}
    if isinstance(text, dict) and isinstance(cast(Fields, text).get("value"), str):
        return {**fields, "text": text["value"]}
    return fields
