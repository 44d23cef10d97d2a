"""What the calls of one role used so far, and what it cost where the price is known."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
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


# Providers date their snapshots: gpt-4o-2024-08-06, claude-opus-4-1-20250805.
_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
_MILLION = 1_000_000


def cost_of(provider: str, model: str, usage: TokensUsage, cached_tokens: int = 0) -> float | None:
    """US dollars for one call; ``None`` where the price is not known."""
    known = _prices().get(provider, {})
    price = known.get(model) or known.get(_DATED.sub("", model))
    if price is None:
        return None
    cached = min(cached_tokens, usage.input_tokens) if "cached" in price else 0
    fresh = usage.input_tokens - cached
    dollars = fresh * price["input"] + cached * price.get("cached", 0.0)
    return (dollars + usage.output_tokens * price.get("output", 0.0)) / _MILLION


@cache
def _prices() -> dict[str, dict[str, dict[str, float]]]:
    return tomllib.loads(files("evalstudio.llm").joinpath("prices.toml").read_text(encoding="utf-8"))
