"""The project of the examples, opened the way its user would: through its config file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalstudio import Message, PluginRegistry, load_plugins

FOLDER = Path(__file__).parent / "booking_agent_evals"
CONFIG = FOLDER / "evalstudio.config.json"


def registry() -> PluginRegistry:
    return load_plugins(CONFIG)


def booking_agent(**changes: Any) -> dict[str, Any]:
    """The connector as it is made in the form of the page."""
    return {
        "type": "booking-agent",
        "baseUrl": "https://booking.example",
        "headers": {"x-api-key": "good"},
        "config": {"environment": "staging"},
        **changes,
    }


def tool_call(name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*names: str, text: str = "Done") -> Any:
    """An agent that answers with these tool calls."""

    def agent(messages: list[Message]) -> dict[str, Any]:
        return {"role": "assistant", "content": text, "tool_calls": [tool_call(name) for name in names]}

    return agent


def verdict(met: bool, reasoning: str = "Agent booked successfully") -> dict[str, Any]:
    return {"reasoning": reasoning, "evidence": [], "success_met": met, "confidence": 0.9}
