"""Structured answers: strict reading, one repair, then an error that keeps the reply."""

from __future__ import annotations

import json

import pytest
from tests.llm.opened import ASKED, KEY, MET, UNMET, WAS_MET, Verdict, open_llm
from tests.support.model_server import ModelServer, Recorded, Reply, refusal

from evalstudio.llm import ModelError


@pytest.mark.parametrize("wrapping", ["{}", "```json\n{}\n```", " {}\n"])
async def test_an_answer_is_read_alone_or_alone_in_a_fence(wrapping: str) -> None:
    async with ModelServer(wrapping.replace("{}", json.dumps(MET))) as server, open_llm(server) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert len(server.requests) == 1


async def test_an_invalid_answer_is_repaired_once_with_the_error() -> None:
    async with ModelServer(['{"reasoning": "x", "met": "perhaps"}', MET]) as server, open_llm(server) as llm:
        answer = await llm.answer(ASKED, Verdict)
        assert llm.usage["evaluation"].repairs == 1
    assert answer.value == WAS_MET
    assert answer.usage.total_tokens == 30
    second = server.requests[1].texts
    assert second[:4] == server.requests[0].texts
    assert second[4] == '{"reasoning": "x", "met": "perhaps"}'
    assert "met: Input should be a valid boolean" in second[5]
    assert '"confidence"' in second[5]


@pytest.mark.parametrize(
    "reply", ["no idea", "", json.dumps(MET)[:20], f"{json.dumps(MET)}{json.dumps(UNMET)}"]
)
async def test_a_second_invalid_answer_is_an_error_that_keeps_the_reply(reply: str) -> None:
    async with ModelServer(reply) as server, open_llm(server) as llm:
        with pytest.raises(
            ModelError, match=r"gpt-4o \(openai at http.* gave no usable answer, twice"
        ) as caught:
            await llm.answer(ASKED, Verdict)
    assert caught.value.raw == reply
    assert len(server.requests) == 2


async def test_a_reply_cut_off_at_the_token_limit_is_invalid_even_if_it_parses() -> None:
    async with ModelServer(Reply(text=json.dumps(MET), finish="length")) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="token limit"):
            await llm.answer(ASKED, Verdict)


async def test_a_refusal_by_the_content_filter_is_invalid() -> None:
    async with ModelServer(Reply(text="", finish="content_filter")) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="content filter declined"):
            await llm.answer(ASKED, Verdict)


async def test_text_instead_of_the_tool_call_is_read_too() -> None:
    async with ModelServer(MET) as server, open_llm(server, structured="tool") as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET


async def test_a_wrong_tool_call_is_repaired_once() -> None:
    replies = [Reply(tool={"met": 7}), Reply(tool=MET)]
    async with ModelServer(replies) as server, open_llm(server, structured="tool") as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert len(server.requests) == 2


async def test_a_server_that_does_not_know_schemas_is_asked_with_a_tool_from_then_on() -> None:
    def old_server(request: Recorded) -> Reply:
        if "response_format" in request.body:
            return refusal(400, "Unknown parameter: 'response_format'.")
        return Reply(tool=MET)

    async with ModelServer(old_server) as server, open_llm(server) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert ["response_format" in request.body for request in server.requests] == [True, False, False]


async def test_a_key_echoed_in_a_reply_does_not_get_into_the_error() -> None:
    async with ModelServer(f"your key is {KEY}") as server, open_llm(server) as llm:
        with pytest.raises(ModelError) as caught:
            await llm.answer(ASKED, Verdict)
    assert caught.value.raw == "your key is ***"
    assert KEY not in repr(caught.value)


async def test_half_a_surrogate_pair_in_a_message_is_made_harmless() -> None:
    body = (
        b'{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",'
        b'"message":{"role":"assistant","content":"a \\ud83d b"}}]}'
    )
    async with ModelServer(Reply(body=body)) as server, open_llm(server) as llm:
        assert (await llm.chat(ASKED)).value == "a \ufffd b"


async def test_a_huge_conversation_is_sent_whole() -> None:
    text = "żółw 🐢 " * 200_000
    asked = [ASKED[0].model_copy(update={"role": "user", "content": text})]
    async with ModelServer("ok") as server, open_llm(server) as llm:
        await llm.chat(asked)
    assert server.requests[0].texts == [text]
