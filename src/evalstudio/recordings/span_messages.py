"""What one span says: what went into a model and came out of it, or what a tool took and gave back.

Two families of names are known: OpenTelemetry's GenAI conventions, as attributes and as log events, and
OpenInference's, which writes every field of every message as an attribute of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from ..base.json_text import UnclearJson, json_bytes, json_once, json_text
from ..base.lazy_dataclass import dataclass
from ..base.text import cut
from ..messages import (
    Message,
    TokensUsage,
    UnreadableItem,
    UnreadableMessage,
    as_fields,
    looks_like_message,
    read_messages,
    read_usage,
    text_of,
)
from .flat_messages import UnreadableContent, flattened
from .spans import Span

CAPTURE_HINT = (
    "is content captured there? (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY, or EVENT_ONLY "
    "with logs exported too)"
)
_DETAILS = "gen_ai.client.inference.operation.details"
_OLD_EVENTS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_HISTORY = "pydantic_ai.all_messages"
_LONGEST_ERROR = 500
_PLAIN = frozenset({"role", "parts", "finish_reason"})
Key = tuple[Any, ...]


@dataclass(slots=True)
class Exchange:
    """One call of a model. ``problem`` says what of it cannot be read."""

    span: Span
    system: list[Message] = field(default_factory=list[Message])
    inputs: list[Message] = field(default_factory=list[Message])
    outputs: list[Message] = field(default_factory=list[Message])
    usage: TokensUsage | None = None
    problem: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _keys: list[Key] | None = None

    @property
    def keys(self) -> list[Key]:
        if self._keys is None:
            self._keys = [key_of(message) for message in self.inputs]
        return self._keys


@dataclass(slots=True)
class ToolRun:
    """One execution of a tool."""

    span: Span
    name: str
    arguments: Any = None
    call_id: str = ""
    result: str | None = None

    def call(self, call_id: str) -> Message:
        function = {"name": self.name, "arguments": _argument_text(self.arguments)}
        call = {"id": call_id, "type": "function", "function": function}
        return Message.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})

    def answer(self, call_id: str) -> Message:
        fields: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "name": self.name}
        if self.result is None and self.span.error is not None:
            return Message.model_validate({**fields, "content": error_of(self.span), "status": "error"})
        return Message.model_validate({**fields, "content": self.result or ""})


def _argument_text(arguments: Any) -> str:
    """Arguments as JSON text; a plain text is kept as the one argument that it is."""
    if arguments is None:
        return "{}"
    if isinstance(arguments, str):
        return arguments if _is_object(arguments) else json_text({"input": arguments})
    return json_text(arguments)


def _is_object(arguments: str) -> bool:
    """Whether a text is an object, be it one that says something twice: no check may take that for a text."""
    try:
        return isinstance(json_once(arguments), dict)
    except UnclearJson:
        return True
    except ValueError:
        return False


def key_of(message: Message) -> Key:
    """By what a message is known again in the history of a later call."""
    calls = tuple((call.name, _canonical(call.function.arguments)) for call in message.tool_calls or ())
    return (message.role, text_of(message).strip(), calls)


def _canonical(arguments: str) -> str:
    parsed = _parsed(arguments)
    return arguments if parsed is None else json_text(parsed, sort_keys=True)


def _parsed(text: str) -> Any:
    try:
        return json_once(text)
    except ValueError:
        return None


class MessageReader:
    """Reads the messages of one conversation: what every history repeats is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], list[Message]] = {}

    def __call__(self, items: Iterable[Any], speaker: str) -> list[Message]:
        messages: list[Message] = []
        for place, item in enumerate(items, 1):
            key = (speaker, json_bytes(item))
            if key not in self._known:
                try:
                    self._known[key] = _plain_text(item) or _messages([item], speaker)
                except UnreadableItem as error:
                    raise UnreadableItem(place, error.problem, error.role) from None
            messages += self._known[key]
        return messages


def exchange_of(span: Span, events: Sequence[Span], read: MessageReader) -> Exchange:
    """What a span of a model says, with the log events that belong to it."""
    attributes = _with_events(span, events)
    exchange = Exchange(span, usage=_usage(attributes), attributes=attributes)
    try:
        _read(exchange, attributes, events, read)
    except (UnreadableContent, UnreadableMessage) as error:
        exchange.problem = f'span "{cut(span.name, 60)}": {error}'
        return exchange
    if span.error is None and not exchange.outputs:
        what = "no answer" if exchange.inputs else "no messages"
        exchange.problem = f'span "{cut(span.name, 60)}" carries {what}; {CAPTURE_HINT}'
    return exchange


