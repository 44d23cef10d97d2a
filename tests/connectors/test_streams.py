"""Answers as agents send them: text, JSON lines and server-sent events; whole, or a fault that says why."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.agent_server import AgentServer, Answer, sse
from tests.support.sessions import ask, session_of

from evalstudio.connectors.contract import ConnectorError
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.openai import openai_agent
from evalstudio.connectors.replies import AgentReply
from evalstudio.connectors.stream_events import looks_like_call
from evalstudio.messages import TokensUsage

DONE = "data: [DONE]"


async def reply_to(pool: HttpPool, answer: Answer, **config: Any) -> AgentReply:
    async with AgentServer(answer) as agent:
        return await ask(session_of(http_agent, pool, config, url=agent.url))


async def fault_of(pool: HttpPool, answer: Answer, **config: Any) -> str:
    with pytest.raises(ConnectorError) as caught:
        await reply_to(pool, answer, **config)
    return str(caught.value)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_part(
    index: int, arguments: str, name: str | None = None, call_id: str | None = None
) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function} | ({"id": call_id} if call_id else {})


OPENAI = sse(
    chunk(role="assistant", content=""),
    chunk(content="Hel"),
    ": keep alive",
    chunk(content="lo"),
    chunk(tool_calls=[call_part(0, "", "find", "c1")]),
    chunk(tool_calls=[call_part(0, '{"id"'), call_part(1, "{}", "book", "c2")]),
    chunk(tool_calls=[call_part(0, ": 7}")]),
    chunk("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}},
    DONE,
)


def anthropic_event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}"


ANTHROPIC = sse(
    anthropic_event("message_start", message={"usage": {"input_tokens": 3, "output_tokens": 1}}),
    anthropic_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    anthropic_event("ping"),
    anthropic_event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"}),
    anthropic_event("content_block_delta", index=0, delta={"type": "text_delta", "text": "lo"}),
    anthropic_event("content_block_stop", index=0),
    anthropic_event(
        "content_block_start",
        index=1,
        content_block={"type": "tool_use", "id": "c1", "name": "find", "input": {}},
    ),
    anthropic_event(
        "content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"id"'}
    ),
    anthropic_event(
        "content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": ": 7}"}
    ),
    anthropic_event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 4}),
    anthropic_event("message_stop"),
)
RESPONSES = sse(
    {"type": "response.created", "response": {}},
    {"type": "response.output_text.delta", "delta": "Hel"},
    {"type": "response.output_text.delta", "delta": "lo"},
    {
        "type": "response.output_item.done",
        "item": {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"id": 7}'},
    },
    {"type": "response.completed", "response": {"usage": {"input_tokens": 3, "output_tokens": 4}}},
)
GEMINI = sse(
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}]},
    {
        "candidates": [
            {
                "content": {"parts": [{"text": "lo"}, {"functionCall": {"name": "find", "args": {"id": 7}}}]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4},
    },
)
VERCEL = sse(
    {"type": "start"},
    {"type": "text-start", "id": "0"},
    {"type": "text-delta", "id": "0", "delta": "Hel"},
    {"type": "text-delta", "id": "0", "delta": "lo"},
    {"type": "tool-input-available", "toolCallId": "c1", "toolName": "find", "input": {"id": 7}},
    {"type": "finish"},
    DONE,
)
DATA_STREAM = Answer(
    body=b'0:"Hel"\n0:"lo"\n9:{"toolCallId":"c1","toolName":"find","args":{"id":7}}\n'
    b'd:{"finishReason":"stop","usage":{"promptTokens":3,"completionTokens":4}}\n',
    content_type="text/plain",
    headers={"X-Vercel-AI-Data-Stream": "v1"},
)


def lines(*values: Any, content_type: str = "application/x-ndjson") -> Answer:
    return Answer(body="".join(json.dumps(one) + "\n" for one in values).encode(), content_type=content_type)


OLLAMA = lines(
    {"message": {"role": "assistant", "content": "Hel"}, "done": False},
    {
        "message": {"content": "lo", "tool_calls": [{"function": {"name": "find", "arguments": {"id": 7}}}]},
        "done": False,
    },
    {"message": {"content": ""}, "done": True, "prompt_eval_count": 3, "eval_count": 4},
)


@pytest.mark.parametrize(
    "answer", [OPENAI, ANTHROPIC, RESPONSES, GEMINI, DATA_STREAM, OLLAMA], ids=lambda one: one.content_type
)
async def test_every_protocol_adds_up_to_its_text_its_call_and_its_usage(pool: HttpPool, answer: Answer):
    reply = await reply_to(pool, answer)
    (message,) = reply.messages
    assert message.text == "Hello"
    first = (message.tool_calls or [])[0]
    assert (first.name, first.arguments()) == ("find", {"id": 7})
    assert reply.tokens_usage == TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert reply.first_token_ms is not None
    assert reply.first_token_ms <= reply.latency_ms


async def test_vercels_message_stream_has_text_and_calls(pool: HttpPool):
    (message,) = (await reply_to(pool, VERCEL)).messages
    assert (message.text, (message.tool_calls or [])[0].name) == ("Hello", "find")


async def test_parallel_calls_of_a_stream_stay_apart(pool: HttpPool):
    (message,) = (await reply_to(pool, OPENAI)).messages
    assert [(call.id, call.name) for call in message.tool_calls or ()] == [("c1", "find"), ("c2", "book")]


@pytest.mark.parametrize(
    ("answer", "config", "texts"),
    [
        (sse("data: Hel", "data: lo", "data: !"), {}, ["Hello!"]),
        (sse("data: one\ndata: two"), {}, ["one\ntwo"]),
        (sse("data: 4", "data: 2"), {}, ["42"]),
        (sse('data: "Hel"', 'data: "lo\\n"'), {}, ["Hello\n"]),
        (sse({"delta": "Hel"}, {"delta": "lo"}), {}, ["Hello"]),
        (sse({"text": "Hel"}, {"text": "lo"}, "event: done\ndata: {}"), {}, ["Hello"]),
        (sse("data: {", "data: }", DONE), {"responseFormat": "sse-text"}, ["{}"]),
        (
            sse({"d": {"t": "Hel"}}, {"kind": "status"}, {"d": {"t": "lo"}}),
            {"responsePath": "d.t"},
            ["Hello"],
        ),
        (sse("data: Hel", "data: lo", end=DONE), {}, ["Hello"]),
        (sse({"text": "Hi"}, "data: bye"), {"streamEnd": "bye"}, ["Hi"]),
        (lines({"text": "Hel"}, {"text": "lo"}), {}, ["Hello"]),
        (lines("Hel", "lo", content_type="application/jsonl"), {}, ["Hello"]),
        (lines({"role": "assistant", "content": "a"}, {"role": "tool", "content": "b"}), {}, ["a", "b"]),
        (lines({"message": "whole"}), {}, ["whole"]),
        (Answer(body=b"Just text.", content_type="text/plain"), {}, ["Just text."]),
        (
            Answer(body="Grüße".encode("latin-1"), content_type="text/plain; charset=iso-8859-1"),
            {},
            ["Grüße"],
        ),
        (Answer(body=b'{"message": "JSON"}', content_type="text/plain"), {}, ["JSON"]),
        (Answer(body=b'{"a": 1}', content_type="text/plain"), {"responseFormat": "text"}, ['{"a": 1}']),
        (Answer(body=b"{not json", content_type="text/plain"), {}, ["{not json"]),
        (
            Answer(body=b'{"message": "x"}', content_type="text/event-stream"),
            {"responseFormat": "json"},
            ["x"],
        ),
    ],
)
async def test_other_streams_and_texts_are_read(
    pool: HttpPool, answer: Answer, config: dict[str, Any], texts: list[str]
):
    reply = await reply_to(pool, answer, **config)
    assert [message.text for message in reply.messages] == texts


async def test_calls_usage_and_thread_of_a_stream_are_found_by_their_paths(pool: HttpPool):
    answer = sse(
        {"say": "Looking."},
        {"do": {"name": "find", "args": {"id": 7}}},
        {"cost": {"input": 3, "output": 1}, "session": "s-1"},
    )
    paths = {"responsePath": "say", "toolCallsPath": "do", "usagePath": "cost", "threadIdPath": "session"}
    reply = await reply_to(pool, answer, **paths)
    (message,) = reply.messages
    assert (message.tool_calls or [])[0].arguments() == {"id": 7}
    assert (reply.thread_id, reply.tokens_usage and reply.tokens_usage.input_tokens) == ("s-1", 3)


def cut_off(answer: Answer, events: int) -> Answer:
    """The stream without its last events, properly closed: only its own end can tell."""
    assert answer.body is not None
    gap = b"\n\n" if answer.content_type == "text/event-stream" else b"\n"
    return replace(answer, body=gap.join(answer.body.split(gap)[: -1 - events]) + gap)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (cut_off(OPENAI, 3), "ended without a finish_reason or [DONE]"),
        (cut_off(ANTHROPIC, 1), "ended without message_stop"),
        (cut_off(RESPONSES, 1), "ended without response.completed"),
        (cut_off(GEMINI, 1), "ended without a finishReason"),
        (cut_off(VERCEL, 2), "ended without a part of the type finish"),
        (cut_off(OLLAMA, 1), 'ended without "done": true'),
        (cut_off(DATA_STREAM, 1), "ended without a part d"),
        (replace(OPENAI, drop_after=120), "broke off in the middle of its answer"),
        (sse("data: Hel", end="data: lo"), "broke off in the middle of an event: lo"),
        (sse({"text": "Hel"}, end='data: {"te'), 'broke off in the middle of an event: {"te'),
        (Answer(pieces=[b"Hel", b"lo"], content_type="text/plain", drop_after=0), "broke off in the middle"),
        (sse("event: error\ndata: overloaded"), "reported an error in its stream: overloaded"),
        (sse({"text": "Hi"}, "event: error"), "reported an error in its stream: (without a text)"),
        (sse("data: Hel", 'data: {"error": "kaput"}'), "reported an error in its stream: kaput"),
        (sse(chunk(content="Hel"), {"error": {"message": "overloaded"}}), "in its stream: overloaded"),
        (sse(anthropic_event("error", error={"type": "x", "message": "Overloaded"})), "Overloaded"),
        (sse({"type": "response.failed", "response": {"error": {"message": "no"}}}), "in its stream: no"),
        (sse({"type": "error", "errorText": "no tool"}), "in its stream: no tool"),
        (sse(chunk("error", content="")), "reported an error in its stream"),
        (replace(DATA_STREAM, body=b'0:"Hi"\n3:"kaput"\n'), "in its stream: kaput"),
        (sse('data: {"choices": [{"del'), "sent an event that is not JSON"),
        (sse({"text": "Hi"}, "data: oops"), "sent an event that is not JSON: oops"),
        (sse({"kind": "status", "state": "thinking"}), "an event whose text was not found (set responsePath"),
        (sse({"type": "token", "text": "Hi"}), "an event whose text was not found (set responsePath"),
        (sse([1, 2]), "sent an event that is no object: [1,2]"),
        (sse("hello there"), "sent a line that is no server-sent event: hello there"),
        (sse(), "sent an empty stream"),
        (sse(": only comments"), "sent an empty stream"),
        (Answer(body=b"data: \xff\xfe\n\n", content_type="text/event-stream"), "not UTF-8"),
        (
            Answer(body=b'{"text": "a"}\n{"text": \n', content_type="application/x-ndjson"),
            "not JSON (line 2)",
        ),
        (Answer(body=b"", content_type="application/x-ndjson"), "sent an empty stream"),
        (Answer(body=b"", content_type="text/plain"), "an empty answer where text was expected"),
        (Answer(body=b" \n", content_type="text/plain"), "an empty answer where text was expected"),
        (Answer(body=b"\xff\xfe", content_type="text/plain"), "text that cannot be decoded"),
        (Answer(body=b"<html><title>Oops</title></html>", content_type="text/plain"), "an HTML page"),
        (Answer(json={"error": {"message": "quota"}, "message": "Sorry"}), "answered with an error: quota"),
        (Answer(json={"success": False, "message": "Sorry"}), "it reports success: false"),
        (Answer(json={"status": "error", "message": "Sorry"}), "answered with an error"),
        (Answer(json={"errors": [{"message": "x"}], "message": "Sorry"}), "answered with an error"),
    ],
)
async def test_what_is_not_a_whole_answer_is_a_fault(pool: HttpPool, answer: Answer, words: str):
    message = await fault_of(pool, answer)
    assert words in message
    assert len(message) < 1_000


async def test_a_stream_without_the_end_that_is_configured_broke_off(pool: HttpPool):
    assert "ended without bye" in await fault_of(pool, sse({"text": "Hi"}), streamEnd="bye")


async def test_a_call_that_the_paths_do_not_cover_is_a_fault(pool: HttpPool):
    answer = sse(chunk(content="Hi"), chunk(tool_calls=[call_part(0, "{}", "wipe")]), chunk("stop"))
    message = await fault_of(pool, answer, responsePath="choices[0].delta.content")
    assert "looks like a tool call (set toolCallsPath" in message


async def test_a_stream_is_bounded_in_size_and_time(pool: HttpPool):
    endless = Answer(pieces=[b"data: x\n\n"] * 1_000, content_type="text/event-stream")
    assert "more than 500 bytes" in await fault_of(pool, endless, maxResponseBytes=500)
    slow = replace(endless, pause=0.05)
    assert "did not answer within 0.3 s" in await fault_of(pool, slow, timeoutSeconds=0.3)


async def test_the_time_to_the_first_token_is_not_that_of_the_whole_answer(pool: HttpPool):
    pieces = [b": hello\n\n", b'data: {"text": "Hel"}\n\n', b'data: {"text": "lo"}\n\n']
    answer = Answer(pieces=pieces, pause=0.2, content_type="text/event-stream")
    reply = await reply_to(pool, answer)
    assert reply.first_token_ms is not None
    assert 150 < reply.first_token_ms < reply.latency_ms - 150
    assert (await reply_to(pool, Answer(json={"message": "x"}))).first_token_ms is None


async def test_an_answer_is_asked_for_in_the_form_that_is_configured(pool: HttpPool):
    async with AgentServer(sse("data: Hi")) as agent:
        await ask(session_of(http_agent, pool, {"responseFormat": "sse"}, url=agent.url))
        assert agent.last.headers["accept"] == "text/event-stream"
        await ask(session_of(http_agent, pool, url=agent.url, headers={"accept": "text/x"}))
        assert agent.last.headers["accept"] == "text/x"


async def test_a_chat_completion_may_be_streamed(pool: HttpPool):
    async with AgentServer(
        [OPENAI, sse(chunk(content="Hel"), {"error": {"message": "overloaded"}})]
    ) as agent:
        config = {"model": "m", "extraBody": {"stream": True}}
        reply = await ask(session_of(openai_agent, pool, config, url=agent.url))
        assert (reply.messages[0].text, reply.metadata) == ("Hello", {"finishReason": "tool_calls"})
        assert reply.first_token_ms is not None
        with pytest.raises(ConnectorError, match="reported an error in its stream: overloaded"):
            await ask(session_of(openai_agent, pool, config, url=agent.url))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 300), max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
async def test_where_a_stream_is_cut_into_pieces_makes_no_difference(
    pool: HttpPool, cuts: list[int], line_end: str
):
    assert OPENAI.body is not None
    body = OPENAI.body.replace(b"Hel", "Grüße, Hel".encode()).replace(b"\n", line_end.encode())
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in pairwise(places)]
    reply = await reply_to(pool, Answer(pieces=pieces, content_type="text/event-stream"))
    assert reply.messages[0].text == "Grüße, Hello"
    assert len(reply.messages[0].tool_calls or ()) == 2


@pytest.mark.parametrize("kind", [{}, [], {"a": 1}, 7, None])
def test_a_type_that_is_no_text_is_no_type_of_call(kind: Any) -> None:
    assert not looks_like_call({"type": kind, "text": "hello"})
    assert looks_like_call({"type": kind, "part": {"type": "tool_use"}})
