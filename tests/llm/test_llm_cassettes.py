"""Models on a cassette: answers, errors and vectors come back without provider, key or network."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.llm.opened import ASKED, KEY, MET, UNMET, WAS_MET, Verdict, settings_for
from tests.support.model_server import ModelServer, Recorded, Reply

from evalstudio.cassettes import Cassette, CassetteMiss
from evalstudio.evaluators.builtin.prompts import fenced, new_mark
from evalstudio.llm import Llm, LlmSettings, ModelError
from evalstudio.messages import Message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.jsonl"


async def record(path: Path, server: ModelServer, ask: Callable[[Llm], Awaitable[object]]) -> LlmSettings:
    """Ask while recording; the settings to replay with have no key."""
    with Cassette.record(path) as cassette:
        async with server:
            models = {"evaluation": "gpt-4o", "persona": "gpt-4o", "embedding": "small"}
            settings = settings_for(server, models=models)
            async with Llm(settings, cassette=cassette) as llm:
                await ask(llm)
    return settings.model_copy(update={"api_key": None})


def text_in(path: Path) -> str:
    return path.read_text()


def replayed(path: Path, settings: LlmSettings) -> Llm:
    return Llm(settings, cassette=Cassette.replay(path))


async def test_texts_objects_and_vectors_come_back_with_what_they_used(path: Path) -> None:
    def reply(request: Recorded) -> Reply:
        return Reply(text='{"reasoning": "It did.", "met": true, "confidence": 0.9}', tokens=(7, 3))

    async def ask(llm: Llm) -> tuple[object, ...]:
        return (
            await llm.chat(ASKED),
            await llm.answer(ASKED, Verdict),
            await llm.embed(["a", "b", "a", ""]),
            await llm.embed(["b"]),
        )

    heard: list[object] = []

    async def listen(llm: Llm) -> None:
        heard.append(await ask(llm))

    settings = await record(path, ModelServer(reply), listen)
    for _ in range(2):
        async with replayed(path, settings) as llm:
            assert await ask(llm) == heard[0]
            used = llm.usage["evaluation"]
            assert (used.calls, used.replayed, used.tokens.total_tokens, used.cost) == (0, 1, 0, None)
    assert len(text_in(path).splitlines()) == 5


async def test_a_repaired_answer_is_one_exchange(path: Path) -> None:
    settings = await record(path, ModelServer(["nonsense", MET]), lambda llm: llm.answer(ASKED, Verdict))
    async with replayed(path, settings) as llm:
        answer = await llm.answer(ASKED, Verdict)
    assert (answer.value, answer.usage.total_tokens) == (WAS_MET, 30)


@pytest.mark.parametrize("reply", [400, "no idea"])
async def test_errors_are_played_back_as_they_were(path: Path, reply: int | str) -> None:
    caught: list[ModelError] = []

    async def ask(llm: Llm) -> None:
        with pytest.raises(ModelError) as error:
            await llm.answer(ASKED, Verdict)
        caught.append(error.value)

    settings = await record(path, ModelServer(reply), ask)
    async with replayed(path, settings) as llm:
        await ask(llm)
    first, second = caught
    assert (str(first), first.raw, first.status) == (str(second), second.raw, second.status)


async def test_random_marks_do_not_make_another_request(path: Path) -> None:
    def marked() -> list[Message]:
        one, two = new_mark(), new_mark()
        return [
            Message(role="user", content=f"Between {one}:\n{fenced('a', 'x', one)}\n{fenced('b', 'y', two)}")
        ]

    settings = await record(path, ModelServer("fine"), lambda llm: llm.chat(marked()))
    assert "MARK1" in text_in(path)
    async with replayed(path, settings) as llm:
        assert (await llm.chat(marked())).value == "fine"
        swapped = marked()[0].text.replace("=== b", "=== c")
        with pytest.raises(CassetteMiss, match="=== c MARK2"):
            await llm.chat([Message(role="user", content=swapped)])


async def test_the_key_is_in_no_line_even_if_a_model_echoes_it(path: Path) -> None:
    asked = [*ASKED, Message(role="user", content=f"the key is {KEY}")]
    settings = await record(path, ModelServer(f"your key is {KEY}"), lambda llm: llm.chat(asked))
    assert KEY not in text_in(path)
    async with replayed(path, settings) as llm:
        blotted = [*ASKED, Message(role="user", content="the key is ***")]
        assert (await llm.chat(blotted)).value == "your key is ***"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"temperature": {"evaluation": 0.7}}, "temperature: asked 0.7, recorded 0"),
        ({"seed": 5}, "seed: asked 5, recorded null"),
        ({"models": {"evaluation": "gpt-5"}}, 'model: asked "gpt-5", recorded "gpt-4o"'),
        ({"structured": "tool"}, 'structured: asked "tool", recorded "native"'),
    ],
)
async def test_other_settings_are_another_request(path: Path, change: dict[str, object], where: str) -> None:
    settings = await record(path, ModelServer(MET), lambda llm: llm.answer(ASKED, Verdict))
    changed = LlmSettings.model_validate(settings.model_dump() | change)
    async with replayed(path, changed) as llm:
        with pytest.raises(CassetteMiss) as caught:
            await llm.answer(ASKED, Verdict)
    assert where in str(caught.value)


async def test_timeouts_and_limits_are_not_part_of_a_request(path: Path) -> None:
    settings = await record(path, ModelServer(MET), lambda llm: llm.answer(ASKED, Verdict))
    changed = settings.model_copy(update={"timeout_seconds": 1.0, "max_retries": 0})
    async with replayed(path, changed) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET


async def test_votes_come_back_in_order_and_all_at_once(path: Path) -> None:
    async def vote(llm: Llm) -> list[bool]:
        answers = await asyncio.gather(*(llm.answer(ASKED, Verdict) for _ in range(3)))
        return [answer.value.met for answer in answers]

    settings = await record(path, ModelServer([MET, UNMET, MET]), vote)
    for _ in range(2):
        async with replayed(path, settings) as llm:
            assert sorted(await vote(llm)) == [False, True, True]
            with pytest.raises(CassetteMiss, match="recorded 3 times"):
                await llm.answer(ASKED, Verdict)


async def test_replaying_loads_no_provider_and_needs_no_key(path: Path) -> None:
    asked = [Message(role="user", content="x")]
    settings = await record(path, ModelServer("fine"), lambda llm: llm.chat(asked))
    given = {"apiKey": "${NOT_SET}", "baseUrl": settings.base_url, "models": {"persona": "gpt-4o"}}
    code = f"""
import asyncio, sys
from evalstudio.cassettes import Cassette
from evalstudio.llm import Llm, LlmSettings
from evalstudio.messages import Message
llm = Llm(LlmSettings.model_validate({given!r}), cassette=Cassette.replay({str(path)!r}))
assert asyncio.run(llm.chat([Message(role="user", content="x")])).value == "fine"
loaded = {{"pydantic_ai", "openai", "httpx2", "aiohttp"}} & set(sys.modules)
assert not loaded, loaded
"""
    replaying = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await replaying.wait() == 0
