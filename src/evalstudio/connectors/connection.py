"""What a session prepares once for all its calls, and how patiently an agent is called."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..base.redaction import Redaction
from ..base.retry import backoff

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientTimeout


@dataclass(slots=True, frozen=True)
class CallPolicy:
    """The limits of one call to an agent."""

    timeout_seconds: float = 60.0
    connect_seconds: float = 10.0
    total_seconds: float = 180.0
    max_response_bytes: int = 10_000_000
    max_messages: int = 1_000
    retries: int = 2
    backoff_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    jitter: float = 0.25

    @property
    def whole_seconds(self) -> float:
        """The time all attempts and waits may take together; never less than one attempt."""
        return max(self.total_seconds, self.timeout_seconds)

    def for_config(self, config: object) -> CallPolicy:
        """The same with the limits a connector's config sets itself."""
        names = ("timeout_seconds", "max_response_bytes")
        own = {name: value for name in names if (value := getattr(config, name, None)) is not None}
        return replace(self, **own) if own else self

    def wait_before(self, retry: int, requested: float | None, chance: float) -> float:
        """Seconds before a retry (from 1): as the agent asked, else doubling; spread by chance (0–1)."""
        longest = self.longest_wait_seconds
        seconds = backoff(retry, self.backoff_seconds, longest) if requested is None else requested
        return min(seconds * (1 + self.jitter * chance), longest)


@dataclass(slots=True)
class AgentConnection:
    """What a session prepared for calling one agent. ``address`` is the agent's without anything secret.

    ``sent_at`` is when the call's first request was sent, ``received_at`` when the last answer came in: the
    agent's time, without the wait for our own loop. None means that nothing was sent yet.
    """

    http: ClientSession
    timeout: ClientTimeout
    headers: dict[str, str]
    policy: CallPolicy = field(default_factory=CallPolicy)
    address: str = ""
    redact: Redaction = field(default_factory=Redaction)
    sent_at: float | None = None
    received_at: float = 0.0


def is_temporary(status: int) -> bool:
    """Whether a status says that the same call may succeed later."""
    return status == 429 or status >= 500
