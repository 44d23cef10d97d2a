"""What a connector returned, brought into one shape; nonsense is refused in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, cast

from ..base.booleans import read_bool
from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.paths import fields_of
from ..base.problems import suggestion
from ..base.text import cut, excerpt
from ..evaluators.results import Attempt
from ..messages import (
    Message,
    TokensUsage,
    UnreadableItem,
    as_fields,
    as_said,
    is_blank,
    kind_of,
    looks_like_message,
    read_messages,
    read_usage,
)
from .contract import ConnectorError, ConnectorResponse

_ROLES = ("assistant", "tool", "system", "developer", "function")
_LONGEST_ERROR = 1_000
MOST_PARTS = 25_000
# What an invocation and a test may answer with, each field under every name it has.
_INVOCATION = {
    "success": ("success",),
    "error": ("error",),
    "messages": ("messages",),
    "latency_ms": ("latencyMs", "latency_ms"),
    "first_token_ms": ("firstTokenMs", "first_token_ms"),
    "tokens_usage": ("tokensUsage", "tokens_usage", "tokenUsage", "token_usage"),
    "thread_id": ("threadId", "thread_id"),
    "metadata": ("metadata",),
}
_TEST = {name: _INVOCATION[name] for name in ("success", "error", "latency_ms", "metadata")} | {
    "response": ("response",)
}


@dataclass(slots=True)
class AgentReply:
    """What the agent added in one call. ``usage_missing`` says why a usage it reported is not there.

    ``redacted`` are the places where known secrets stood; None where none are known.
    """

    messages: list[Message]
    latency_ms: float
    tokens_usage: TokensUsage | None = None
    thread_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    usage_missing: str | None = None
    first_token_ms: float | None = None
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    redacted: list[str] | None = None


def read_reply(returned: object, latency_ms: float, most: int, *, allow_empty: bool = False) -> AgentReply:
    """The reply in whatever a connector returned."""
    response = _as_response(returned)
    _check_success(response.success, response.error)
    usage, usage_missing = read_usage(response.tokens_usage)
    reply = AgentReply(
        messages=_messages(response.messages, most),
        latency_ms=latency_ms if response.latency_ms is None else _latency(response.latency_ms),
        tokens_usage=usage,
        thread_id=_thread_id(response.thread_id),
        metadata=_metadata(response.metadata),
        usage_missing=usage_missing,
        first_token_ms=None if response.first_token_ms is None else _latency(response.first_token_ms),
    )
    if not allow_empty:
        check_said(reply.messages)
    return reply


def check_said(messages: Iterable[Message]) -> None:
    """An answer that says and does nothing would satisfy everything that must not happen."""
    own = [message for message in messages if message.role == "assistant"]
    if all(is_blank(message.text) and not message.tool_calls for message in own):
        raise ConnectorError(
            "the answer holds neither text nor a tool call; if the agent means it, "
            "set allowEmpty: true in the connector's config"
        )


def read_test(answer: object) -> str:
    """What a test hook says about a healthy agent; an error where it says that the agent is not usable."""
    if isinstance(answer, str) or answer is None:
        return answer or ""
    if (success := read_bool(answer)) is not None:
        return _check_success(success, None, "its test says that the agent is not usable")
    if isinstance(answer, ConnectorResponse | Message):
        return "\n".join(message.text for message in read_reply(answer, 0.0, 1_000).messages)
    if not isinstance(answer, Mapping):
        raise ConnectorError(
            f"its test returned {kind_of(answer)}; "
            "expected a text, true or false, or {success, response, error}"
        )
    fields = _known(cast(Mapping[str, Any], answer), _TEST, "the test's result")
    if "success" not in fields:
        raise ConnectorError("the test's result has no success, which must be true or false")
    _check_success(fields["success"], fields.get("error"), "its test says that the agent is not usable")
    response = fields.get("response")
    return "" if response is None else response if isinstance(response, str) else json_text(response)


def check_answer(answer: object) -> None:
    """Refuse an answer that says itself that it failed."""
    fields = as_fields(answer) or {}
    if "success" in fields:
        _check_success(fields["success"], fields.get("error"))


def _as_response(returned: object) -> ConnectorResponse:
    if isinstance(returned, ConnectorResponse):
        return returned
    if isinstance(returned, str | Message):
        return ConnectorResponse([cast(Any, returned)])
    if isinstance(returned, list | tuple):
        return ConnectorResponse(cast(list[Any], returned))
    fields = as_fields(returned)
    if fields is None:
        raise ConnectorError(
            f"returned {kind_of(returned)}; expected a text, messages or a ConnectorResponse"
        )
    return _from_fields(fields)


def _from_fields(fields: dict[str, Any]) -> ConnectorResponse:
    if "role" not in fields and ("success" in fields or "messages" in fields):
        known = _known(fields, _INVOCATION, "the result")
        if "messages" not in known and read_bool(known.get("success")) is True and not known.get("error"):
            raise ConnectorError(
                "the result has success: true and no messages; put what the agent said there"
            )
        return ConnectorResponse(**known)
    if not looks_like_message(fields):
        keys = ", ".join(list(map(str, fields))[:10]) or "none"
        raise ConnectorError(f"returned an object that is no message (its keys: {keys})")
    outcome = {name: fields[name] for name in ("success", "error") if "success" in fields and name in fields}
    return ConnectorResponse([as_said(fields)], **outcome)


def _known(fields: Mapping[str, Any], shape: Mapping[str, tuple[str, ...]], noun: str) -> dict[str, Any]:
    """The fields of a result object by our names; one that nobody knows is named."""
    names = {alias: name for name, aliases in shape.items() for alias in aliases}
    unknown = [str(key) for key in fields if key not in names]
    if unknown:
        listed = ", ".join(f'"{cut(key, 40)}"' for key in unknown[:5])
        hint = suggestion(unknown[0], [aliases[0] for aliases in shape.values()], "known are")
        raise ConnectorError(f"{noun} has keys that are not known: {listed}; {hint}")
    return {names[key]: item for key, item in fields.items() if item is not None or key == "success"}


def _check_success(value: object, error: object, otherwise: str = "it reports success: false") -> str:
    success = read_bool(value)
    if success is None:
        raise ConnectorError(f"success must be true or false, not {excerpt(json_text(value), 80)}")
    said = error if isinstance(error, str) else "" if error is None else json_text(error)
    if not success:
        raise ConnectorError(cut(said, _LONGEST_ERROR) or f"{otherwise}, without an error")
    if said:
        raise ConnectorError(f"it reports success: true beside an error: {cut(said, _LONGEST_ERROR)}")
    return ""


def _messages(items: object, most: int) -> list[Message]:
    if not isinstance(items, list | tuple):
        raise ConnectorError(f"messages must be a list, not {kind_of(items)}")
    listed = cast(list[Any], items)
    _check_count(len(listed), most)
    _check_parts(listed)
    try:
        messages = read_messages(listed, speaker="assistant", roles=_ROLES)
    except UnreadableItem as error:
        where = f"message {error.place} of the answer"
        if error.role is None:
            raise ConnectorError(f"{where} {error.problem}") from None
        raise ConnectorError(
            f'wrong roles: {where} has the role "{cut(error.role, 40)}"; an answer holds only what the agent '
            "added (assistant, tool, system)"
        ) from None
    _check_count(len(messages), most)
    if other := next((one for one in messages if one.tool_calls and one.role != "assistant"), None):
        names = ", ".join(call.name for call in other.tool_calls or ())
        raise ConnectorError(
            f"a message of the role {other.role} calls tools ({cut(names, 80)}); only the assistant does"
        )
    return messages


def _check_parts(items: Iterable[object]) -> None:
    """Refuse what would take seconds to read: many small parts and tool calls in few messages."""
    fields = (fields_of(item) or as_fields(item) or {} for item in items)
    count = sum(
        len(cast(list[Any], part)) for one in fields for part in one.values() if isinstance(part, list)
    )
    if count > MOST_PARTS:
        raise ConnectorError(f"the answer holds {count:,} parts and tool calls; the limit is {MOST_PARTS:,}")


def _check_count(count: int, most: int) -> None:
    if not count:
        raise ConnectorError("the answer holds no message")
    if count > most:
        raise ConnectorError(f"the answer holds {count:,} messages; the limit is {most:,}")


def _latency(value: object) -> float:
    try:
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and value >= 0
            and math.isfinite(value)
        ):
            return float(value)
    except OverflowError:
        pass
    raise ConnectorError(f"latency_ms must be a number of milliseconds, not {excerpt(json_text(value), 40)}")


def _thread_id(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ConnectorError(f"thread_id must be a text, not {kind_of(value)}")


def _metadata(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, Any], value))
    raise ConnectorError(f"metadata must be an object, not {kind_of(value)}")
