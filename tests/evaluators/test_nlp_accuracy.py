"""How close in meaning two texts are, by local embeddings or a provider's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.llm.opened import open_llm
from tests.support.model_server import ModelServer

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.nlp_accuracy import cosine, nlp_accuracy
from evalstudio.scoring.runner import run_evaluation

CLOSE = {"name": "close", "scale": "numeric"}


class Refuses:
    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        raise AssertionError("identical texts need no model")


class Vectors:
    def __init__(self, *vectors: list[float]) -> None:
        self.vectors = list(vectors)
        self.models: list[str | None] = []

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        self.models.append(model)
        return self.vectors


async def score(
    response: Any, reference: Any, *, criteria: Any = (CLOSE,), embedder: Any = None, **config: Any
) -> Any:
    record = {"response": response, "groundTruth": reference, "criteria": list(criteria)}
    entry = {"type": "nlp-accuracy", "config": {"criterionName": "close", **config}}
    return await run_evaluation(record, {"evaluatorConfigs": [entry]}, embedder=embedder)


@pytest.mark.parametrize("text", ["Hello", "Grüße", "🎌", "x" * 200_000])
async def test_identical_texts_score_exactly_one_without_any_model(text: str) -> None:
    result = await score(text, text, embedder=Refuses())
    assert result.overall_score == 1.0


async def test_composed_and_decomposed_letters_are_the_same_text() -> None:
    assert (await score("Gru\u0308ße", "Grüße", embedder=Refuses())).overall_score == 1.0


async def test_the_local_model_works_end_to_end_and_knows_near_from_far() -> None:
    near = await score("The parcel arrives on Monday.", "Your package will be delivered on Monday.")
    far = await score("The parcel arrives on Monday.", "Photosynthesis turns light into sugar.")
    assert near.results[0].error is None
    assert near.overall_score > far.overall_score + 0.2
    assert 0 <= far.overall_score < near.overall_score < 1


@pytest.mark.parametrize(
    ("response", "reference", "message"),
    [
        ("", "a", '"response" is empty'),
        ("a", "  ", '"groundTruth" is empty'),
        ("", "", "is empty"),
        ("a", None, 'no text at "groundTruth"'),
        ({"a": 1}, "a", 'no text at "response"'),
    ],
)
async def test_nothing_to_compare_is_an_error_and_no_score(
    response: Any, reference: Any, message: str
) -> None:
    result = await score(response, reference)
    assert message in result.results[0].error
    assert result.overall_score is None


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 0.0]], "1 vectors for 2 texts"),
        ([[1.0], [1.0], [1.0]], "3 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0]], "different dimensions: 2 and 1"),
        ([[0.0, 0.0], [1.0, 0.0]], "no direction"),
        ([[math.nan, 0.0], [1.0, 0.0]], "no direction"),
        ([[math.inf, 0.0], [1.0, 0.0]], "no direction"),
    ],
)
async def test_vectors_that_cannot_be_compared_are_an_error(vectors: Any, message: str) -> None:
    result = await score("a", "b", embedder=Vectors(*vectors))
    assert message in result.results[0].error


async def test_the_criterions_scale_and_the_threshold_apply() -> None:
    half = Vectors([1.0, 0.0], [1.0, math.sqrt(3)])
    likert = await score("a", "b", criteria=[{"name": "close", "scale": "likert5"}], embedder=half)
    assert likert.results[0].score == pytest.approx(3.0)
    strict = await score("a", "b", embedder=half, similarityThreshold=0.51)
    assert not strict.success
    assert strict.overall_score == pytest.approx(0.5)


async def test_opposite_meanings_score_nothing_and_never_less() -> None:
    assert (await score("a", "b", embedder=Vectors([1.0], [-1.0]))).overall_score == 0.0


async def test_a_named_model_is_asked_through_the_provider() -> None:
    async with ModelServer() as server, open_llm(server) as llm:
        result = await score("one", "two", embedder=llm, embeddingModel="openai:small")
        assert server.requests[0].path == "/v1/embeddings"
        assert server.requests[0].body["model"] == "small"
    assert result.results[0].error is None


async def test_a_named_model_without_a_provider_is_an_error_that_says_what_to_do() -> None:
    result = await score("one", "two", embeddingModel="openai:small")
    assert "set llmSettings" in result.results[0].error


async def test_an_object_may_be_the_model() -> None:
    model = Vectors([1.0], [1.0])
    assert (await score("a", "b", embeddingModel=model, embedder=Refuses())).overall_score == 1.0
    assert model.models == [None]


async def test_a_criterion_that_the_record_leaves_out_gives_no_result() -> None:
    result = await score("a", "b", criteria=[{**CLOSE, "name": "other"}])
    assert (result.results, result.outcome) == ([], "unasserted")


async def test_a_criterion_that_nobody_declares_is_refused() -> None:
    with pytest.raises(InvalidInput, match='"close" is not among the criteria'):
        await score("a", "b", criteria=[])


@pytest.mark.parametrize(
    "config", [{"embeddingModel": 5}, {"embeddingModel": " "}, {"threshold": 2}, {"treshold": 1}]
)
def test_a_wrong_config_is_refused_when_loaded(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        nlp_accuracy.use(config)


numbers = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
def test_the_cosine_is_symmetric_and_within_bounds(pairs: list[tuple[float, float]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    if not any(one) or not any(other):
        return
    assert 0.0 <= cosine(one, other) <= 1.0
    assert cosine(one, other) == pytest.approx(cosine(other, one))
    assert cosine(one, one) == 1.0
    assert cosine(one, [3 * x for x in one]) == 1.0
