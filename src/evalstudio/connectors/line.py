"""What a session prepares once for all its calls: the client, the headers, the limits, what may be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .policy import CallPolicy
from .secrets import Redaction

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientTimeout


@dataclass(slots=True)
class Line:
    """An open line to one agent. ``shown`` is its address without anything secret.

    ``asked_at`` is when the call's first request was sent, ``heard_at`` when the last answer came in: the
    agent's time, without the wait for our own loop. None means that nothing was sent yet.
    """

    http: ClientSession
    timeout: ClientTimeout
    headers: dict[str, str]
    policy: CallPolicy = field(default_factory=CallPolicy)
    shown: str = ""
    redact: Redaction = field(default_factory=Redaction)
    asked_at: float | None = None
    heard_at: float = 0.0
