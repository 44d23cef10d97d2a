"""The answer cache: paid for once, never wrong, never in the way."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.llm.opened import ASKED, KEY, MET, UNMET, WAS_MET, Verdict, settings_for
from tests.support.model_server import ModelServer

from evalstudio.cassettes import Cassette
from evalstudio.evaluators.builtin.prompts import fenced, new_mark
from evalstudio.llm import AnswerCache, Llm, ModelError
from evalstudio.messages import Message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def cached_llm(server: ModelServer, folder: Path, **changes: Any) -> Llm:
    return Llm(settings_for(server, **changes), cache=AnswerCache(folder))


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def block(folder: Path) -> None:
    folder.rmdir()
    folder.touch()


async def test_an_answer_given_before_makes_no_request_and_uses_no_tokens(folder: Path) -> None:
    async with ModelServer(MET) as server:
        async with cached_llm(server, folder) as llm:
            assert (await llm.answer(ASKED, Verdict)).usage.total_tokens == 15
        async with cached_llm(server, folder) as llm:
            answer = await llm.answer(ASKED, Verdict)
            used = llm.usage["evaluation"]
    assert len(server.requests) == 1
    assert (answer.value, answer.usage.total_tokens) == (WAS_MET, 0)
    assert (used.calls, used.cached, used.tokens.total_tokens, used.unpriced) == (0, 1, 0, 0)
    assert used.to_json()["cachedCalls"] == 1


class Other(Verdict):
    """Another question."""


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": {"evaluation": 0.5}},
        {"seed": 1},
        {"maxTokens": 10},
        {"models": {"evaluation": "gpt-4o-mini"}},
        {"structured": "tool"},
    ],
)
async def test_another_setting_is_another_question(folder: Path, change: dict[str, Any]) -> None:
    async with ModelServer(MET) as server:
        for changes in ({}, change):
            async with cached_llm(server, folder, **changes) as llm:
                await llm.answer(ASKED, Verdict)
    assert len(server.requests) == 2


async def test_another_schema_message_or_address_is_another_question(folder: Path) -> None:
    async with ModelServer(MET) as server, ModelServer(MET) as elsewhere:
        async with cached_llm(server, folder) as llm:
            await llm.answer(ASKED, Verdict)
            await llm.answer(ASKED, Other)
            await llm.answer(ASKED[:-1], Verdict)
            await llm.chat(ASKED)
        async with cached_llm(elsewhere, folder) as llm:
            await llm.answer(ASKED, Verdict)
    assert (len(server.requests), len(elsewhere.requests)) == (4, 1)


async def test_another_key_or_timeout_is_the_same_question(folder: Path) -> None:
    async with ModelServer(MET) as server:
        for changes in ({}, {"apiKey": "another-key", "timeoutSeconds": 5}):
            async with cached_llm(server, folder, **changes) as llm:
                await llm.answer(ASKED, Verdict)
    assert len(server.requests) == 1


async def test_random_marks_do_not_make_another_question(folder: Path) -> None:
    async with ModelServer("fine") as server:
        for _ in range(2):
            async with cached_llm(server, folder) as llm:
                await llm.chat([Message(role="user", content=fenced("a", "x", new_mark()))])
    assert len(server.requests) == 1


async def test_votes_stay_several_answers(folder: Path) -> None:
    async def vote(server: ModelServer) -> list[bool]:
        async with cached_llm(server, folder) as llm:
            return [(await llm.answer(ASKED, Verdict)).value.met for _ in range(3)]

    async with ModelServer([MET, UNMET, MET]) as server:
        assert await vote(server) == await vote(server) == [True, False, True]
    assert len(server.requests) == 3


async def test_what_failed_is_asked_again(folder: Path) -> None:
    async with ModelServer([400, "no idea", "still none", MET]) as server:
        for _ in range(2):
            async with cached_llm(server, folder) as llm:
                with pytest.raises(ModelError):
                    await llm.answer(ASKED, Verdict)
        assert files(folder) == []
        async with cached_llm(server, folder) as llm:
            assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert len(server.requests) == 4


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"key": "x", "response": {}}', b"\xff\x00"])
async def test_a_corrupt_entry_is_asked_again_and_mended(folder: Path, content: bytes) -> None:
    async with ModelServer(MET) as server:
        for _ in range(3):
            async with cached_llm(server, folder) as llm:
                assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
            if len(server.requests) == 1:
                (entry,) = files(folder)
                entry.write_bytes(content)
    assert len(server.requests) == 2


async def test_an_entry_that_no_longer_fits_is_asked_again(folder: Path) -> None:
    async with ModelServer(MET) as server:
        async with cached_llm(server, folder) as llm:
            await llm.answer(ASKED, Verdict)
        (entry,) = files(folder)
        entry.write_text(entry.read_text().replace("met", "meet"))
        async with cached_llm(server, folder) as llm:
            assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert len(server.requests) == 2


async def test_only_unknown_texts_are_embedded(folder: Path) -> None:
    models = {"embedding": "small"}
    async with ModelServer() as server:
        async with cached_llm(server, folder, models=models) as llm:
            first = await llm.embed(["a", "b", "a"])
        async with cached_llm(server, folder, models=models) as llm:
            second = await llm.embed(["b", "c", "a"])
            assert llm.usage["embedding"].cached == 2
            assert await llm.embed([]) == []
    assert [request.body["input"] for request in server.requests] == [["a", "b"], ["c"]]
    assert first == [second[2], second[0], second[2]]


async def test_the_key_is_in_no_file(folder: Path) -> None:
    async with ModelServer(f"your key is {KEY}") as server, cached_llm(server, folder) as llm:
        await llm.chat(ASKED)
    (entry,) = files(folder)
    assert KEY not in entry.read_text()


async def test_the_folder_stays_within_its_size_and_what_was_used_last_stays(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, max_bytes=20_000)
    for number in range(30):
        await cache.put(f"{number:02}-first", {"text": "x" * 1000})
        os.utime(tmp_path / f"{number:02}" / f"{number:02}-first.json", (number, number))
        assert await cache.get("00-first")
    assert 10_000 < sum(path.stat().st_size for path in files(tmp_path)) <= 20_000
    assert await cache.get("29-first")
    assert await cache.get("01-first") is None


async def test_several_processes_share_a_folder(tmp_path: Path) -> None:
    code = f"""
