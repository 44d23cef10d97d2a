"""Answers that come in pieces: bytes as lines, lines as server-sent events or JSON, and what they add up to.

``stream_events.py`` knows what the events of the different protocols mean.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, Literal

import orjson

from ..base.json_text import UnclearJson, json_once
from .contract import ConnectorResponse
from .exchange import HttpAnswer
from .stream_events import EventReader, data_stream_part
from .stream_reply import StreamPaths, StreamReply

StreamForm = Literal["sse", "sse-text", "ndjson", "data-stream"]


async def read_stream(answer: HttpAnswer, form: StreamForm, paths: StreamPaths) -> ConnectorResponse:
    """The response a stream adds up to. A stream that breaks off or reports an error is a fault."""
    reply, lines = StreamReply(answer.fault, paths), Lines(answer)
    reader = EventReader(reply, plain=True if form == "sse-text" else None)
    frames = _FRAMES[form](reader)
    async for piece in answer.pieces():
        for line in lines.feed(piece):
            frames.take(line)
            if reply.over:
                break
        if reply.begun:
            answer.note_first_token()
        if reply.over:
            return reply.response()
    for line in lines.rest():
        frames.take(line)
    frames.finish()
    reply.finish()
    return reply.response()


class Lines:
    """Bytes that come in pieces, as whole lines."""

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self._decoder = getincrementaldecoder("utf-8-sig")("strict")
        self._parts: list[str] = []

    def feed(self, piece: bytes) -> Iterator[str]:
        text = self._decode(piece)
        if "\n" not in text and "\r" not in text:
            self._parts.append(text)
            return
        text = "".join([*self._parts, text])
        # A line break of two characters may have been cut in half.
        held = "\r" if text.endswith("\r") else ""
        *lines, last = text.removesuffix(held).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._parts = [last + held]
        yield from lines

    def rest(self) -> Iterator[str]:
        """What stood behind the last line break."""
        if last := "".join([*self._parts, self._decode(b"", final=True)]).rstrip("\r"):
            yield last

    def _decode(self, piece: bytes, *, final: bool = False) -> str:
        try:
            return self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            raise self._answer.fault(f"sent text that is not UTF-8 ({error.reason})") from None


class ServerSentEvents:
    """Lines as server-sent events; an event ends with an empty line."""

    def __init__(self, reader: EventReader) -> None:
        self._reader, self._reply = reader, reader.reply
        self._name = ""
        self._data: list[str] = []

    def take(self, line: str) -> None:
        if not line:
            if self._data or self._name:
                self._reader.event(self._name, "\n".join(self._data))
            self._name, self._data = "", []
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name not in ("", "id", "retry"):
            raise self._reply.fault("sent a line that is no server-sent event", line)

    def finish(self) -> None:
        """An event without its empty line was cut off, unless it only says that the stream is over."""
        if self._data and not self._reader.is_end(self._name, "\n".join(self._data)):
            raise self._reply.fault("broke off in the middle of an event", "\n".join(self._data))
        if self._data:
            self._reader.event(self._name, "\n".join(self._data))


class JsonLines:
    """Lines of which each is JSON."""

    def __init__(self, reader: EventReader) -> None:
        self._reader, self._reply = reader, reader.reply
        self._number = 0

    def take(self, line: str) -> None:
        self._number += 1
        if line.strip(" \t\x1e"):
            self._reader.value(self._parsed(line.strip(" \t\x1e")))

    def _parsed(self, line: str) -> Any:
        try:
            return json_once(line)
        except orjson.JSONDecodeError:
            raise self._reply.fault(f"sent a line that is not JSON (line {self._number})", line) from None
        except UnclearJson as error:
            raise self._reply.fault(f"sent {error} (line {self._number})", line) from None

    def finish(self) -> None:
        pass


class DataStream(JsonLines):
    """The data stream of Vercel's AI SDK, version 1: a character that says what it is, a colon, JSON."""

    def take(self, line: str) -> None:
        self._number += 1
        if line:
            kind, colon, rest = line.partition(":")
            if not colon:
                problem = f"sent a line that is no part of a data stream (line {self._number})"
                raise self._reply.fault(problem, line)
            data_stream_part(self._reply, kind, self._parsed(rest))


_FRAMES: dict[StreamForm, type[ServerSentEvents | JsonLines]] = {
    "sse": ServerSentEvents,
    "sse-text": ServerSentEvents,
    "ndjson": JsonLines,
    "data-stream": DataStream,
}
