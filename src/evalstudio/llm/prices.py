"""What tokens cost, where that is known. The numbers are in ``prices.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from ..messages import TokensUsage

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