import asyncio
from evalstudio.llm import AnswerCache
async def work():
    cache = AnswerCache({str(tmp_path)!r}, max_bytes=50_000)
    for number in range(300):
        key = f"{{number % 40:02}}-key"
        await cache.put(key, {{"text": "x" * 2000}})
        found = await cache.get(key)
        assert found is None or found == {{"text": "x" * 2000}}, found
asyncio.run(work())
"""
    workers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", code, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for worker in workers:
        _, error = await worker.communicate()
        assert worker.returncode == 0, error.decode()
    assert {path.suffix for path in files(tmp_path)} == {".json"}


async def test_a_folder_that_cannot_be_used_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="no answers can be kept there"):
        AnswerCache(tmp_path / "file")


async def test_a_full_disk_does_not_stop_a_run(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with ModelServer("fine") as server, cached_llm(server, folder) as llm:
        block(folder)
        assert [(await llm.chat(ASKED)).value for _ in range(2)] == ["fine", "fine"]
    assert caplog.text.count("answers are not kept") == 1


async def test_what_comes_from_the_cache_is_recorded_too(folder: Path, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    async with ModelServer(MET) as server:
        async with cached_llm(server, folder) as llm:
            first = await llm.answer(ASKED, Verdict)
        with Cassette.record(tape) as cassette:
            async with Llm(settings_for(server), cache=AnswerCache(folder), cassette=cassette) as llm:
                await llm.answer(ASKED, Verdict)
        settings = settings_for(server)
    assert len(server.requests) == 1
    async with Llm(settings, cache=AnswerCache(folder), cassette=Cassette.replay(tape)) as llm:
        assert await llm.answer(ASKED, Verdict) == first
        assert (llm.usage["evaluation"].replayed, llm.usage["evaluation"].cached) == (1, 0)


async def test_the_memory_of_what_was_asked_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstudio.llm.cache._MOST_COUNTED", 3)
    cache = AnswerCache(folder)
    first = cache.key({"n": 0})
    assert cache.key({"n": 0}) == f"{first}-2"
    for number in range(1, 5):
        cache.key({"n": number})
    assert cache.key({"n": 0}) == first
