"""``http``: any agent behind an HTTP endpoint, by a request template and paths into its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, cast

from pydantic import Field, model_validator

from ..base.json_text import json_text
from ..base.paths import MISSING, PathText, fields_of, follow, items_of, lookup, read_path, strings_in
from ..base.placeholders import fill, is_name, names_in, only_placeholder, written
from ..base.text import cut
from ..configs import StrictConfig
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, define_connector


class RemoteConfig(StrictConfig):
    """The limits a connector sets itself; the session's hold where it does not."""

    timeout_seconds: float | None = Field(
        default=None, gt=0, le=86_400, description="Longest wait for one answer; 60 if not given"
    )
    max_response_bytes: int | None = Field(
        default=None, ge=1, description="Largest answer that is read; 10,000,000 if not given"
    )


_DEFAULT_BODY = {"messages": "{{messages}}", "threadId": "{{threadId}}"}


class HttpConfig(RemoteConfig):
    """What is sent and where the answer is found."""

    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    path: str = Field(default="", description="Appended to the base URL")
    request_template: Any = Field(
        default=None,
        description="The body as JSON, with {{message}}, {{messages}}, {{newMessages}}, {{threadId}}, "
        "{{runId}} and {{turn}} filled in; with GET an object that becomes the query",
    )
    response_path: PathText = Field(
        default="", description="Where the reply is: a text, a message or a list of messages"
    )
    tool_calls_path: PathText | None = Field(default=None, description="Where the tool calls are")
    usage_path: PathText = Field(default="usage", description="Where the token usage is")
    thread_id_path: PathText = Field(default="threadId", description="Where the agent's thread id is")

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


@define_connector(type="http", label="HTTP Endpoint", needs_address=True)
async def http_agent(ctx: ConnectorContext[HttpConfig]) -> ConnectorResponse:
    """Sends each message to an HTTP endpoint as JSON and reads the reply from its answer."""
    from .exchange import exchange

    config = ctx.config
    body = config.fill_body(ctx)
    if config.method != "GET":
        return _read(config, await exchange(ctx, config.path, body, method=config.method))
    query = {key: item if isinstance(item, str) else json_text(item) for key, item in body.items()}
    return _read(config, await exchange(ctx, config.path, method="GET", query=query))


def _read(config: HttpConfig, answer: Any) -> ConnectorResponse:
    """The response in an answer."""
    thread = follow(answer, read_path(config.thread_id_path))
    return ConnectorResponse(
        messages=_messages(config, answer),
        tokens_usage=fields_of(follow(answer, read_path(config.usage_path))) or None,
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
    if not {"role", "content", "tool_calls"}.isdisjoint(fields):
        return [{"role": "assistant", **fields}]
    items = [reply] if isinstance(reply, str) else items_of(reply)
    if items is None:
        return None
    return [{"role": "assistant", "content": item} if isinstance(item, str) else item for item in items]


def _with_calls(messages: list[Any], calls: list[Any]) -> list[Any]:
    """The messages with the tool calls on the last one the assistant wrote."""
    last = next((m for m in reversed(messages) if fields_of(m).get("role") == "assistant"), None)
    if last is None:
        return [*messages, {"role": "assistant", "tool_calls": calls}]
    return [{**last, "tool_calls": calls} if m is last else m for m in messages]


def _beginning(value: Any) -> str:
    return cut(json_text(value), 200)


Fill = Callable[[ConnectorContext[Any]], Any]


def _message(ctx: ConnectorContext[Any]) -> str:
    both = (ctx.new_messages, ctx.messages)
    last = next((m for messages in both for m in reversed(messages) if m.role == "user"), None)
    return last.text if last else ""


PLACEHOLDERS: Mapping[str, Fill] = {
    "message": _message,
    "messages": lambda ctx: [message.to_json() for message in ctx.messages],
    "newMessages": lambda ctx: [message.to_json() for message in ctx.new_messages],
    "threadId": lambda ctx: ctx.run.thread_id,
    "runId": lambda ctx: ctx.run.id,
    "turn": lambda ctx: ctx.run.turn,
}


def compile_template(template: Any) -> Fill:
    """A function that fills the template in."""
    return _compile(template) or (lambda _: template)


def _compile(part: Any) -> Fill | None:
    """The filler of a part, or nothing where there is nothing to fill in."""
    if isinstance(part, str):
        return _compile_text(part)
    if isinstance(part, dict):
        fields = {key: (item, _compile(item)) for key, item in cast(dict[str, Any], part).items()}
        if not any(fill for _, fill in fields.values()):
            return None
        return lambda ctx: {key: fill(ctx) if fill else item for key, (item, fill) in fields.items()}
    if isinstance(part, list):
        items = [(item, _compile(item)) for item in cast(list[Any], part)]
        if not any(fill for _, fill in items):
            return None
        return lambda ctx: [fill(ctx) if fill else item for item, fill in items]
    return None


def _compile_text(text: str) -> Fill | None:
    if "{{" not in text:
        return None
    if "" in names_in(text):
        raise ValueError(
            f"{{{{}}}} is not known here; known are {', '.join(PLACEHOLDERS)} and the case's values"
        )
    if (name := only_placeholder(text)) and is_name(name):
        return lambda ctx: _value(name, ctx)

    def value_of(name: str, ctx: ConnectorContext[Any]) -> str | None:
        if not is_name(name):
            return None
        value = _value(name, ctx)
        return "" if value is None else written(value)

    return lambda ctx: fill(text, lambda name: value_of(name, ctx))


def _value(name: str, ctx: ConnectorContext[Any]) -> Any:
    if name in PLACEHOLDERS:
        return PLACEHOLDERS[name](ctx)
    value = lookup(ctx.run.case_values, name)
    if value is MISSING:
        known = ", ".join([*PLACEHOLDERS, *sorted(ctx.run.case_values)])
        raise ConnectorError(f"{{{{{name}}}}} of the requestTemplate has no value here; known are {known}")
    return value
