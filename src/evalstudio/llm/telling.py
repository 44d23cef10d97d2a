"""A message as the text a model is shown."""

from __future__ import annotations

from ..messages import Message, text_of


def told(message: Message) -> str:
    """Its text; tool calls are told, not replayed, for the tools are not ours to offer."""
    text = text_of(message)
    if message.role == "tool":
        return f"[result of {message.name or message.tool_call_id or 'a tool'}] {text}"
    calls = [f"[called {call.name} with {call.function.arguments}]" for call in message.tool_calls or ()]
    return "\n".join([text, *calls] if text else calls)
