"""Texts that wait to be embedded at the same moment share one request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.llm.opened import open_llm
from tests.support.model_server import ModelServer, Recorded, refusal, vector_of

from evalstudio.llm.embeddings import BatchingEmbedder
from evalstudio.llm.settings import ModelError


class Counted:
    """Embeds a text as its length, and remembers what it was asked."""

    def __init__(self, error: Exception | None = None, lose: int = 0) -> None:
        self.asked: list[tuple[str | None, list[str]]] = []
        self.error = error
        self.lose = lose

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        self.asked.append((model, list(texts)))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return [[float(len(text))] for text in texts][: len(texts) - self.lose]


async def test_calls_of_one_moment_are_asked_together_and_each_gets_its_own() -> None:
    behind = Counted()
    batching = BatchingEmbedder(behind)
    answers = await asyncio.gather(*(batching.embed(["x" * n, "y"]) for n in range(1, 6)))
    assert answers == [[[float(n)], [1.0]] for n in range(1, 6)]
    assert len(behind.asked) == 1


async def test_models_are_asked_apart() -> None:
    behind = Counted()
    batching = BatchingEmbedder(behind)
    await asyncio.gather(batching.embed(["a"]), batching.embed(["b"], model="other"), batching.embed(["c"]))
    assert sorted(behind.asked, key=str) == [("other", ["b"]), (None, ["a", "c"])]


async def test_a_later_call_is_a_request_of_its_own() -> None:
    behind = Counted()
    batching = BatchingEmbedder(behind)
    await batching.embed(["a"])
    await batching.embed(["b"])
    assert len(behind.asked) == 2


async def test_whoever_stops_waiting_costs_nobody_else_the_answer() -> None:
    behind = Counted()
    batching = BatchingEmbedder(behind)
    tasks = [asyncio.ensure_future(batching.embed([text])) for text in ("a", "bb", "ccc")]
    await asyncio.sleep(0)
    tasks[1].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[0] == [[1.0]]
    assert isinstance(answers[1], asyncio.CancelledError)
    assert answers[2] == [[3.0]]


async def test_a_failure_reaches_everyone_who_waited_and_nobody_later() -> None:
    behind = Counted(RuntimeError("no model"))
    batching = BatchingEmbedder(behind)
    answers = await asyncio.gather(*(batching.embed([text]) for text in "abc"), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["no model"] * 3
    assert len(behind.asked) == 1
    behind.error = None
    assert await batching.embed(["dd"]) == [[2.0]]


async def test_a_model_that_loses_vectors_is_an_error_and_never_a_wrong_answer() -> None:
    batching = BatchingEmbedder(Counted(lose=1))
    answers = await asyncio.gather(batching.embed(["a"]), batching.embed(["b"]), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["the embedding model gave 1 vectors for 2 texts"] * 2


async def test_a_text_the_server_refuses_does_not_cost_the_others_their_vectors() -> None:
    def reply(request: Recorded) -> Any:
        return refusal(400, "this text is not allowed") if "forbidden" in request.body["input"] else "fine"

    async with ModelServer(reply) as server, open_llm(server) as llm:
        batching = BatchingEmbedder(llm)
        asked = [batching.embed([text], model="openai:small") for text in ("good", "forbidden", "fine")]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert answers[0] == [pytest.approx(vector_of("good"))]
    assert isinstance(answers[1], ModelError)
    assert answers[2] == [pytest.approx(vector_of("fine"))]


async def test_a_server_that_is_down_is_not_asked_once_per_text() -> None:
    async with ModelServer(500) as server, open_llm(server, maxRetries=0) as llm:
        batching = BatchingEmbedder(llm)
        asked = [batching.embed([text], model="openai:small") for text in "abcdefgh"]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert len(server.requests) == 1
    assert all(isinstance(answer, ModelError) for answer in answers)
