"""What hostile or broken senders send: bounded, answered, and nobody else's conversation waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import Api, serving
from tests.support.intake import JSON, PROTOBUF, as_protobuf, chat_span, intake_project, request_of, tool_span

_FAR = 2**63 - 1
_NULLS: dict[str, Any] = {"x\0y": "z\0"}
_NUMBERED: dict[str, Any] = {f"llm.input_messages.{'9' * 5000}.message.role": "user"}


def deep(levels: int, innermost: Any = "x") -> Any:
    value = innermost
    for _ in range(levels):
        value = [value]
    return value


def at(span: dict[str, Any], start: int, end: int) -> dict[str, Any]:
    return span | {"startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}


def with_messages(span: dict[str, Any], text: str) -> dict[str, Any]:
    """A span whose input is this text instead of messages."""
    for pair in span["attributes"]:
        if pair["key"] == "gen_ai.input.messages":
            pair["value"] = {"stringValue": text}
    return span


# What is sent under each name of a conversation, all of it acknowledged.
SENT: dict[str, list[dict[str, Any]]] = {
    "null": [
        chat_span(1, 1, conversation="nu\0ll", said=[("user", "a\0b")], answer="c\0d", **_NULLS),
        tool_span(1, 2, "call\0-1", conversation="nu\0ll"),
    ],
    "long": [chat_span(2, 1, conversation="long" + "ü" * 500_000)],
    "future": [at(chat_span(3, 1, conversation="future"), _FAR, _FAR)],
    "past": [at(chat_span(4, 1, conversation="past"), 1, 0)],
    "twice": [chat_span(5, 1, conversation="twice"), chat_span(5, 1, conversation="twice", answer="No.")],
    "deep-text": [with_messages(chat_span(6, 1, conversation="deep-text"), "[" * 100_000)],
    "deep-content": [
        with_messages(
            chat_span(7, 1, conversation="deep-content"), json.dumps([{"role": "user", "parts": deep(900)}])
        )
    ],
    "deep-arguments": [
        with_messages(
            chat_span(8, 1, conversation="deep-arguments"),
            json.dumps([{"role": "user", "content": "x", "more": deep(800)}]),
        )
    ],
    "numbered": [chat_span(9, 1, conversation="numbered", **_NUMBERED)],
    "circle": [
        chat_span(10, one, conversation="circle") | {"parentSpanId": f"{3 - one:016x}"} for one in (1, 2)
    ],
    "half": [chat_span(11, 1, conversation="half", said=[("user", "\\ud800 and \ud83d\ude00")])],
}


@pytest.fixture
async def api(
    tmp_path: Path, storage: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Api]:
    # With a secret about, everything is looked through for it.
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nowhere-to-be-found-in-what-is-sent")
    config = intake_project(tmp_path, storage(), limits={"conversationSpans": 200})
    async with serving(config, web=False) as running:
        yield running


async def post(api: Api, raw: bytes, headers: Any) -> int:
    async with api.http.post(f"{api.url}/v1/traces", data=BytesIO(raw), headers=headers) as response:
        return response.status


async def test_whatever_comes_is_closed_and_the_next_conversation_too(api: Api) -> None:
    monitor = {"name": "All", "evaluators": [{"type": "regex", "config": {"pattern": "Hi"}}]}
    await api.made("/api/monitors", monitor)
    for name, spans in SENT.items():
        assert await post(api, json.dumps(request_of(*spans)).encode(), JSON) == 200, name
    # A million spans of one trace: what is beyond the bound is refused.
    for start in range(0, 400, 200):
        flood = [chat_span(20, one + 1, conversation="flood") for one in range(start, start + 200)]
        assert await post(api, as_protobuf(request_of(*flood)), PROTOBUF) == 200
    # Half a pair of surrogates is not text, and the database is never asked.
    broken = json.dumps(request_of(chat_span(30, 1))).replace("Hello", "\\ud800 alone")
    assert await post(api, broken.encode(), JSON) == 400
    assert await post(api, as_protobuf(request_of(chat_span(31, 1, conversation="after"))), PROTOBUF) == 200

    async with asyncio.timeout(60):
        while True:
            items = (await api.found("/api/conversations?limit=100"))["items"]
            waiting = [one for one in items if not one["judged"]]
            if len(items) == len(SENT) + 2 and not waiting:
                break
            await asyncio.sleep(0.1)
    assert not [one["problem"] for one in items if one["problem"]]
    by_start = {one["name"].partition("-")[0][:4]: one for one in items}
    assert by_start["twic"]["spans"] == 1
    assert (by_start["floo"]["spans"], by_start["floo"]["refusedSpans"]) == (200, 200)
    assert len(by_start["long"]["name"]) <= 1_000
    assert by_start["afte"]["reviews"][0]["outcome"] == "pass"
    for one in items:
        assert one["reviews"], one["name"]
        await api.found(f"/api/conversations/{one['id']}")
    unreadable = [one for one in items if one["name"] in ("deep-text", "deep-content")]
    assert [one["reviews"][0]["outcome"] for one in unreadable] == ["error", "error"]
    assert (await api("GET", "/api/ready")).status == 200
