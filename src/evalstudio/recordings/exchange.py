"""What went to a model and what came back: chat messages, Responses items, Anthropic's and Gemini's shapes.

All of them are a request with the messages so far and, often, a response beside it. The messages themselves
are read by ``messages.read_messages``, whatever their shape.
"""

from __future__ import annotations

from typing import Any

from ..base.json_text import json_kind, json_text
from ..base.paths import fields_of, items_of
from ..base.times import milliseconds_between
from .alongside import take_along
from .conversation import RecordedConversation
from .parts import (
    Fields,
    UnreadableConversation,
    add_latency,
    add_usage,
    build,
    conversation_of,
    first_of,
    latency_in,
    text_under,
    tool_schemas,
)
from .times import time_in

_REQUESTS = ("request", "body", "params", "full_request", "fullRequest", "kwargs")
_RESPONSES = ("response", "result", "completion", "full_response", "fullResponse", "reply")
_IDS = (
    "id",
    "custom_id",
    "conversationId",
    "conversation_id",
    "thread_id",
    "threadId",
    "session_id",
    "sessionId",
)


def request_of(fields: Fields) -> Fields:
    """The part of a document that was sent: under a name of its own, or the document itself."""
    inner = (fields_of(fields.get(name)) for name in _REQUESTS)
    return next((one for one in inner if has_messages(one)), fields)


def response_of(fields: Fields) -> Any:
    """The part of a document that came back; the document itself where both stand side by side."""
    value = first_of(fields, *_RESPONSES)
    response = fields_of(value)
    if not response:
        return fields if value is None else value
    for name in ("body", "message"):
        response = fields_of(response.get(name)) or response
    return response


def has_messages(fields: Fields) -> bool:
    """Whether an object says what was asked, in one of the shapes."""
    if any(items_of(fields.get(name)) is not None for name in ("messages", "contents", "input")):
        return True
    return any(isinstance(fields.get(name), str) for name in ("input", "prompt", "contents"))


def read_exchange(fields: Fields) -> RecordedConversation:
    """The conversation of a request, with the response where there is one."""
    request, response = request_of(fields), response_of(fields)
    builder = build([*_instructions(request), *asked(request), *answered(response)])
    answer = fields_of(response)
    add_usage(builder, first_of(answer, "usage", "usageMetadata", "usage_metadata"))
    took = milliseconds_between(time_in(answer, "created_at"), time_in(answer, "completed_at"))
    add_latency(builder, next((one for one in (latency_in(answer), latency_in(fields), took) if one), None))
    conversation = conversation_of(builder, text_under(fields, *_IDS))
    conversation.tools = tool_schemas(first_of(request, "tools", "functions"))
    conversation.started = time_in(fields) or time_in(answer)
    conversation.error = error_in(answer) or error_in(fields)
    model = text_under(answer, "model", "modelVersion") or text_under(request, "model")
    take_along(conversation, fields)
    if model:
        conversation.metadata = {"model": model, **conversation.metadata}
    return conversation


def _instructions(request: Fields) -> list[Any]:
    """The system prompt, where it stands beside the messages."""
    value = first_of(request, "system", "instructions", "systemInstruction", "system_instruction")
    config = fields_of(request.get("config"))
    value = value or first_of(config, "systemInstruction", "system_instruction")
    if not value:
        return []
    parts = items_of(fields_of(value).get("parts"))
    return [{"role": "system", "content": value if parts is None else parts}]


def asked(request: Fields) -> list[Any]:
    """The items of a request, under whatever name."""
    for name in ("messages", "contents", "input", "prompt"):
        value = request.get(name)
        if value is None:
            continue
        items = items_of(value)
        if items is not None:
            return [_spoken(item) for item in items]
        if isinstance(value, str):
            return [{"role": "user", "content": value}]
        raise UnreadableConversation(f'"{name}" is {_kind(value)}, not a list of messages')
    names = "messages, contents, input or prompt"
    raise UnreadableConversation(f"has no messages: none of {names} is there")


def _spoken(item: Any) -> Any:
    """Gemini's contents say nothing of the role where there is only one that can be meant."""
    fields = fields_of(item)
    return {"role": "user", **fields} if "parts" in fields and not fields.get("role") else item


def _kind(value: Any) -> str:
    return "an object" if isinstance(value, dict) else f"a JSON {json_kind(value)}"


def answered(response: Any) -> list[Any]:
    """The items of the answer; none where it stands among the messages already."""
    if isinstance(response, str):
        return [{"role": "assistant", "content": response}]
    if items := items_of(response):
        return items
    fields = fields_of(response)
    if choices := items_of(fields.get("choices")):
        return [first_of(fields_of(choices[0]), "message", "delta")]
    if candidates := items_of(fields.get("candidates")):
        content = fields_of(candidates[0]).get("content")
        return [{"role": "model", **fields_of(content)}] if content else []
    if fields.get("type") == "message" and "content" in fields:
        return [{key: item for key, item in fields.items() if key not in ("usage", "type")}]
    if fields.get("role") is not None and "content" in fields:
        return [fields]
    return _output(fields)


def _output(fields: Fields) -> list[Any]:
    """The output of the Responses API, or the text of the oldest APIs."""
    value = first_of(fields, "output", "completion", "output_text")
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}]
    return items_of(value) or []


def error_in(fields: Fields) -> str | None:
    """Why there is no answer, in the words of the source."""
    error = fields.get("error")
    if not error:
        return None
    message = fields_of(error).get("message")
    return message if isinstance(message, str) else error if isinstance(error, str) else json_text(error)
