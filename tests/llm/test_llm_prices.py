"""Costs, where they are known."""

from __future__ import annotations

import pytest

from evalstudio.llm.usage import cost_of
from evalstudio.messages import TokensUsage

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