def history_of(span: Span, read: MessageReader) -> Exchange | None:
    """The messages that the span of a whole run of an agent carries, if any."""
    if _HISTORY not in span.attributes:
        return None
    exchange = Exchange(span)
    try:
        exchange.inputs = read(_json_list(span.attributes, _HISTORY), "user")
        exchange.system = _instructions(span.attributes)
        _split_system(exchange)
    except (UnreadableContent, UnreadableMessage) as error:
        exchange.problem = f'span "{cut(span.name, 60)}": {error}'
    return exchange


def _with_events(span: Span, events: Sequence[Span]) -> dict[str, Any]:
    details = [event.attributes for event in events if event.event == _DETAILS]
    merged: dict[str, Any] = {}
    for attributes in (*details, span.attributes):
        merged |= {name: value for name, value in attributes.items() if value is not None}
    return merged


def _read(
    exchange: Exchange, attributes: Mapping[str, Any], events: Sequence[Span], read: MessageReader
) -> None:
    exchange.system = _instructions(attributes)
    if _INPUT in attributes or _OUTPUT in attributes:
        exchange.inputs = read(_json_list(attributes, _INPUT), "user")
        exchange.outputs = read(_json_list(attributes, _OUTPUT), "assistant")
    elif any(name.startswith(("llm.input_messages.", "llm.output_messages.")) for name in attributes):
        exchange.inputs = read(flattened(attributes, "llm.input_messages."), "user")
        exchange.outputs = read(flattened(attributes, "llm.output_messages."), "assistant")
    elif any(event.event in _OLD_EVENTS or event.event == "gen_ai.choice" for event in events):
        _read_old_events(exchange, events)
    else:
        exchange.inputs = _plain(attributes, "input.value", "user")
        exchange.outputs = _plain(attributes, "output.value", "assistant")
    _split_system(exchange)


def _split_system(exchange: Exchange) -> None:
    system = ("system", "developer")
    exchange.system += [message for message in exchange.inputs if message.role in system]
    exchange.inputs = [message for message in exchange.inputs if message.role not in system]


def _plain_text(item: Any) -> list[Message]:
    """A message of the GenAI conventions that is one text, as most are; for speed alone."""
    match item:
        case {
            "role": "user" | "assistant" as role,
            "parts": [{"type": "text", "content": str(text), **more}],
        } if not more and item.keys() <= _PLAIN and text.strip():
            return [Message(role=role, content=text)]
        case _:
            return []


def _messages(items: Iterable[Any], speaker: str) -> list[Message]:
    """Messages in our shape; a null key is one that is not there."""
    cleaned: list[Any] = []
    for item in items:
        fields = as_fields(item)
        if fields is not None:
            fields = {name: value for name, value in fields.items() if value is not None}
            fields.pop("finish_reason", None)
            fields.setdefault("role", speaker)
        cleaned.append(item if fields is None else fields)
    return [_simplified(message) for message in read_messages(cleaned, speaker=speaker)]


def _simplified(message: Message) -> Message:
    """A message whose only block is text says that text."""
    if isinstance(message.content, list) and len(message.content) == 1:
        (block,) = message.content
        if block.type == "text" and not block.model_extra:
            message.content = block.text
    return message


def _json_list(attributes: Mapping[str, Any], name: str) -> list[Any]:
    """A list that stands in an attribute as such, or as JSON text."""
    value = attributes.get(name)
    if value is None:
        return []
    items = _parsed(value) if isinstance(value, str) else value
    if not isinstance(items, list):
        raise UnreadableContent(
            f"{name} is not a whole JSON list; was it cut off there? (OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT)"
        )
    return cast(list[Any], items)


def _instructions(attributes: Mapping[str, Any]) -> list[Message]:
    parts = _json_list(attributes, "gen_ai.system_instructions")
    texts = [str((as_fields(part) or {"content": part}).get("content", "")) for part in parts]
    return [Message(role="system", content="\n\n".join(texts))] if texts else []


