"""Stands in for the team's own SDK: an agent that offers slots, and the system that knows which are free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FREE = {("2026-05-01", "10:00"), ("2026-05-01", "11:00")}


@dataclass
class Response:
    text: str


@dataclass
class Health:
    ok: bool
    version: str = ""
    error: str | None = None


@dataclass
class BookingAgent:
    base_url: str
    environment: str = "staging"
    region: str = "eu-west-1"
    api_key: str | None = None

    async def chat(self, messages: list[Any], session_id: str | None) -> Response:
        if self.api_key is None:
            raise PermissionError("no API key")
        asked = messages[-1].text
        if "free" in asked:
            return Response("Hello! Available: 2026-05-01 at 10:00.")
        if "any" in asked:
            return Response("Available: 2026-05-01 at 10:00. Also available: 2026-05-02 at 09:00.")
        return Response(f"Welcome to {self.environment} in {self.region}.")

    async def health_check(self) -> Health:
        return Health(True, version="2.1") if self.api_key == "good" else Health(False, error="wrong key")


@dataclass
class BookingAPI:
    base_url: str

    async def check_slot(self, date: str, time: str) -> bool:
        return (date, time) in FREE
