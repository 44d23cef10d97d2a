"""``langgraph``: a graph behind a LangGraph server, one thread per run.

Only new messages go out. The server answers with the thread's whole state; what is known already is
dropped by its id.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pydantic import Field

from ..base.json_text import json_text
from ..base.paths import fields_of, items_of
from ..messages import TokensUsage
from .connection import RemoteConfig
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, define_connector
from .replies import read_usage

_SEEN = "langgraph.seen"


class LangGraphConfig(RemoteConfig):
    """Which graph answers, and with what configuration."""

    assistant_id: str = Field(
        default="agent", min_length=1, description="An assistant's id or a graph's name"
    )
    configurable: dict[str, Any] = Field(default={}, description="Passed to the graph as config.configurable")


@define_connector(type="langgraph", label="LangGraph Server", needs_address=True)
async def langgraph_agent(ctx: ConnectorContext[LangGraphConfig]) -> ConnectorResponse:
    """Talks to a graph on a LangGraph server, each run on a thread of its own."""
    from .exchange import exchange

    thread_id = await open_thread(ctx)
    sent = _outgoing(ctx)
    body = {
        "assistant_id": ctx.config.assistant_id,
        "input": {"messages": sent},
        "config": {"configurable": ctx.config.configurable},
        "on_disconnect": "cancel",
    }
    answer = await exchange(ctx, f"threads/{quote(thread_id, safe='')}/runs/wait", body)
    return _read(ctx, answer, sent, thread_id)


@langgraph_agent.setup
async def open_thread(ctx: ConnectorContext[LangGraphConfig]) -> str:
    """The run's thread, made when first needed."""
    from .exchange import exchange

    if ctx.run.thread_id is None:
        answer = await exchange(ctx, "threads", {"metadata": {"run_id": ctx.run.id}})
        thread_id: Any = fields_of(answer).get("thread_id")
        if not isinstance(thread_id, str) or not thread_id:
            raise ConnectorError("the server made a thread without a thread_id: is it a LangGraph server?")
        ctx.run.thread_id = thread_id
    return ctx.run.thread_id


def _outgoing(ctx: ConnectorContext[LangGraphConfig]) -> list[dict[str, Any]]:
    """The new messages with ids that stay the same if the call is repeated: then nothing is added twice.

    LangChain wants a content on every message, also where a tool call stands alone.
    """
    first = len(ctx.messages) - len(ctx.new_messages)
    return [
        {"content": "", **message.to_json(), "id": message.id or f"{ctx.run.id}-{place}"}
        for place, message in enumerate(ctx.new_messages, first)
    ]


def _read(
    ctx: ConnectorContext[LangGraphConfig], answer: Any, sent: list[dict[str, Any]], thread_id: str
) -> ConnectorResponse:
    from .exchange import reported_error

    fields = fields_of(answer)
    if "__error__" in fields:
        raise ConnectorError(f"the graph failed: {_error_text(fields['__error__'])}")
    if (error := reported_error(answer)) is not None:
        raise ConnectorError(f"the server answered with an error: {error}")
    state = items_of(fields.get("messages"))
    if state is None:
        keys = ", ".join(list(fields)[:10]) or "none"
        raise ConnectorError(f"the graph's state has the wrong shape: no list of messages (its keys: {keys})")
    seen: set[str] = ctx.run.memory.setdefault(_SEEN, set())
    known = seen | {message["id"] for message in sent}
    new = [item for place, item in enumerate(state) if _is_new(item, place, known, ctx)]
    messages = [message for item in new if (message := to_openai(item)) is not None]
    interrupt: Any = fields.get("__interrupt__")
    if not messages:
        waiting = f"; it waits for {json_text(interrupt)[:300]}" if interrupt else ""
        raise ConnectorError(f"the graph added no message{waiting}")
    seen |= known | {message["id"] for message in messages if "id" in message}
    return ConnectorResponse(
        messages=messages,
        tokens_usage=usage_of(new),
        thread_id=thread_id,
        metadata={"interrupt": interrupt} if interrupt else {},
    )


def _is_new(item: Any, place: int, known: set[str], ctx: ConnectorContext[LangGraphConfig]) -> bool:
    """By id; by place where a graph gives its messages none."""
    message_id: Any = fields_of(item).get("id")
    if isinstance(message_id, str):
        return message_id not in known
    return place >= ctx.run.thread_message_count + len(ctx.new_messages)


def _error_text(error: Any) -> str:
    fields = fields_of(error)
    text = f"{fields.get('error', 'error')}: {fields.get('message', '')}" if fields else str(error)
    return text[:1000]


_ROLES = {
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "human": "user",
    "tool": "tool",
    "system": "system",
    "developer": "developer",
    "function": "function",
}
# Blocks that repeat what ``tool_calls`` already says.
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call"})


def to_openai(item: Any) -> dict[str, Any] | None:
    """One message as it goes on; nothing for those the user wrote and for orders to remove one."""
    fields = fields_of(item)
    if not fields:
        raise ConnectorError(f"the graph's state holds a {type(item).__name__} among its messages")
    kind: Any = fields.get("type") or fields.get("role")
    role = _ROLES.get(str(kind), str(kind))
    if role in ("user", "remove"):
        return None
    message: dict[str, Any] = {"role": role, "content": _content(fields.get("content"))}
    if calls := _calls(fields):
        message["tool_calls"] = calls
    for name in ("id", "name", "tool_call_id"):
        if isinstance(fields.get(name), str):
            message[name] = fields[name]
    if fields.get("status") == "error":
        message["status"] = "error"
    return message


def usage_of(items: list[Any]) -> TokensUsage | None:
    """What all messages together used; nothing where none says."""
    reported = [fields_of(fields_of(item).get("usage_metadata")) for item in items]
    usages = [usage for fields in reported if (usage := read_usage(fields or None)) is not None]
    return sum(usages[1:], usages[0]) if usages else None


def _content(content: Any) -> Any:
    """Text stays text; of blocks those that are not tool calls stay, a lone text block becomes its text."""
    items = items_of(content)
    if items is None:
        return content
    blocks = [block for block in items if fields_of(block).get("type") not in _CALL_BLOCKS]
    match blocks:
        case []:
            return None
        case [{"type": "text", "text": str(text)}]:
            return text
        case _:
            return blocks


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls, those with broken arguments included: the agent made them."""
    lists = [items_of(message.get(name)) or [] for name in ("tool_calls", "invalid_tool_calls")]
    return [_call(fields_of(call)) for calls in lists for call in calls]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if "function" in call:
        return call
    return {
        "id": str(call.get("id") or ""),
        "type": "function",
        "function": {"name": str(call.get("name") or ""), "arguments": call.get("args")},
    }
