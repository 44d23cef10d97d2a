"""``http``: any agent behind an HTTP endpoint, by a request template and paths into its answer."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import orjson
from pydantic import Field, model_validator

from ..base.json_text import json_text
from ..base.paths import MISSING, PathText, fields_of, follow, items_of, read_path, strings_in
from ..base.placeholders import is_name, names_in
from ..base.text import cut
from ..messages import as_said, looks_like_message
from .connection import RemoteConfig
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, define_connector
from .replies import check_answer
from .templates import PLACEHOLDERS, Fill, compile_template

if TYPE_CHECKING:
    from .exchange import HttpAnswer

_DEFAULT_BODY = {"messages": "{{messages}}", "threadId": "{{threadId}}"}


class HttpConfig(RemoteConfig):
    """What is sent and where the answer is found."""

    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    path: str = Field(default="", description="Appended to the base URL")
    request_template: Any = Field(
        default=None,
        description="The body as JSON, with {{message}}, {{messages}}, {{newMessages}}, {{threadId}}, "
        "{{sessionId}}, {{runId}}, {{turn}}, the case's values and ${VARIABLES} filled in; with GET an "
        "object that becomes the query",
    )
    response_format: Literal["auto", "json", "text", "ndjson", "sse", "sse-text"] = Field(
        default="auto",
        description="What the answer is; auto goes by its Content-Type. In sse-text the data of events is "
        "the text, whatever it looks like",
    )
    response_path: PathText = Field(
        default="",
        description="Where the reply is: a text, a message or a list of messages; in a stream, where an "
        "event has its next piece of text",
    )
    tool_calls_path: PathText | None = Field(
        default=None, description="Where the tool calls are, in an answer or in an event of a stream"
    )
    usage_path: PathText = Field(default="usage", description="Where the token usage is")
    thread_id_path: PathText = Field(default="threadId", description="Where the agent's thread id is")
    stream_end: str | None = Field(
        default=None,
        min_length=1,
        description="Name or data of the event that ends a stream; one that ends without it broke off",
    )

    @model_validator(mode="after")
    def _is_usable(self) -> HttpConfig:
        if self.method == "GET" and not isinstance(self.request_template, dict):
            raise ValueError("GET needs a requestTemplate, an object that becomes the query")
        assert self.fill_body
        return self

    @cached_property
    def case_names(self) -> list[str]:
        """The placeholders of the template that only a case can fill."""
        names = [name for text in strings_in(self.request_template) for name in names_in(text)]
        return [name for name in dict.fromkeys(names) if is_name(name) and name not in PLACEHOLDERS]

    @cached_property
    def fill_body(self) -> Fill:
        """The template as a function, made once."""
        return compile_template(_DEFAULT_BODY if self.request_template is None else self.request_template)


_ACCEPTED = {
    "auto": "application/json, */*;q=0.5",
    "json": "application/json",
    "text": "text/plain",
    "ndjson": "application/x-ndjson",
    "sse": "text/event-stream",
    "sse-text": "text/event-stream",
}
_JSON_LINES = frozenset(
    f"application/{name}"
    for name in (
        "x-ndjson",
        "ndjson",
        "jsonl",
        "x-jsonl",
        "jsonlines",
        "x-jsonlines",
        "json-seq",
        "stream+json",
    )
)


@define_connector(type="http", label="HTTP Endpoint", needs_address=True)
async def http_agent(ctx: ConnectorContext[HttpConfig]) -> ConnectorResponse:
    """Sends each message to an HTTP endpoint as JSON and reads the reply from its answer."""
    from .exchange import open_exchange

    config = ctx.config
    body = config.fill_body(ctx)
    query = None
    if config.method == "GET":
        query = {key: item if isinstance(item, str) else json_text(item) for key, item in body.items()}
    accept = _ACCEPTED[config.response_format]
    async with open_exchange(
        ctx, config.path, body, method=config.method, query=query, accept=accept
    ) as answer:
        return await _response(config, answer)


async def _response(config: HttpConfig, answer: HttpAnswer) -> ConnectorResponse:
    form = _form(config, answer)
    if form == "json":
        return _read(config, answer.json(await answer.read()))
    if form == "text":
        return await _read_text(config, answer)
    from .streams import StreamPaths, read_stream

    paths = StreamPaths(
        config.response_path,
        config.tool_calls_path,
        config.usage_path,
        config.thread_id_path,
        config.stream_end,
    )
    return await read_stream(answer, cast(Any, form), paths)


def _form(config: HttpConfig, answer: HttpAnswer) -> str:
    """How the answer is read: as configured, else by its content type."""
    if config.response_format != "auto":
        return config.response_format
    if "x-vercel-ai-data-stream" in answer.headers:
        return "data-stream"
    kind = answer.content_type
    if kind == "text/event-stream":
        return "sse"
    if kind in _JSON_LINES:
        return "ndjson"
    return "text" if kind in ("text/plain", "text/markdown") else "json"


async def _read_text(config: HttpConfig, answer: HttpAnswer) -> ConnectorResponse:
    """Text is the reply; JSON that is only called text is read as JSON, unless text is configured."""
    raw = bytearray()
    async for piece in answer.pieces():
        raw += piece
        if piece.strip():
            answer.note_first_token()
    if config.response_format == "auto" and raw.lstrip().startswith((b"{", b"[")):
        with suppress(orjson.JSONDecodeError):
            return _read(config, answer.parsed(bytes(raw)))
    text = answer.text(bytes(raw))
    return ConnectorResponse([{"role": "assistant", "content": text}])


def _read(config: HttpConfig, answer: Any) -> ConnectorResponse:
    """The response in an answer."""
    from .exchange import reported_error

    check_answer(answer)
    if (error := reported_error(answer)) is not None:
        raise ConnectorError(f"the agent answered with an error: {error}")
    usage = follow(answer, read_path(config.usage_path))
    thread = follow(answer, read_path(config.thread_id_path))
    return ConnectorResponse(
        messages=_messages(config, answer),
        tokens_usage=None if usage is MISSING else usage,
        thread_id=str(thread) if isinstance(thread, str | int) else None,
    )


def _messages(config: HttpConfig, answer: Any) -> list[Any]:
    path = read_path(config.response_path)
    calls = _calls(config, answer)
    reply = follow(answer, path) if path else _usual(answer)
    if reply is MISSING or reply is None:
        if not calls:
            problem = (
                f'nothing is at "{config.response_path}"'
                if path
                else "set responsePath to where the reply is"
            )
            raise ConnectorError(f"the answer has the wrong shape: {problem} in {_beginning(answer)}")
        reply = {"role": "assistant"}
    messages = _as_messages(reply)
    if messages is None:
        where = f'at "{config.response_path}"' if path else "in the answer"
        raise ConnectorError(f"what is {where} is no text, message or list of messages: {_beginning(reply)}")
    return _with_calls(messages, calls) if calls else messages


def _calls(config: HttpConfig, answer: Any) -> list[Any]:
    path = config.tool_calls_path
    value = None if path is None else follow(answer, read_path(path))
    if value is MISSING or value is None:
        return []
    calls = items_of(value)
    if calls is None:
        raise ConnectorError(f'what is at "{path}" is no list of tool calls: {_beginning(value)}')
    return calls


def _usual(answer: Any) -> Any:
    """The reply in an answer nobody gave a path for: itself, its ``messages`` or its ``message``."""
    fields = fields_of(answer)
    if not isinstance(answer, dict) or "role" in fields:
        return cast(Any, answer)
    return next((fields[key] for key in ("messages", "message") if fields.get(key) is not None), MISSING)


def _as_messages(reply: Any) -> list[Any] | None:
    fields = fields_of(reply)
    if looks_like_message(fields):
        return [as_said(fields)]
    items = [reply] if isinstance(reply, str) else items_of(reply)
    if items is None:
        return None
    return [{"role": "assistant", "content": item} if isinstance(item, str) else item for item in items]


def _with_calls(messages: list[Any], calls: list[Any]) -> list[Any]:
    """The messages with the tool calls on the last one the assistant wrote, beside those it has itself."""
    last = next((m for m in reversed(messages) if fields_of(m).get("role") == "assistant"), None)
    if last is None:
        return [*messages, {"role": "assistant", "tool_calls": calls}]
    return [{**last, "toolCalls": calls} if m is last else m for m in messages]


def _beginning(value: Any) -> str:
    return cut(json_text(value), 200)
