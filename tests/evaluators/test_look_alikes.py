"""What looks alike hides no forbidden word, and makes none of words that are what they seem."""

from __future__ import annotations

import pytest

from evalstudio import run_evaluation
from evalstudio.evaluators.builtin.look_alikes import has_look_alikes, skeleton


async def outcome(response: str, kind: str, config: dict[str, object]) -> str:
    settings = {"evaluatorConfigs": [{"type": kind, "config": config}]}
    return (await run_evaluation({"response": response}, settings)).outcome


@pytest.mark.parametrize(
    "response",
    [
        "Это сор, а не мусор.",
        "Сор",
        "Письмо: сор из избы, see COPPER",
        "El año pasado",
        "Η Αθήνα and a COPPER pot",
        "5 μm of copper, α-helix",
    ],
)
async def test_words_that_are_what_they_seem_are_not_taken_for_others(response: str) -> None:
    assert await outcome(response, "toxicity", {"toxicTerms": ["cop", "ano"]}) == "pass"


async def test_what_must_be_there_must_be_written_as_it_is() -> None:
    """A look-alike is no refund: a check for a word that must occur does not get weaker."""
    disguised = "You get a r\u0435fund."
    assert await outcome(disguised, "regex", {"pattern": "refund"}) == "fail"
    includes = {"type": "includes", "keywords": ["refund"], "expectedOutcome": "any"}
    assert await outcome(disguised, "rule-based", {"rules": [includes]}) == "fail"
    least = {"type": "keyword_count", "keywords": ["refund"], "min": 1}
    assert await outcome(disguised, "rule-based", {"rules": [least]}) == "fail"
    assert await outcome(disguised, "keyword-coverage", {"expectedKeywords": ["refund"]}) == "fail"


async def test_many_terms_are_looked_for_in_the_same_way() -> None:
    terms = [f"term{number}" for number in range(100)] + ["peace"]
    assert await outcome("I want pe\u0430ce.", "toxicity", {"toxicTerms": terms}) == "fail"


def test_only_texts_that_mix_alphabets_are_suspicious() -> None:
    assert has_look_alikes("r\u0435fund")
    assert has_look_alikes("give me \u0440\u0435\u0430\u0441\u0435")
    assert not has_look_alikes("Нет. Это моё письмо in English")
    assert not has_look_alikes("plain text")
    assert not has_look_alikes("нет")
    assert skeleton("\u0420\u0415\u0410\u0421\u0415") == "PEACE"
