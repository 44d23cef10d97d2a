"""What the calls of one role used so far, and what it cost where the price is known."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..evaluators.results import UNSEEN_MODEL, Finding
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

    def include(self, other: RoleUsage) -> None:
        """Add the calls, tokens and cost of another total."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.unpriced += other.unpriced
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost

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


_counting: ContextVar[dict[str, RoleUsage] | None] = ContextVar("evalstudio_model_usage", default=None)


@contextmanager
def counting_usage() -> Generator[dict[str, RoleUsage]]:
    """Count by role what models use for what is done inside, such as one run.

    Who counts around it, such as a budget, counts it too.
    """
    usage: dict[str, RoleUsage] = {}
    token = _counting.set(usage)
    try:
        yield usage
    finally:
        _counting.reset(token)
        if (around := _counting.get()) is not None:
            for role, used in usage.items():
                around.setdefault(role, RoleUsage()).include(used)


def count_usage(role: str, tokens: TokensUsage, cost: float | None) -> None:
    """Tell whoever counts of a call that was made."""
    if (usage := _counting.get()) is not None:
        usage.setdefault(role, RoleUsage()).add(tokens, cost)


_NAMES_OF_ROLES = {"simulator": ("persona",), "judge": ("evaluation", "embedding")}


def model_usage(usage: Mapping[str, RoleUsage], findings: Iterable[Finding]) -> dict[str, Any]:
    """Tokens and cost of the models by role. Nothing asked is nothing used; unknown is None, never 0.

    A plugin's judge may ask a model of its own, as its findings say; then nothing is known of all judges.
    """
    fields: dict[str, Any] = {}
    for role, names in _NAMES_OF_ROLES.items():
        used = [usage[name] for name in names if name in usage]
        told = all(one.tokens.total_tokens for one in used)
        priced = all(not one.unpriced for one in used)
        fields[f"{role}_tokens"] = sum(one.tokens.total_tokens for one in used) if told else None
        fields[f"{role}_cost"] = sum(one.cost or 0.0 for one in used) if priced else None
    if any(finding.metadata.get(UNSEEN_MODEL) for finding in findings):
        fields |= {"judge_tokens": None, "judge_cost": None}
    return fields
