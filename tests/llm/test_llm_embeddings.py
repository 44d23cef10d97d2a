"""Vectors: the local model, remote ones, and what must not pass for a vector."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from tests.llm.opened import KEY, open_llm
from tests.support.model_server import ModelServer, Reply, refusal, vector_of

from evalstudio.llm import Llm, LlmSettings, LocalEmbedder, ModelError
from evalstudio.llm.embeddings import batches


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


async def test_identical_texts_have_identical_vectors_and_related_ones_are_near() -> None:
    texts = [
        "The flight is booked.",
        "The flight is booked.",
        "Your flight was reserved.",
        "Bananas are yellow.",
    ]
    first, same, near, far = await LocalEmbedder().embed(texts)
    assert first == same
    assert cosine(first, near) > cosine(first, far) + 0.1
    assert all(isinstance(number, float) for number in first)


async def test_the_local_model_is_the_default_and_needs_no_key() -> None:
    async with Llm(LlmSettings.model_validate({})) as llm:
        assert await llm.embed(["a b c"]) == await LocalEmbedder().embed(["a b c"], model="wordllama")


async def test_ugly_texts_have_finite_vectors() -> None:
    texts = ["", " ", "\x00", "🐢" * 50, "żółw", "\ud800 half", "a" * 500_000, "مرحبا", "\n\n\t"]
    vectors = await LocalEmbedder().embed(texts)
    assert len(vectors) == len(texts)
    assert all(math.isfinite(number) for vector in vectors for number in vector)


async def test_the_company_of_a_text_does_not_change_its_vector() -> None:
    texts = [f"text number {n} " * (n % 7 + 1) for n in range(200)]
    together = await LocalEmbedder().embed(texts)
    alone = (await LocalEmbedder().embed([texts[123]]))[0]
    assert len(together) == 200
    assert together[123] == pytest.approx(alone, abs=1e-5)


async def test_no_texts_are_no_vectors() -> None:
    assert await LocalEmbedder().embed([]) == []


async def test_another_model_needs_a_provider() -> None:
    with pytest.raises(ModelError, match='"openai:text-embedding-3-small" needs a provider'):
        await LocalEmbedder().embed(["x"], model="openai:text-embedding-3-small")


def run(code: str) -> str:
    asking = "import asyncio, logging, sys\nfrom evalstudio.llm import LocalEmbedder\n"
    done = subprocess.run([sys.executable, "-c", asking + code], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_missing_package_is_reported_with_the_command() -> None:
    code = (
        "sys.modules['wordllama'] = None\ntry: asyncio.run(LocalEmbedder().embed(['x']))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    said = run(code)
    assert said.startswith("ModelError")
    assert 'pip install "evalstudio[embeddings]"' in said


def test_loading_leaves_the_programs_logging_alone() -> None:
    code = (
        "root = logging.getLogger()\nbefore = (root.handlers[:], root.level)\n"
        "asyncio.run(LocalEmbedder().embed(['x']))\nprint((root.handlers, root.level) == before)"
    )
    assert run(code) == "True\n"


WRONG_VECTORS: list[tuple[list[list[float]], str]] = [
    ([[1.0]], "1 vectors for 2 texts"),
    ([[1.0], [1.0, 2.0]], "different or no length"),
    ([[], []], "no length"),
]


async def test_remote_vectors_come_in_the_order_of_the_texts() -> None:
    texts = [f"text {n}" for n in range(150)]
    models = {"embedding": "text-embedding-3-small"}
    async with ModelServer("") as server, open_llm(server, models=models) as llm:
        assert await llm.embed(texts) == [vector_of(text) for text in texts]
        assert llm.usage["embedding"].tokens.total_tokens == 150
        assert llm.usage["embedding"].cost == pytest.approx(150 * 0.02 / 1e6)
    assert [len(request.body["input"]) for request in server.requests] == [64, 64, 22]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].body["encoding_format"] == "float"


async def test_vectors_sent_out_of_order_are_put_in_order() -> None:
    data = [{"object": "embedding", "index": i, "embedding": [float(i)]} for i in (2, 0, 1)]
    body = json.dumps({"object": "list", "data": data, "model": "m", "usage": None})
    async with ModelServer(Reply(body=body)) as server, open_llm(server) as llm:
        assert await llm.embed(["a", "b", "c"], model="openai:m") == [[0.0], [1.0], [2.0]]


async def test_a_rate_limit_is_waited_out_for_embeddings_too() -> None:
    async with ModelServer([refusal(429, retry_after="0"), ""]) as server, open_llm(server) as llm:
        assert await llm.embed(["a"], model="openai:m") == [vector_of("a")]
        assert llm.usage["embedding"].retries == 1


@pytest.mark.parametrize(("vectors", "why"), WRONG_VECTORS)
async def test_wrong_vectors_are_an_error(vectors: list[list[float]], why: str) -> None:
    data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
    body = json.dumps(
        {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    )
    async with ModelServer(Reply(body=body)) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match=why):
            await llm.embed(["a", "b"], model="openai:m")


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "null",
        "<html>",
        '{"data": null}',
        '{"data": [{"embedding": "abc", "index": 0}]}',
        '{"data": [{"embedding": [1.0], "index": 0}, {"embedding": [2.0], "index": 0}]}',
        '{"data": [{"embedding": [1.0], "index": []}]}',
    ],
)
async def test_a_reply_without_vectors_is_an_error(body: str) -> None:
    async with ModelServer(Reply(body=body)) as server, open_llm(server, maxRetries=0) as llm:
        with pytest.raises(ModelError):
            await llm.embed(["a"], model="openai:m")


async def test_a_provider_without_embeddings_says_what_to_use() -> None:
    async with ModelServer() as server, open_llm(server, "anthropic") as llm:
        with pytest.raises(ModelError, match=r'set llmSettings\.models\.embedding to "wordllama"'):
            await llm.embed(["a"], model="claude")


def test_batches_are_neither_many_nor_large() -> None:
    assert list(batches([])) == []
    assert [len(batch) for batch in batches(["x"] * 130)] == [64, 64, 2]
    assert [len(batch) for batch in batches(["y" * 150_000] * 3)] == [1, 1, 1]
    assert [len(batch) for batch in batches(["z" * 900_000, "z"])] == [1, 1]
