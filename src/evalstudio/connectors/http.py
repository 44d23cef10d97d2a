"""``http``: any agent behind an HTTP endpoint, by a request template and paths into its answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

from pydantic import Field, model_validator

from ..messages import json_text
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, define_connector
from .json_paths import MISSING, PathText, Steps, fields_of, follow, items_of, read_path
from .remote import RemoteConfig
from .templates import Fill, compile_template

_DEFAULT_BODY = {"messages": "{{messages}}", "threadId": "{{threadId}}"}
_LONGEST_SHOWN = 200


@dataclass(slots=True, frozen=True)
class Plan:
    """A config in the form it is used."""

    fill: Fill
    reply: Steps
    tools: Steps | None
    usage: Steps
    thread: Steps


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
        assert self.plan
        return self

    @cached_property
    def plan(self) -> Plan:
        """The template and the paths, read once."""
        template = _DEFAULT_BODY if self.request_template is None else self.request_template
        return Plan(
            fill=compile_template(template),
            reply=read_path(self.response_path),
            tools=None if self.tool_calls_path is None else read_path(self.tool_calls_path),
            usage=read_path(self.usage_path),
            thread=read_path(self.thread_id_path),
        )


@define_connector(type="http", label="HTTP Endpoint", needs_address=True)
async def http_agent(ctx: ConnectorContext[HttpConfig]) -> ConnectorResponse:
    """Sends each message to an HTTP endpoint as JSON and reads the reply from its answer."""
    from .exchange import exchange

    config = ctx.config
    body = config.plan.fill(ctx)
    if config.method != "GET":
        return _read(config, await exchange(ctx, config.path, body, method=config.method))
    query = {key: item if isinstance(item, str) else json_text(item) for key, item in body.items()}
    return _read(config, await exchange(ctx, config.path, method="GET", query=query))


def _read(config: HttpConfig, answer: Any) -> ConnectorResponse:
    """The response in an answer."""
    thread = follow(answer, config.plan.thread)
    return ConnectorResponse(
        messages=_messages(config, answer),
        tokens_usage=fields_of(follow(answer, config.plan.usage)) or None,
        thread_id=str(thread) if isinstance(thread, str | int) else None,
    )


def _messages(config: HttpConfig, answer: Any) -> list[Any]:
    path = config.plan.reply
    calls = _calls(config, answer)
    found = follow(answer, path) if path else _usual(answer)
    if found is MISSING or found is None:
        if not calls:
            raise _nothing(config, answer)
        found = {"role": "assistant"}
    messages = _as_messages(found)
    if messages is None:
        where = f'at "{config.response_path}"' if path else "in the answer"
        raise ConnectorError(f"what is {where} is no text, message or list of messages: {_shown(found)}")
    return _with_calls(messages, calls) if calls else messages


def _calls(config: HttpConfig, answer: Any) -> list[Any]:
    found = MISSING if config.plan.tools is None else follow(answer, config.plan.tools)
    if found is MISSING or found is None:
        return []
    calls = items_of(found)
    if calls is None:
        raise ConnectorError(
            f'what is at "{config.tool_calls_path}" is no list of tool calls: {_shown(found)}'
        )
    return calls


def _nothing(config: HttpConfig, answer: Any) -> ConnectorError:
    shape = "the answer has the wrong shape"
    if config.plan.reply:
        return ConnectorError(f'{shape}: nothing is at "{config.response_path}" in {_shown(answer)}')
    return ConnectorError(f"{shape}: set responsePath to where the reply is in {_shown(answer)}")


def _usual(answer: Any) -> Any:
    """The reply in an answer nobody gave a path for: itself, its ``messages`` or its ``message``."""
    fields = fields_of(answer)
    if not isinstance(answer, dict) or "role" in fields:
        return cast(Any, answer)
    return next((fields[key] for key in ("messages", "message") if fields.get(key) is not None), MISSING)


def _as_messages(found: Any) -> list[Any] | None:
    fields = fields_of(found)
    if not {"role", "content", "tool_calls"}.isdisjoint(fields):
        return [{"role": "assistant", **fields}]
    items = [found] if isinstance(found, str) else items_of(found)
    if items is None:
        return None
    return [{"role": "assistant", "content": item} if isinstance(item, str) else item for item in items]


def _with_calls(messages: list[Any], calls: list[Any]) -> list[Any]:
    """The messages with the tool calls on the last one the assistant wrote."""
    last = next((m for m in reversed(messages) if fields_of(m).get("role") == "assistant"), None)
    if last is None:
        return [*messages, {"role": "assistant", "tool_calls": calls}]
    return [{**last, "tool_calls": calls} if m is last else m for m in messages]


def _shown(value: Any) -> str:
    text = json_text(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
