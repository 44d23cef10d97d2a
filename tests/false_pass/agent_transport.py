"""Answers that never came, came in part, or were errors; and calls that were made more than once."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from tests.support.agent_server import (
    DROP,
    DROP_MID_BODY,
    EMPTY,
    HANG,
    HTML,
    AgentServer,
    Answer,
    Answers,
    Recorded,
    says,
    sse,
)

from evalstudio import ConnectorResponse, define_connector

from .agent_shapes import add
from .table import Came, live, row

# Holds for whatever is not said: the check that an answer cut short satisfies.
NO_REFUND = {"type": "regex", "config": {"pattern": "refund", "mustMatch": False}}
NO_WIPE = {"type": "tool-usage", "config": {"rules": [{"tool": "wipe", "forbidden": True}]}}


async def http(answers: Answers, *evaluators: Any, kind: str = "http", **config: Any) -> Came:
    async with AgentServer(answers) as agent:
        connector = {"type": kind, "baseUrl": agent.url, "config": config}
        return await live(connector, *(evaluators or [NO_REFUND, NO_WIPE]))


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def typed(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}"


def text_delta(text: str) -> str:
    return typed("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def json_lines(*lines: str) -> Answer:
    return Answer(body="\n".join(lines).encode(), content_type="application/x-ndjson")


@row(
    "agent",
    "An OpenAI-style stream stops before its end",
    expect="error: agent",
    says="without a finish_reason",
)
async def openai_stream_stops() -> Came:
    return await http(sse(chunk(content="We give no "), chunk(content="ref")))


@row("agent", "The connection is lost in the middle of a stream", expect="error: agent", says="broke off")
async def stream_is_cut() -> Came:
    pieces = [b"data: We give no \n\n", b"data: ref\n\n"]
    return await http(Answer(pieces=pieces, content_type="text/event-stream", drop_after=0))


@row(
    "agent",
    "A stream ends in the middle of an event",
    expect="error: agent",
    says="in the middle of an event",
)
async def stream_ends_in_an_event() -> Came:
    return await http(sse("data: We give no", end="data: ref"))


@row(
    "agent", "An Anthropic-style stream ends without message_stop", expect="error: agent", says="message_stop"
)
async def anthropic_stream_stops() -> Came:
    return await http(sse(typed("message_start", message={}), text_delta("We give no ref")))


@row("agent", "A stream reports an error after its first words", expect="error: agent", says="overloaded")
async def stream_reports_an_error() -> Came:
    return await http(sse("data: Hello", "event: error\ndata: overloaded"))


@row(
    "agent", "A stream carries an error object among its chunks", expect="error: agent", says="quota used up"
)
async def stream_carries_an_error() -> Came:
    return await http(sse(chunk(content="Hello"), {"error": {"message": "quota used up"}}))


@row("agent", "An Anthropic-style stream ends in an error event", expect="error: agent", says="Overloaded")
async def anthropic_stream_errs() -> Came:
    return await http(sse(text_delta("Hello"), typed("error", error={"message": "Overloaded"})))


@row("agent", "A plain-text stream turns into an error object", expect="error: agent", says="kaput")
async def text_stream_errs() -> Came:
    return await http(sse("data: Hello", 'data: {"error": "kaput"}'))


@row("agent", "An event of a stream is JSON that breaks off", expect="error: agent", says="not JSON")
async def event_is_broken_json() -> Came:
    return await http(sse(chunk(content="Hello"), 'data: {"choices": [{"del'))


@row("agent", "A line of JSON lines cannot be read", expect="error: agent", says="not JSON (line 2)")
async def json_line_is_broken() -> Came:
    return await http(json_lines('{"text": "Hello"}', '{"text": "and a ref', '{"text": "und"}'))


def sending(answer: Answer) -> Callable[[], Awaitable[Came]]:
    async def run() -> Came:
        return await http(answer)

    return run


TWO_TEXTS = '{"text": "We give a refund", "text": "Fine.", "done": true}'
for _where, _answer in {
    "JSON": Answer(body=TWO_TEXTS.encode()),
    "JSON that is called text": Answer(body=TWO_TEXTS.encode(), content_type="text/plain"),
    "An event of a stream": sse(f"data: {TWO_TEXTS}"),
    "A line of JSON lines": json_lines(TWO_TEXTS),
}.items():
    _attempt = f"{_where} holds the answer twice"
    add(_attempt, sending(_answer), expect="error: agent", says='"text" is there twice')


@row("agent", "JSON lines end before the line that says done", expect="error: agent", says='"done": true')
async def json_lines_stop() -> Came:
    return await http(json_lines('{"message": {"content": "We give no ref"}, "done": false}'))


@row("agent", "A stream consists of comments alone", expect="error: agent", says="an empty stream")
async def stream_of_comments() -> Came:
    return await http(sse(": thinking", ": still thinking"))


@row(
    "agent",
    "A stream sends events nobody can find the text in",
    expect="error: agent",
    says="set responsePath",
)
async def stream_of_unknown_events() -> Came:
    return await http(sse({"kind": "answer", "payload": {"t": "refund"}}))


@row(
    "agent",
    "A tool call in a stream is not where the paths look",
    expect="error: agent",
    says="set toolCallsPath",
)
async def call_beside_the_path() -> Came:
    call = {"index": 0, "id": "c1", "function": {"name": "wipe", "arguments": "{}"}}
    answer = sse(chunk(content="Done."), chunk(tool_calls=[call]), chunk("stop"))
    return await http(answer, responsePath="choices[0].delta.content")


@row("agent", "A forbidden tool is called in pieces of a stream", expect="fail", says="wipe")
async def call_in_pieces() -> Came:
    parts = [
        {"index": 0, "id": "c1", "function": {"name": "wi", "arguments": ""}},
        {"index": 0, "function": {"name": "pe", "arguments": '{"all": true}'}},
    ]
    return await http(sse(*(chunk(tool_calls=[part]) for part in parts), chunk("tool_calls")), NO_WIPE)


@row("agent", "A forbidden tool is called in an Anthropic-style stream", expect="fail", says="wipe")
async def anthropic_call_in_a_stream() -> Came:
    block = {"type": "tool_use", "id": "c1", "name": "wipe", "input": {}}
    answer = sse(typed("content_block_start", index=0, content_block=block), typed("message_stop"))
    return await http(answer, NO_WIPE)


@row(
    "agent",
    "An agent answers with an error object and status 200",
    expect="error: agent",
    says="model is loading",
)
async def error_object() -> Came:
    return await http(Answer(json={"message": "Sorry!", "error": {"message": "model is loading"}}))


@row(
    "agent",
    "An agent answers success: false with a polite message",
    expect="error: agent",
    says="it reports success: false",
)
async def success_is_false() -> Came:
    return await http(Answer(json={"success": False, "message": "Please come back later."}))


@row(
    "agent",
    "A chat completion has an error beside its message",
    expect="error: agent",
    says="content filter down",
)
async def completion_with_an_error() -> Came:
    choice = {
        "message": {"role": "assistant", "content": "Hello"},
        "error": {"message": "content filter down"},
    }
    return await http(Answer(json={"choices": [choice]}), kind="openai", model="m")


@row("agent", "A streamed chat completion breaks off", expect="error: agent", says="ended without")
async def streamed_completion_stops() -> Came:
    answer = sse(chunk(content="We give no ref"))
    return await http(answer, kind="openai", model="m", extraBody={"stream": True})


@row(
    "agent", "A graph's server answers with an error object", expect="error: agent", says="no such assistant"
)
async def graph_error_object() -> Came:
    answers = [Answer(json={"thread_id": "t"}), Answer(json={"error": "no such assistant"})]
    return await http(answers, kind="langgraph")


@row("agent", "A login page comes instead of an answer", expect="error: agent", says="an HTML page")
async def login_page() -> Came:
    return await http(HTML)


@row("agent", "A login page is sent as plain text", expect="error: agent", says="an HTML page")
async def login_page_as_text() -> Came:
    return await http(replace(HTML, content_type="text/plain"))


@row("agent", "The body of an answer is empty", expect="error: agent", says="an empty answer")
async def empty_body() -> Came:
    return await http(EMPTY)


@row("agent", "A plain-text answer is empty", expect="error: agent", says="an empty answer")
async def empty_text() -> Came:
    return await http(replace(EMPTY, content_type="text/plain"))


@row("agent", "The JSON of an answer is cut off", expect="error: agent", says="not JSON")
async def cut_json() -> Came:
    return await http(Answer(body=b'{"message": "We give no ref'))


@row("agent", "The connection is lost in the middle of an answer", expect="error: agent", says="broke off")
async def cut_answer() -> Came:
    return await http(DROP_MID_BODY)


@row("agent", "An agent never answers", expect="error: agent", says="did not answer within")
async def no_answer() -> Came:
    return await http(HANG, timeoutSeconds=0.2)


def one_then(bad: Answer, seen: list[Recorded]) -> Callable[[Recorded], Answer]:
    """Fails the first time and is fine ever after: a second request would pass."""

    def answer(request: Recorded) -> Answer:
        seen.append(request)
        return bad if len(seen) == 1 else says("Hello!")

    return answer


@row(
    "agent",
    "An agent that failed would answer if it were asked twice",
    expect="error: agent",
    says="failed (500)",
)
async def failed_once() -> Came:
    return await http(one_then(Answer(status=500, json={}), []))


@row(
    "agent",
    "An agent hangs up and would answer if it were asked twice",
    expect="error: agent",
    says="closed the connection",
)
async def hung_up_once() -> Came:
    return await http(one_then(DROP, []))


@row(
    "agent", "An agent asks to wait an hour", expect="error: agent", says="asked to wait 3600 s, longer than"
)
async def asks_for_an_hour() -> Came:
    return await http(one_then(Answer(status=429, headers={"Retry-After": "3600"}, json={}), []))


@row("agent", "An agent answers more than may be read", expect="error: agent", says="more than 100 bytes")
async def endless_stream() -> Came:
    return await http(sse(*["data: word"] * 100), maxResponseBytes=100)


@row(
    "agent",
    "A connector's metadata is not JSON",
    expect="error: agent",
    says="metadata of the answer is not JSON",
)
async def odd_metadata() -> Came:
    @define_connector(type="odd-metadata")
    def agent(ctx: Any) -> ConnectorResponse:
        return ConnectorResponse([{"role": "assistant", "content": "Hello"}], metadata={"odd": object()})

    return await live(agent, NO_REFUND)


@row(
    "definition",
    "A request template names a value that the case does not have",
    expect="refused",
    says="{{ordre}}",
)
async def template_without_value() -> Came:
    return await http(says("Hello!"), requestTemplate={"id": "{{ordre}}"})
