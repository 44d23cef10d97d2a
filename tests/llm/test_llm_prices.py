"""Costs, where they are known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.references import Reference

from evalstudio.llm.prices import cost_of
from evalstudio.messages import TokensUsage

# A table so long that checking its types took longer than those of all other files together.
PRICES: Any = Reference("genai_prices.data")
USED = TokensUsage(input_tokens=1_000_000, output_tokens=100_000)


@pytest.mark.parametrize(
    ("provider", "model", "dollars"),
    [
        ("openai", "gpt-4o", 3.5),
        ("openai", "gpt-4o-2024-11-20", 3.5),
        ("openai", "gpt-4o-2024-05-13", 6.5),
        ("anthropic", "claude-haiku-4-5-20251001", 1.5),
        ("openai", "text-embedding-3-small", 0.02),
    ],
)
def test_a_known_model_has_a_cost(provider: str, model: str, dollars: float) -> None:
    assert cost_of(provider, model, USED) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "my-finetune"), ("openai", "gpt-4o-mine"), ("ollama", "gpt-4o"), ("", ""), ("openai", "")],
)
def test_an_unknown_model_has_no_cost_rather_than_none_at_all(provider: str, model: str) -> None:
    assert cost_of(provider, model, USED) is None


def test_cached_tokens_cost_less() -> None:
    assert cost_of("openai", "gpt-4o", USED, cached_tokens=1_000_000) == pytest.approx(2.25)
    assert cost_of("openai", "gpt-4o", USED, cached_tokens=9_000_000) == pytest.approx(2.25)
    assert cost_of("openai", "gpt-4", USED, cached_tokens=1_000_000) == cost_of("openai", "gpt-4", USED)


NAMES = [
    "gpt-5.2-20251211",
    "GPT-4o",
    "gpt-4o-audio-preview",
    "gemini-2.5-pro",
    "o3",
    "claude-opus-4-6",
    "mine",
]
COUNTS = [(1_000, 100, 0), (200_000, 10, 50_000), (200_001, 10, 50_000), (5_000_000, 0, 5_000_000), (0, 7, 0)]


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_costs_are_those_of_the_package_the_table_was_made_from(provider: str) -> None:
    """Where this fails after an update of genai-prices: scripts/prices writes the table anew."""
    from genai_prices import Usage, calc_price

    ids = next([model.id for model in one.models] for one in PRICES.providers if one.id == provider)
    priced = 0
    for name in (*ids, *NAMES):
        for given, written, cached in COUNTS:
            usage = TokensUsage(input_tokens=given, output_tokens=written)
            cost = cost_of(provider, name, usage, cached)
            tokens = Usage(input_tokens=given, output_tokens=written, cache_read_tokens=cached)
            try:
                theirs = float(calc_price(tokens, name, provider_id=provider).total_price)
            except LookupError:
                assert cost is None, name
                continue
            # What is not paid by the token costs nothing there, and is unknown here.
            assert (cost or 0.0) == pytest.approx(theirs), name
            priced += cost is not None
    assert priced > 100
