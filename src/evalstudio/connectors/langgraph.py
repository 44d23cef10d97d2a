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
from ..messages import TokensUsage, UnreadableItem, read_messages, read_usage
from .connection import RemoteConfig
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, define_connector

_SEEN, _LENGTH = "langgraph.seen", "langgraph.length"


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
    state = items_of(fields.get("messages"))
    # A state may have fields of any name; without messages it is none.
    if state is None and (error := reported_error(answer)) is not None:
        raise ConnectorError(f"the server answered with an error: {error}")
    if state is None:
        keys = ", ".join(list(fields)[:10]) or "none"
        raise ConnectorError(f"the graph's state has the wrong shape: no list of messages (its keys: {keys})")
    seen: set[str] = ctx.run.memory.setdefault(_SEEN, set())
    known = seen | {message["id"] for message in sent}
    new = [(place + 1, item) for place, item in enumerate(state) if _is_new(item, place, known, ctx)]
    messages = [message for place, item in new for message in to_openai(item, place)]
    interrupt: Any = fields.get("__interrupt__")
    if not messages:
        waiting = f"; it waits for {json_text(interrupt)[:300]}" if interrupt else ""
        raise ConnectorError(f"the graph added no message{waiting}")
    ctx.run.memory[_LENGTH] = len(state)
    seen |= known | {message["id"] for message in messages if "id" in message}
    return ConnectorResponse(
        messages=messages,
        tokens_usage=usage_of([item for _, item in new]),
        thread_id=thread_id,
        metadata={"interrupt": interrupt} if interrupt else {},
    )


def _is_new(item: Any, place: int, known: set[str], ctx: ConnectorContext[LangGraphConfig]) -> bool:
    """By id; by place where a graph gives its messages none."""
    message_id: Any = fields_of(item).get("id")
    if isinstance(message_id, str):
        return message_id not in known
    length: int = ctx.run.memory.get(_LENGTH, ctx.run.thread_message_count)
    return place >= length + len(ctx.new_messages)


def _error_text(error: Any) -> str:
    fields = fields_of(error)
    text = f"{fields.get('error', 'error')}: {fields.get('message', '')}" if fields else str(error)
    return text[:1000]


# Of LangChain's many fields those that say something about the conversation.
_KEPT = ("role", "content", "tool_calls", "id", "name", "tool_call_id", "status")


def to_openai(item: Any, place: int = 1) -> list[dict[str, Any]]:
    """The messages an item of the state holds; none for what the user wrote and for orders to remove one."""
    try:
        messages = read_messages([item], roles=None)
    except UnreadableItem as error:
        raise ConnectorError(f"message {place} of the graph's state {error.problem}") from None
    read = [message.to_json() for message in messages if message.role != "user"]
    return [_as_text({name: fields[name] for name in _KEPT if name in fields}) for fields in read]


def _as_text(message: dict[str, Any]) -> dict[str, Any]:
    """LangChain wraps every text of some models into a block: a lone one becomes its text."""
    match message.get("content"):
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            return message | {"content": text}
        case _:
            return message


def usage_of(items: list[Any]) -> Any:
    """What all messages together used; nothing where none says; one that cannot be read, as it is."""
    reported = [fields_of(item).get("usage_metadata") for item in items]
    usages: list[TokensUsage] = []
    for value in reported:
        usage, problem = read_usage(value)
        if problem is not None:
            return value
        usages += [] if usage is None else [usage]
    return sum(usages[1:], usages[0]) if usages else None
