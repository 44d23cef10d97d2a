"""A small restaurant's booking agent, in process and deterministic, and a check made for it.

It has one bug, planted on purpose. The scenarios find it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import BaseModel, Field

from evalstudio import (
    ConnectorContext,
    ConnectorResponse,
    EvaluationResult,
    EvaluatorContext,
    define_connector,
    define_evaluator,
)

TABLES: dict[str, list[dict[str, Any]]] = {}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@define_connector(type="booking-agent", label="Booking Agent")
def booking_agent(ctx: ConnectorContext[Any]) -> ConnectorResponse:
    """Talks to the restaurant's booking agent."""
    bookings = TABLES.setdefault(ctx.run.id, [])
    said = " ".join(m.text for m in ctx.messages if m.role == "user").lower()
    last = ctx.messages[-1].text.lower()
    if "cancel" in last:
        return _cancel(bookings)
    day = next((day for day in DAYS if day in said), None)
    people = re.search(r"\b(\d+) (?:people|persons|of us)\b|\bfor (\d+)\b", said)
    if day == "monday":
        return _say("I am sorry, we are closed on Mondays. Would another day suit you?")
    if day is None:
        return _say("Welcome to the Harbour Kitchen! For which day would you like a table?")
    if people is None:
        return _say(f"With pleasure. How many people will come on {day.title()}?")
    return _book(bookings, day, int(people[1] or people[2]))


def _book(bookings: list[dict[str, Any]], day: str, people: int) -> ConnectorResponse:
    reference = f"BK-{10_000 + 37 * people + DAYS.index(day):05d}"
    if not bookings:
        bookings.append({"reference": reference, "day": day, "people": people, "status": "confirmed"})
    text = f"Your table for {people} on {day.title()} is booked. Your reference is {reference}."
    return _say(text, "create_booking", {"day": day, "people": people})


def _cancel(bookings: list[dict[str, Any]]) -> ConnectorResponse:
    # The planted bug: it says that the booking is cancelled, and leaves it in the book.
    reference = bookings[0]["reference"] if bookings else "none"
    return _say(f"Done, booking {reference} is cancelled.", "find_booking", {"reference": reference})


def _say(text: str, tool: str | None = None, arguments: dict[str, Any] | None = None) -> ConnectorResponse:
    messages: list[dict[str, Any]] = []
    if tool is not None:
        call = {"id": "call-1", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "content": '{"ok": true}', "tool_call_id": "call-1"})
    messages.append({"role": "assistant", "content": text})
    words = len(text.split())
    return ConnectorResponse(messages, tokens_usage={"input_tokens": 20 + words, "output_tokens": words})


@booking_agent.state
def booking_agent_state(ctx: ConnectorContext[Any]) -> dict[str, Any]:
    """What really stands in the book."""
    return {"bookings": TABLES.pop(ctx.run.id, [])}


@booking_agent.test
def booking_agent_test(ctx: ConnectorContext[Any]) -> str:
    return "the kitchen is open"


class Politeness(BaseModel):
    words: list[str] = Field(["welcome", "pleasure", "sorry"], description="Any of these counts as polite")


@define_evaluator(label="Polite Opening")
def polite_opening(ctx: EvaluatorContext[Politeness]) -> EvaluationResult:
    """The agent's first reply is polite."""
    if ctx.turn > 1:
        return EvaluationResult.skip("not the first turn")
    found = next((word for word in ctx.config.words if word in ctx.response.lower()), None)
    if found is None:
        return EvaluationResult.failed(f"none of {', '.join(ctx.config.words)} in the first reply")
    return EvaluationResult.passed(f'says "{found}"')
