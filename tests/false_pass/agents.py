"""Agents that answer without answering."""

from __future__ import annotations

from typing import Any

from .table import Came, live, row

NO_REFUND = {"type": "regex", "config": {"pattern": "refund", "mustMatch": False}}


@row("agent", "An agent raises an exception", expect="error: agent", says="ZeroDivisionError")
async def agent_raises() -> Came:
    def agent(messages: Any) -> str:
        return str(1 / 0)

    return await live(agent, NO_REFUND)


@row("agent", "An agent returns nothing", expect="error: agent", says="returned nothing")
async def agent_returns_nothing() -> Came:
    return await live(lambda messages: None, NO_REFUND)
