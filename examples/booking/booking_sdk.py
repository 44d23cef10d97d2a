"""A stand-in for the SDK a team already has: an agent that books slots, and the calendar behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SLOT = re.compile(r"(\d{4}-\d{2}-\d{2})\s+(?:at\s+)?(\d{2}:\d{2})")

# Free slots per environment. Anything else is taken.
_CALENDARS = {
    "staging": {("2030-05-01", "10:00"), ("2030-05-01", "14:30")},
    "production": {("2030-05-02", "09:00")},
}


class BookingAPI:
    """The calendar: what is really free."""

    def __init__(self, environment: str = "staging") -> None:
        self._free = _CALENDARS[environment]

    async def is_free(self, date: str, time: str) -> bool:
        return (date, time) in self._free


@dataclass
class Reply:
    text: str
    input_tokens: int
    output_tokens: int


@dataclass
class BookingAgent:
    """The agent under test. It is eager: a slot it has never heard of is offered as free all the same."""

    environment: str = "staging"
    region: str = "eu-west-1"
    api_key: str | None = None
    booked: dict[str, list[str]] = field(default_factory=dict)

    async def chat(self, text: str, session: str) -> Reply:
        wanted = SLOT.search(text)
        if wanted is None:
            answer = "Hello! Which date and time would you like, for example 2030-05-01 10:00?"
        else:
            slot = f"{wanted[1]} at {wanted[2]}"
            self.booked.setdefault(session, []).append(slot)
            answer = f"Good news, {slot} is available. I have booked it for you."
        return Reply(answer, len(text.split()), len(answer.split()))

    async def version(self) -> str:
        return "2.1.0"
