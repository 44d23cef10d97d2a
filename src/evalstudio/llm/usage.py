"""What the calls of one role used so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..messages import TokensUsage


@dataclass(slots=True)
class RoleUsage:
    """Running totals. ``cost`` covers the calls whose price is known; ``unpriced`` counts the others.

    Answers from the cache or a cassette are counted apart: they use no tokens and cost nothing.
    """

    calls: int = 0
    retries: int = 0
    repairs: int = 0
    tokens: TokensUsage = field(default_factory=TokensUsage)
    cost: float | None = None
    unpriced: int = 0
    cached: int = 0
    replayed: int = 0
    waited_seconds: float = 0.0
    waiting_seconds: float = 0.0
    queued: int = 0

    def add(self, tokens: TokensUsage, cost: float | None) -> None:
        self.calls += 1
        self.tokens += tokens
        if cost is None:
            self.unpriced += 1
        else:
            self.cost = (self.cost or 0.0) + cost

    def to_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "retries": self.retries,
            "repairs": self.repairs,
            "tokensUsage": self.tokens.model_dump(),
            "cost": self.cost,
            "unpricedCalls": self.unpriced,
            "cachedCalls": self.cached,
            "replayedCalls": self.replayed,
            "waitedSeconds": self.waited_seconds,
            "waitingSeconds": self.waiting_seconds,
            "queued": self.queued,
        }