def _plain(attributes: Mapping[str, Any], name: str, speaker: str) -> list[Message]:
    """What a span says as one text, or as JSON that holds messages."""
    value = attributes.get(name)
    if not isinstance(value, str) or not value:
        return []
    parsed = _parsed(value) if value.lstrip()[:1] in ("{", "[") else None
    fields = as_fields(parsed)
    items: Any = fields.get("messages") if fields is not None else parsed
    if isinstance(items, list):
        return _messages(cast(list[Any], items), speaker)
    return [Message(role=speaker, content=value)]


def _read_old_events(exchange: Exchange, events: Sequence[Span]) -> None:
    """One log event per message, as the conventions had it first."""
    for event in sorted(events, key=lambda one: one.start):
        body = as_fields(event.body) or {}
        if event.event in _OLD_EVENTS:
            exchange.inputs += _messages([{"role": _OLD_EVENTS[event.event], **body}], "user")
        elif event.event == "gen_ai.choice":
            exchange.outputs += _messages([as_fields(body.get("message")) or {}], "assistant")


_TOKENS = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ),
    "total_tokens": ("llm.token_count.total",),
}


def _usage(attributes: Mapping[str, Any]) -> TokensUsage | None:
    counts = {
        ours: next((attributes[name] for name in names if attributes.get(name) is not None), None)
        for ours, names in _TOKENS.items()
    }
    return read_usage({name: count for name, count in counts.items() if count is not None} or None)[0]


def tool_run_of(span: Span) -> ToolRun:
    """What a span of a tool says."""
    attributes = span.attributes
    message = _tool_message(attributes.get("output.value"))
    result = _first(attributes, "gen_ai.tool.call.result", "tool_response", "output.value")
    if message is not None:
        result = text_of(message)
    call_id = _first(attributes, "gen_ai.tool.call.id", "tool_call.id", "tool.id")
    return ToolRun(
        span,
        str(_first(attributes, "gen_ai.tool.name", "tool.name", "tool_call.function.name") or span.name),
        _first(attributes, "gen_ai.tool.call.arguments", "tool_arguments", "tool_call.function.arguments")
        or _first(attributes, "input.value", "tool.parameters"),
        str(call_id or (message.tool_call_id if message else None) or ""),
        result if isinstance(result, str) or result is None else json_text(result),
    )


def _first(attributes: Mapping[str, Any], *names: str) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _tool_message(value: Any) -> Message | None:
    """The message that LangChain's tools give back, where the output is one."""
    parsed = as_fields(_parsed(value)) if isinstance(value, str) and value[:1] == "{" else None
    if parsed is None or not looks_like_message(parsed):
        return None
    try:
        messages = read_messages([parsed])
    except UnreadableMessage:
        return None
    return messages[0] if len(messages) == 1 and messages[0].role == "tool" else None


def error_of(span: Span) -> str:
    """What went wrong in a span, in a line: the exception where there is one, never its traceback."""
    for event in span.events:
        fields: dict[str, Any] = event.get("attributes") or {}
        if event.get("name") == "exception" and fields.get("exception.type"):
            message = str(fields.get("exception.message", ""))
            return cut(f"{fields['exception.type']}: {message}", _LONGEST_ERROR)
    text = (span.error or "").partition("Traceback (most recent call last)")[0].strip()
    text = "" if text == "error" else text
    return cut(text or str(span.attributes.get("error.type") or "it failed"), _LONGEST_ERROR)


def tools_of(calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tools that the model was offered in these calls, each once."""
    tools: dict[str, dict[str, Any]] = {}
    for attributes in calls:
        for tool in _definitions(attributes):
            function = as_fields(tool.get("function")) or tool
            tools.setdefault(str(function.get("name", "")), tool)
    return list(tools.values())


def _definitions(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = attributes.get("gen_ai.tool.definitions")
    items: Any = _parsed(listed) if isinstance(listed, str) else listed
    if not isinstance(items, list):
        named = (
            name for name in attributes if name.startswith("llm.tools.") and name.endswith("json_schema")
        )
        items = [_parsed(str(attributes[name])) for name in sorted(named, key=_number_in)]
    return [tool for tool in map(as_fields, cast(list[Any], items)) if tool]


def _number_in(name: str) -> int:
    number = name.split(".")[2]
    return int(number) if number.isdecimal() else 0
