"""What model calls cost, from a table that is part of the package; nothing is fetched.

``scripts/prices`` writes the table, from the data of genai-prices (licence: ``prices-licence.txt``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import orjson

from ..messages import TokensUsage

_COMPACT_DATE = re.compile(r"-(20\d\d)([01]\d)([0-3]\d)$")
Steps = list[tuple[int, float]]


def cost_of(provider: str, model: str, usage: TokensUsage, cached_tokens: int = 0) -> float | None:
    """US dollars for one call; ``None`` where the price is not known."""
    periods = _periods(provider, model.lower())
    if not periods:
        return None
    today = datetime.now(UTC).date().isoformat()
    prices = next(period for period in reversed(periods) if (period["from"] or "") <= today)
    cached = min(cached_tokens, usage.input_tokens) if "cached" in prices else 0
    counts = {"input": usage.input_tokens - cached, "cached": cached, "output": usage.output_tokens}
    dollars = sum(
        count * _step(prices[kind], usage.input_tokens) for kind, count in counts.items() if kind in prices
    )
    return dollars / 1_000_000


def _step(steps: Steps, input_tokens: int) -> float:
    """The price that holds for as much input: each step begins beyond its number of tokens."""
    return steps[max(0, bisect_left(steps, input_tokens, key=lambda step: step[0]) - 1)][1]


@lru_cache(maxsize=256)
def _periods(provider: str, model: str) -> list[dict[str, Any]]:
    """A model's prices with the day from which each holds; gateways write a model's date without dashes."""
    dashed = _COMPACT_DATE.sub(r"-\1-\2-\3", model)
    for name in dict.fromkeys((model, dashed)):
        for pattern, periods in _table().get(provider, ()):
            if re.search(pattern, name):
                return periods
    return []


@cache
def _table() -> dict[str, list[tuple[str, list[dict[str, Any]]]]]:
    # Names other than these are ones users chose for servers of their own, whose prices nobody knows.
    providers = orjson.loads((Path(__file__).parent / "prices.json").read_bytes())["providers"]
    return {
        name: [(model["name"], model["prices"]) for model in models] for name, models in providers.items()
    }
