"""Evaluators written as classes, registered as they are."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from evalstudio import create_registry, run_evaluators
from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.definition import adapt_class, is_class_style
from evalstudio.evaluators.records import CriterionResult
from evalstudio.plugins import PluginError
from evalstudio.testing import context


class Polite:
    """The agent says please."""

    type = "polite-words"
    made: ClassVar[int] = 0

    def __init__(self, words: tuple[str, ...] = ("please",)) -> None:
        if not words:
            raise ValueError("words must not be empty")
        self.words = words
        Polite.made += 1

    async def evaluate(self, record: Any, criteria: list[Any]) -> list[CriterionResult]:
        found = any(word in record.response for word in self.words)
        return [CriterionResult(criterion.name, found, "looked") for criterion in criteria]


def test_a_class_and_an_object_count_and_other_things_do_not() -> None:
    assert is_class_style(Polite)
    assert is_class_style(Polite())
    for other in (object(), str, 5, None, {"type": "x", "evaluate": print}):
        assert not is_class_style(other)


def test_the_definition_is_read_off_the_class() -> None:
    definition = adapt_class(Polite)
    assert (definition.type, definition.label, definition.kind) == (
        "polite-words",
        "Polite Words",
        "assertion",
    )
    assert definition.description == "The agent says please."
    assert definition.gate == "finally"
    assert definition.is_async


def test_it_is_listed_and_cannot_override_another() -> None:
    registry = create_registry()
    registry.register(Polite)
    assert "polite-words" in [item["type"] for item in registry.list_evaluator_types()]
    with pytest.raises(PluginError, match="already registered"):
        registry.register(Polite())


async def test_the_object_is_made_once_per_entry_and_not_per_call() -> None:
    entry = adapt_class(Polite).use(words=("hello",))
    before = Polite.made
    ctx = context("hello", criteria=[{"name": "kind"}])
    for _ in range(3):
        verdict = await run_evaluators([entry], ctx.facts)
        assert verdict.overall_score == 1.0
    assert Polite.made == before


@pytest.mark.parametrize("config", [{"words": ()}, {"wrds": ("a",)}])
def test_a_config_the_class_does_not_take_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="polite-words"):
        adapt_class(Polite).use(config)


async def test_it_sees_a_live_turn_as_a_record() -> None:
    seen: list[Any] = []

    class Looks:
        type = "looks"
        kind = "metric"

        def evaluate(self, record: Any, criteria: Any) -> list[Any]:
            seen.append(record)
            return [{"criterionName": "size", "score": len(record.response)}]

    messages = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hello"}]
    ctx = context(messages=messages, criteria=[{"name": "size", "scale": "numeric", "range": [0, 10]}])
    verdict = await run_evaluators([adapt_class(Looks()).use()], ctx.facts)
    assert (seen[0].prompt, seen[0].response, len(seen[0].message_history)) == ("Hi?", "Hello", 2)
    assert verdict.overall_score == 0.5


async def test_an_error_in_a_result_stays_an_error() -> None:
    class Errs:
        type = "errs"

        async def evaluate(self, record: Any, criteria: Any) -> list[Any]:
            return [
                CriterionResult("kind", error="no data", metadata={"tries": 2}),
                {"criterionName": "kind", "score": True},
            ]

    verdict = await run_evaluators(
        [adapt_class(Errs()).use()], context("x", criteria=[{"name": "kind"}]).facts
    )
    first, second = verdict.evaluator_results
    assert (first.error, first.criterion_name, first.metadata) == ("no data", "kind", {"tries": 2})
    assert second.holds
