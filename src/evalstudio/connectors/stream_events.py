"""What the events of a stream mean: of OpenAI, Anthropic, Gemini, Ollama and Vercel, plain text, own paths.

Every event is read or refused. A stream of a protocol with an end is over only when that end has come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from ..base.json_text import UnclearJson, json_once, json_text
from ..base.paths import MISSING, fields_of, follow, items_of, read_path
from .exchange import reported_error
from .stream_reply import Fields, StreamReply, argument_text

_DONE = "[DONE]"
_END_NAMES = frozenset({"done", "end"})
_KEEP_ALIVE = frozenset({"ping", "heartbeat", "keep-alive", "keepalive"})
_TEXT_KEYS = ("delta", "text", "content", "token", "response")


class EventReader:
    """Adds the events of a stream to the reply. With ``plain`` the data of events is text as it is."""

    def __init__(self, reply: StreamReply, *, plain: bool | None = None) -> None:
        self.reply = reply
        self._plain = plain

    def is_end(self, name: str, data: str) -> bool:
        """Whether an event only says that the stream is over."""
        own = self.reply.paths.end
        return (
            data.strip() == _DONE or name in _END_NAMES or (own is not None and own in (name, data.strip()))
        )

    def event(self, name: str, data: str) -> None:
        """One server-sent event."""
        self.reply.events += 1
        if name == "error":
            raise self.reply.reported(data or "(without a text)")
        if self.is_end(name, data):
            self.reply.end()
        elif name not in _KEEP_ALIVE and data:
            value = self._parsed(data)
            self.reply.add_text(data) if value is MISSING else self.value(value)

    def _parsed(self, data: str) -> Any:
        """The JSON of an event; nothing where the stream is plain text, which its first event tells."""
        try:
            value = json_once(data)
        except orjson.JSONDecodeError:
            if self._plain is None and not data.lstrip().startswith(("{", "[", '"')):
                self._plain = True
            if self._plain:
                return MISSING
            raise self.reply.fault("sent an event that is not JSON", data) from None
        except UnclearJson as error:
            raise self.reply.fault(f"sent {error}", data) from None
        if self._plain is None:
            self._plain = not isinstance(value, dict | list | str)
        if self._plain and (error := reported_error(value)) is not None:
            raise self.reply.reported(error)
        return MISSING if self._plain else value

    def value(self, value: Any) -> None:
        """One event or line as JSON."""
        reply = self.reply
        reply.events += 1
        if isinstance(value, str):
            return reply.add_text(value)
        fields = fields_of(value)
        if not fields:
            raise reply.fault("sent an event that is no object", json_text(value))
        if (error := reported_error(value)) is not None:
            raise reply.reported(error)
        says_something = reply.add_facts(fields)
        read = _by_paths if reply.paths.text else _reader(fields)
        if read is not None:
            return read(reply, fields)
        if not says_something:
            hint = "sent an event whose text was not found (set responsePath to where it is)"
            raise reply.fault(hint, json_text(value))
        return None


def _reader(fields: Fields) -> Callable[[StreamReply, Fields], None] | None:
    """What reads an event of this shape."""
    kind: Any = fields.get("type")
    if "choices" in fields:
        return _openai
    if "candidates" in fields:
        return _gemini
    if isinstance(kind, str):
        if kind.startswith("response."):
            return _responses
        return _anthropic if kind in _ANTHROPIC else _vercel if _is_vercel(kind) else None
    if isinstance(fields.get("done"), bool) and ("message" in fields or "response" in fields):
        return _ollama
    if {"role", "messages", "message"} & fields.keys():
        return _whole
    texts = [name for name in _TEXT_KEYS if isinstance(fields.get(name), str)]
    if len(texts) == 1 and not looks_like_call(fields):
        return lambda reply, event: reply.add_text(event[texts[0]])
    return None


def _by_paths(reply: StreamReply, fields: Fields) -> None:
    paths = reply.paths
    if "choices" in fields:
        _openai_end(reply, fields_of(follow(fields, ("choices", 0))))
    value = follow(fields, read_path(paths.text))
    calls = MISSING if paths.tool_calls is None else follow(fields, read_path(paths.tool_calls))
    if calls not in (MISSING, None):
        reply.add_calls(calls)
    elif looks_like_call(fields):
        hint = "sent an event that looks like a tool call (set toolCallsPath to where it is)"
        raise reply.fault(hint, json_text(fields))
    if isinstance(value, str):
        reply.add_text(value)
    elif value not in (MISSING, None):
        raise reply.fault(f'sent an event with something else than text at "{paths.text}"', json_text(fields))


def _whole(reply: StreamReply, fields: Fields) -> None:
    """Messages that are not in pieces."""
    value: Any = fields if "role" in fields else fields.get("messages", fields.get("message"))
    for item in items_of(value) or [value]:
        reply.add_message({"role": "assistant", "content": item} if isinstance(item, str) else item)


def _openai_end(reply: StreamReply, choice: Fields) -> None:
    reply.expect(f"a finish_reason or {_DONE}")
    if (error := reported_error(choice)) is not None or choice.get("finish_reason") == "error":
        raise reply.reported(error or json_text(choice))
    if choice.get("finish_reason") is not None:
        reply.ended = True
        reply.metadata["finishReason"] = choice["finish_reason"]


def _openai(reply: StreamReply, fields: Fields) -> None:
    reply.expect(f"a finish_reason or {_DONE}")
    for choice in map(fields_of, items_of(fields["choices"]) or ()):
        if choice.get("index", 0) != 0:
            continue
        _openai_end(reply, choice)
        delta = fields_of(choice.get("delta")) or fields_of(choice.get("message"))
        for text in (delta.get("content"), delta.get("refusal"), choice.get("text")):
            reply.add_text(text)
        reply.add_calls(delta.get("tool_calls"))
        if old := fields_of(delta.get("function_call")):
            reply.add_calls([{"index": "function_call", "function": old}])


_ANTHROPIC = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)


def _anthropic(reply: StreamReply, fields: Fields) -> None:
    reply.expect("message_stop")
    kind, key = fields["type"], ("block", fields.get("index"))
    block, delta = fields_of(fields.get("content_block")), fields_of(fields.get("delta"))
    if kind == "message_stop":
        reply.end()
    elif kind == "message_start":
        reply.add_usage(fields_of(fields.get("message")).get("usage"))
    elif kind == "content_block_start" and str(block.get("type")).endswith("tool_use"):
        call = reply.call(key)
        call.id, call.name = str(block.get("id") or ""), str(block.get("name") or "")
        if block.get("input"):
            call.arguments.append(json_text(block["input"]))
    elif kind == "content_block_start":
        reply.add_text(block.get("text"))
    elif delta.get("type") == "text_delta":
        reply.add_text(delta.get("text"))
    elif delta.get("type") == "input_json_delta":
        reply.call(key).arguments.append(str(delta.get("partial_json") or ""))


def _responses(reply: StreamReply, fields: Fields) -> None:
    """OpenAI's Responses API."""
    reply.expect("response.completed")
    kind, item, response = fields["type"], fields_of(fields.get("item")), fields_of(fields.get("response"))
    if kind in ("response.output_text.delta", "response.refusal.delta"):
        reply.add_text(fields.get("delta"))
    elif kind == "response.output_item.done" and str(item.get("type")).endswith("_call"):
        call = reply.call(str(item.get("call_id") or item.get("id")))
        # A tool of the model's own, such as a web search, has no name but its type.
        call.id, call.name = str(item.get("call_id") or ""), str(item.get("name") or item["type"])
        call.arguments.append(argument_text(item.get("arguments", item.get("input"))))
    elif kind in ("response.completed", "response.incomplete"):
        reply.add_usage(response.get("usage"))
        reply.end()
    elif kind in ("response.failed", "response.cancelled"):
        raise reply.reported(reported_error(response) or json_text(fields))


