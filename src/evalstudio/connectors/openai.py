"""``openai``: chat completions, OpenAI's own or those of any compatible server."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from ..base.json_text import json_text
from ..base.paths import fields_of, follow
from ..base.text import cut
from ..messages import Message
from .connection import RemoteConfig
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, define_connector

_VERSION = re.compile(r"/v\d\w*(/|$)")
_SENT = {"role", "content", "tool_calls", "tool_call_id", "name", "refusal"}


class OpenAIConfig(RemoteConfig):
    """Which model answers, and how."""

    model: str = Field(min_length=1, description="The model's name at the server")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1, description="Longest reply in tokens")
    system_prompt: str | None = Field(default=None, description="Sent before the conversation")
    extra_body: dict[str, Any] = Field(default={}, description="Further fields of the request, such as tools")

    def body(self, messages: list[Message]) -> dict[str, Any]:
        sent = [message.model_dump(include=_SENT, exclude_none=True) for message in messages]
        if self.system_prompt:
            sent.insert(0, {"role": "system", "content": self.system_prompt})
        optional = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        options = {key: value for key, value in optional.items() if value is not None}
        return {"model": self.model, "messages": sent, **options, **self.extra_body}


@define_connector(type="openai", label="OpenAI Chat Completions", needs_address=True)
async def openai_agent(ctx: ConnectorContext[OpenAIConfig]) -> ConnectorResponse:
    """Sends the whole conversation to a chat completions endpoint.

    The key goes into the header Authorization, as a reference such as ``Bearer ${OPENAI_API_KEY}``.
    """
    from .exchange import open_exchange

    body = ctx.config.body(ctx.messages)
    accept = "text/event-stream" if body.get("stream") else None
    async with open_exchange(ctx, _path(ctx.connector.base_url), body, accept=accept) as answer:
        if answer.content_type == "text/event-stream":
            from .streams import StreamPaths, read_stream

            return await read_stream(answer, "sse", StreamPaths())
        return _read(answer.json(await answer.read()))


def _path(base_url: str) -> str:
    """What is missing from the base URL: it may name the server, the version or the endpoint itself."""
    below = base_url.partition("?")[0].partition("://")[2].partition("/")[2]
    if below.rstrip("/").endswith("chat/completions"):
        return ""
    return "chat/completions" if _VERSION.search("/" + below) else "v1/chat/completions"


def _read(answer: Any) -> ConnectorResponse:
    from .exchange import reported_error

    fields = fields_of(answer)
    choice = fields_of(follow(answer, ("choices", 0)))
    if (error := reported_error(answer) or reported_error(choice)) is not None:
        raise ConnectorError(f"the server answered with an error: {error}")
    message = fields_of(choice.get("message"))
    if not message:
        shape = cut(json_text(answer), 300)
        raise ConnectorError(f"the answer has the wrong shape: no choices[0].message in {shape}")
    reply = {"role": "assistant", **message}
    if reply.get("content") is None and isinstance(reply.get("refusal"), str):
        reply["content"] = reply["refusal"]
    facts = {
        "responseId": fields.get("id"),
        "model": fields.get("model"),
        "finishReason": choice.get("finish_reason"),
    }
    return ConnectorResponse(
        messages=[reply],
        tokens_usage=fields.get("usage"),
        metadata={key: value for key, value in facts.items() if value is not None},
    )
