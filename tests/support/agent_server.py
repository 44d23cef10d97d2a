"""A programmable agent over HTTP that can behave as badly as agents do; requests are recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web


@dataclass(slots=True)
class Recorded:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class Answer:
    """What to do with a request. ``json`` goes out as JSON, ``body`` as it is, ``pieces`` one by one."""

    json: Any = None
    body: bytes | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json"
    delay: float = 0.0
    drop: bool = False
    drop_after: int | None = None
    stream_bytes: int = 0
    declared: bool = False
    pieces: list[bytes] | None = None
    pause: float = 0.0


HANG = Answer(delay=3600)
DROP = Answer(drop=True)
DROP_MID_BODY = Answer(json={"message": "I was about to say something" * 100}, drop_after=50)
HUGE = Answer(stream_bytes=200_000_000)
HTML = Answer(
    body=b"<!DOCTYPE html><html><head><title>Sign in</title><script>var x = 1</script></head>"
    b"<body><h1>Welcome back</h1></body></html>",
    content_type="text/html",
)
NOT_JSON = Answer(body=b"{'message': 'single quotes'}")
EMPTY = Answer(body=b"")

Answers = Answer | list[Answer] | Callable[[Recorded], Answer]


def sse(*data: Any, end: str = "") -> Answer:
    """Server-sent events with this data, as JSON where it is not text."""
    lines = [one if isinstance(one, str) else f"data: {json.dumps(one)}" for one in data]
    text = "".join(f"{line}\n\n" for line in lines) + end
    return Answer(body=text.encode(), content_type="text/event-stream")


def says(text: str, **more: Any) -> Answer:
    return Answer(json={"message": {"role": "assistant", "content": text}, **more})


class AgentServer:
    """Start it with ``async with``. A list of answers is used up in order; its last one goes on for ever."""

    def __init__(self, answers: Answers | None = None) -> None:
        self.answers: Answers = answers if answers is not None else says("Hello!")
        self.requests: list[Recorded] = []
        self.connections = 0
        self.streamed = 0
        self.url = ""
        self._peers: set[Any] = set()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> AgentServer:
        app = web.Application(client_max_size=64_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        address = cast(tuple[str, int], self._runner.addresses[0])
        self.url = f"http://127.0.0.1:{address[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def last(self) -> Recorded:
        return self.requests[-1]

    @property
    def peers(self) -> int:
        """How many connections were opened so far."""
        return len(self._peers)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self._peers.add(request.transport.get_extra_info("peername") if request.transport else None)
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(raw) if raw else None
        self.requests.append(Recorded(request.method, request.path, dict(request.query), headers, body))
        answer = self._next(self.last)
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.drop:
            return self._hang_up(request)
        if answer.pieces is not None:
            return await self._send_pieces(request, answer, answer.pieces)
        if answer.stream_bytes:
            return await self._stream(request, answer)
        content = answer.body if answer.body is not None else json.dumps(answer.json).encode()
        if answer.drop_after is not None:
            return await self._break_off(request, answer, content)
        known = {"Content-Type": answer.content_type, **answer.headers}
        return web.Response(status=answer.status, body=content, headers=known)

    async def _send_pieces(
        self, request: web.Request, answer: Answer, pieces: list[bytes]
    ) -> web.StreamResponse:
        headers = {"Content-Type": answer.content_type, **answer.headers}
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.enable_chunked_encoding()
        await response.prepare(request)
        for number, piece in enumerate(pieces):
            if number:
                await asyncio.sleep(answer.pause)
            await response.write(piece)
        if answer.drop_after is not None:
            self._hang_up(request)
        return response

    def _hang_up(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async def _break_off(self, request: web.Request, answer: Answer, content: bytes) -> web.StreamResponse:
        response = web.StreamResponse(
            status=answer.status,
            headers={"Content-Length": str(len(content)), "Content-Type": answer.content_type},
        )
        await response.prepare(request)
        await response.write(content[: answer.drop_after])
        self._hang_up(request)
        return response

    async def _stream(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        """Many megabytes of JSON, a chunk at a time."""
        headers = {"Content-Type": "application/json", **answer.headers}
        if answer.declared:
            headers["Content-Length"] = str(answer.stream_bytes)
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        chunk = b"x" * 65_536
        self.streamed = 0
        while self.streamed < answer.stream_bytes:
            await response.write(chunk)
            self.streamed += len(chunk)
        return response

    def _next(self, recorded: Recorded) -> Answer:
        given = self.answers
        if isinstance(given, list):
            return given.pop(0) if len(given) > 1 else given[0]
        return given(recorded) if callable(given) else given