def _gemini(reply: StreamReply, fields: Fields) -> None:
    reply.expect("a finishReason")
    candidate = fields_of(follow(fields, ("candidates", 0)))
    for part in map(fields_of, items_of(follow(candidate, ("content", "parts"))) or ()):
        if call := fields_of(part.get("functionCall")):
            reply.add_call({"name": call.get("name"), "args": call.get("args")})
        elif not part.get("thought"):
            reply.add_text(part.get("text"))
    counts = fields_of(fields.get("usageMetadata"))
    reply.add_counts(counts.get("promptTokenCount"), counts.get("candidatesTokenCount"))
    if candidate.get("finishReason"):
        reply.ended = True
        reply.metadata["finishReason"] = candidate["finishReason"]


def _ollama(reply: StreamReply, fields: Fields) -> None:
    reply.expect('"done": true')
    message = fields_of(fields.get("message"))
    reply.add_text(fields.get("response") or message.get("content"))
    reply.add_calls(message.get("tool_calls"))
    reply.add_counts(fields.get("prompt_eval_count"), fields.get("eval_count"))
    if fields["done"]:
        reply.end()


_VERCEL = frozenset(
    {"start", "start-step", "finish-step", "finish", "abort", "error", "file", "message-metadata"}
)
_VERCEL_PREFIXES = ("text-", "tool-input-", "tool-output-", "reasoning-", "data-", "source-")


