"""What a connector returned, brought into one shape; nonsense is refused in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from ..base.json_text import json_text
from ..base.problems import problems_of
from ..evaluators.results import Attempt
from ..messages import Message, TokensUsage
from .contract import ConnectorError, ConnectorResponse

_ROLES = frozenset({"assistant", "tool", "system", "developer", "function"})
_MESSAGE_FIELDS = frozenset({"role", "content", "tool_calls", "contentParts"})
_RESPONSE_FIELDS = {
    "latency_ms": "latencyMs",
    "tokens_usage": "tokensUsage",
    "thread_id": "threadId",
    "metadata": "metadata",
    "first_token_ms": "firstTokenMs",
}


@dataclass(slots=True)
class AgentReply:
    """What the agent added in one call."""

    messages: list[Message]
    latency_ms: float
    tokens_usage: TokensUsage | None = None
    thread_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    first_token_ms: float | None = None
    attempts: list[Attempt] = field(default_factory=list[Attempt])


def read_reply(returned: object, latency_ms: float, most: int) -> AgentReply:
    """The reply in whatever a connector returned."""
    response = _as_response(returned)
    items = response.messages
    if not isinstance(cast(object, items), list | tuple):
        raise ConnectorError(f"messages must be a list, not {_kind(items)}")
    if not items:
        raise ConnectorError("the answer holds no message")
    if len(items) > most:
        raise ConnectorError(f"the answer holds {len(items):,} messages; the limit is {most:,}")
    return AgentReply(
        messages=[_message(item, place) for place, item in enumerate(items, 1)],
        latency_ms=latency_ms if response.latency_ms is None else _latency(response.latency_ms),
        tokens_usage=read_usage(response.tokens_usage),
        thread_id=_thread_id(response.thread_id),
        metadata=_metadata(response.metadata),
        first_token_ms=None if response.first_token_ms is None else _latency(response.first_token_ms),
    )


def _as_response(returned: object) -> ConnectorResponse:
    if isinstance(returned, ConnectorResponse):
        return returned
    if isinstance(returned, str | Message):
        return ConnectorResponse([_assistant(returned)])
    if isinstance(returned, Mapping):
        return _from_fields(cast(Mapping[str, Any], returned))
    if isinstance(returned, list | tuple):
        items = cast(Sequence[Any], returned)
        return ConnectorResponse([_assistant(item) for item in items])
    raise ConnectorError(f"returned {_kind(returned)}; expected a text, messages or a ConnectorResponse")


def _from_fields(fields: Mapping[str, Any]) -> ConnectorResponse:
    if "messages" in fields and "role" not in fields:
        others: dict[str, Any] = {
            name: fields.get(name, fields.get(alias)) for name, alias in _RESPONSE_FIELDS.items()
        }
        others["metadata"] = others["metadata"] or {}
        return ConnectorResponse(fields["messages"], **others)
    if _MESSAGE_FIELDS.isdisjoint(fields):
        keys = ", ".join(list(map(str, fields))[:10]) or "none"
        raise ConnectorError(f"returned an object that is no message (its keys: {keys})")
    return ConnectorResponse([{"role": "assistant", **fields}])


def _assistant(item: Any) -> Any:
    return Message(role="assistant", content=item) if isinstance(item, str) else item


def _message(item: object, place: int) -> Message:
    if not isinstance(item, Message):
        if not isinstance(item, Mapping):
            raise ConnectorError(f"message {place} of the answer is {_kind(item)}")
        try:
            item = Message.model_validate(item)
        except ValidationError as error:
            problem = problems_of(error)[0]
            raise ConnectorError(f"message {place} of the answer is not valid: {problem}") from None
    if item.role not in _ROLES:
        raise ConnectorError(
            f'wrong roles: message {place} of the answer has the role "{item.role[:40]}"; an answer holds '
            "only what the agent added (assistant, tool, system)"
        )
    return item


def _latency(value: object) -> float:
    if isinstance(value, int | float) and math.isfinite(value) and value >= 0:
        return float(value)
    raise ConnectorError(f"latency_ms must be a number of milliseconds, not {_kind(value)}")


def read_usage(value: object) -> TokensUsage | None:
    """Token usage in any of the shapes it comes in."""
    if value is None or isinstance(value, TokensUsage):
        return value
    try:
        return TokensUsage.model_validate(value)
    except (ValidationError, TypeError):
        raise ConnectorError(f"the token usage cannot be read: {json_text(value)[:200]}") from None


def _thread_id(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ConnectorError(f"thread_id must be a text, not {_kind(value)}")


def _metadata(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, Any], value))
    raise ConnectorError(f"metadata must be an object, not {_kind(value)}")


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeio" else f"a {name}"
