"""A local server that speaks the providers' protocols, for tests that would otherwise cost money.

OpenAI chat completions and embeddings under ``url``; Anthropic messages and Google generateContent under
``root``. Replies are programmed per test, requests are recorded.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from aiohttp import web


@dataclass(slots=True)
class Recorded:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """What the messages of an OpenAI request say, in order."""
        return [str(message["content"]) for message in self.body["messages"]]


@dataclass(slots=True)
class Reply:
    """What to answer. ``text`` or ``tool`` go into the protocol's shape; ``body`` is sent as it is."""

    text: str | None = None
    tool: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | str | None = None
    delay: float = 0.0
    drop: bool = False
    finish: str = "stop"
    tokens: tuple[int, int] = (10, 5)


Given = Reply | str | int | Mapping[str, Any]
Replies = Given | Sequence[Given] | Callable[[Recorded], Given]


def refusal(status: int, message: str = "", **headers: str) -> Reply:
    """An error in OpenAI's shape; ``retry_after="2"`` becomes the header ``retry-after``."""
    body = json.dumps({"error": {"message": message or f"status {status}", "type": "error", "code": None}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers=named, body=body)


HANG = Reply(delay=3600)
DROP = Reply(drop=True)


class ModelServer:
    """Start it with ``async with``. A list of replies is used up in order; its last one goes on for ever."""

    def __init__(self, replies: Replies = "Hello.") -> None:
        self.replies = replies
        self.requests: list[Recorded] = []
        self.in_flight = 0
        self.peak = 0
        self.root = ""
        self._runner: web.AppRunner | None = None

    @property
    def replies(self) -> Replies:
        return self._replies

    @replies.setter
    def replies(self, given: Replies) -> None:
        self._replies: Replies = list(cast(list[Given], given)) if isinstance(given, list) else given

    @property
    def url(self) -> str:
        """The address an OpenAI client is given."""
        return f"{self.root}/v1"

    async def __aenter__(self) -> ModelServer:
        app = web.Application(client_max_size=64_000_000)
        app.router.add_post("/v1/chat/completions", self._answer(_openai_body))
        app.router.add_post("/v1/embeddings", self._answer(_embeddings_body))
        app.router.add_post("/v1/messages", self._answer(_anthropic_body))
        app.router.add_post(
            r"/{version:v1\w*}/models/{call:[^/]+:generateContent}", self._answer(_google_body)
        )
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        address = cast(tuple[str, int], self._runner.addresses[0])
        self.root = f"http://127.0.0.1:{address[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _answer(self, shape: Callable[[Reply, Recorded], Any]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            try:
                return await self._respond(request, shape)
            finally:
                self.in_flight -= 1

        return handle

    async def _respond(
        self, request: web.Request, shape: Callable[[Reply, Recorded], Any]
    ) -> web.StreamResponse:
        recorded = Recorded(
            request.path_qs, {k.lower(): v for k, v in request.headers.items()}, await request.json()
        )
        self.requests.append(recorded)
        reply = self._next(recorded)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.drop:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if reply.body is None and recorded.body.get("stream"):
            return await _stream(request, shape(reply, recorded))
        body = reply.body if reply.body is not None else json.dumps(shape(reply, recorded))
        content = body.encode() if isinstance(body, str) else body
        headers = {"Content-Type": "application/json", **reply.headers}
        return web.Response(status=reply.status, body=content, headers=headers)

    def _next(self, recorded: Recorded) -> Reply:
        given = self.replies
        if isinstance(given, list):
            sequence = cast(list[Given], given)
            return _reply(sequence.pop(0) if len(sequence) > 1 else sequence[0])
        if callable(given):
            return _reply(given(recorded))
        return _reply(cast(Given, given))


@contextmanager
def threaded_server(replies: Replies = "Hello.") -> Generator[ModelServer]:
    """The same server in a thread of its own, for tests that are not async."""
    server = ModelServer(replies)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def _reply(given: Given) -> Reply:
    if isinstance(given, Reply):
        return replace(given)
    if isinstance(given, int):
        return refusal(given)
    return Reply(text=given if isinstance(given, str) else json.dumps(given))


def _openai_body(reply: Reply, request: Recorded) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    finish = reply.finish
    if reply.tool is not None:
        name = request.body["tools"][0]["function"]["name"]
        call = {"name": name, "arguments": json.dumps(reply.tool)}
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": call}]
        finish = "tool_calls"
    return {
        "id": "reply-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": reply.tokens[0],
            "completion_tokens": reply.tokens[1],
            "total_tokens": sum(reply.tokens),
        },
    }


def _embeddings_body(reply: Reply, request: Recorded) -> dict[str, Any]:
    given = request.body["input"]
    texts = [given] if isinstance(given, str) else cast(list[str], given)
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(texts)
    ]
    return {
        "object": "list",
        "data": data,
        "model": request.body["model"],
        "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
    }


def vector_of(text: str) -> list[float]:
    """Eight numbers that depend on the text alone."""
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]


def _anthropic_body(reply: Reply, request: Recorded) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}]
    if reply.tool is not None:
        name = request.body["tools"][0]["name"]
        content = [{"type": "tool_use", "id": "call-1", "name": name, "input": reply.tool}]
    return {
        "id": "reply-1",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": content,
        "stop_reason": "end_turn" if reply.tool is None else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": reply.tokens[0], "output_tokens": reply.tokens[1]},
    }


async def _stream(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """An Anthropic message as the events it would arrive in."""
    block: dict[str, Any] = message["content"][0]
    empty: dict[str, Any]
    delta: dict[str, Any]
    empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block.get("text")}
    if block["type"] == "tool_use":
        empty, delta = (
            {**block, "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
        )
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": message["usage"]},
        {"type": "message_stop"},
    ]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for event in events:
        await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    return response


def _google_body(reply: Reply, request: Recorded) -> dict[str, Any]:
    part: dict[str, Any] = {"text": reply.text}
    if reply.tool is not None:
        name = request.body["tools"][0]["functionDeclarations"][0]["name"]
        part = {"functionCall": {"name": name, "args": reply.tool}}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": reply.tokens[0],
            "candidatesTokenCount": reply.tokens[1],
            "totalTokenCount": sum(reply.tokens),
        },
        "modelVersion": "gemini",
        "responseId": "reply-1",
    }