def _is_vercel(kind: str) -> bool:
    return kind in _VERCEL or kind.startswith(_VERCEL_PREFIXES)


def _vercel(reply: StreamReply, fields: Fields) -> None:
    """The UI message stream of Vercel's AI SDK."""
    kind = fields["type"]
    reply.expect("a part of the type finish")
    if kind == "text-delta":
        reply.add_text(fields.get("delta", fields.get("textDelta")))
    elif kind == "tool-input-available":
        name, call_id = fields.get("toolName"), fields.get("toolCallId")
        reply.add_call({"toolName": name, "toolCallId": call_id, "args": fields.get("input")})
    elif kind == "tool-output-available":
        reply.add_result(fields.get("toolCallId"), fields.get("output"))
    elif kind in ("error", "abort", "tool-input-error", "tool-output-error"):
        raise reply.reported(str(fields.get("errorText") or json_text(fields)))
    elif kind == "finish":
        reply.ended = True


def data_stream_part(reply: StreamReply, kind: str, value: Any) -> None:
    """A part of the AI SDK's data stream, version 1."""
    reply.events += 1
    reply.expect("a part d")
    fields = fields_of(value)
    if kind == "0":
        reply.add_text(value)
    elif kind == "9":
        reply.add_call(value)
    elif kind == "a":
        reply.add_result(fields.get("toolCallId"), fields.get("result"))
    elif kind == "3":
        raise reply.reported(str(value))
    elif kind == "d":
        reply.ended = True
        counts = fields_of(fields.get("usage"))
        reply.add_counts(counts.get("promptTokens"), counts.get("completionTokens"))


_CALL_KEYS = frozenset(
    {
        "tool_calls",
        "toolCalls",
        "tool_call",
        "toolCall",
        "function_call",
        "functionCall",
        "tool_use",
        "toolUse",
        "toolName",
    }
)
# A tuple: what an agent sends as a type need not be a text, and a set takes no lists.
_CALL_TYPES = ("tool_use", "tool_call", "tool-call", "function_call", "functionCall")
_DEEPEST = 8


def looks_like_call(value: Any, depth: int = 0) -> bool:
    """Whether something seems to be or to hold a tool call."""
    fields = fields_of(value)
    if fields.get("type") in _CALL_TYPES or any(fields[name] for name in _CALL_KEYS & fields.keys()):
        return True
    parts = [*fields.values(), *(items_of(value) or ())]
    return depth < _DEEPEST and any(looks_like_call(part, depth + 1) for part in parts)
