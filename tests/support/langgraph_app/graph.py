"""A small booking agent without a model: what it answers depends on the conversation alone."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode


@tool
def find_booking(number: str) -> str:
    """Look up a booking by its number."""
    return f"Booking {number}: Lisbon, two nights, confirmed"


def answer(state: MessagesState) -> dict[str, Any]:
    """Look up what is asked about, report what was found, greet otherwise."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return _says(f"I found it. {last.text}.", 20, 12)
    asked = last.text
    if "booking" in asked.lower():
        number = next((word.strip("?.,!") for word in asked.split() if word[:1].isdigit()), "0")
        call = {"name": "find_booking", "args": {"number": number}, "id": f"call-{len(state['messages'])}"}
        return _says([{"type": "text", "text": "Let me look."}], 11, 7, [call])
    heard = sum(isinstance(message, HumanMessage) for message in state["messages"])
    return _says(f"Hello! I have heard {heard} of your messages.", 5, 3)


def _says(content: Any, read: int, written: int, calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return {"messages": [AIMessage(content, tool_calls=calls or [], usage_metadata=usage)]}


def after(state: MessagesState) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


def fail(state: MessagesState) -> dict[str, Any]:
    raise ValueError("the booking system is on fire")


def _build() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("tools", ToolNode([find_booking]))
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", after, ["tools", END])
    builder.add_edge("tools", "answer")
    return builder.compile()


def _build_broken() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("fail", fail)
    builder.add_edge(START, "fail")
    return builder.compile()


graph = _build()
broken = _build_broken()
