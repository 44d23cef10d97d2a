"""What the server answers to senders, and what it keeps of what they send."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import zlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.support.api_server import Api, serving
from tests.support.intake import (
    AUTHORIZED,
    JSON,
    PROTOBUF,
    as_protobuf,
    chat_span,
    intake_project,
    request_of,
)

from evalstudio.execution import receiving


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("intake")


HOOK = """
def redact(span):
    if span["attributes"].get("drop"):
        return None
    if span["attributes"].get("explode"):
        raise RuntimeError("no")
    span["attributes"].pop("internal", None)
    return span
"""


@pytest.fixture(scope="module")
async def api(folder: Path) -> AsyncGenerator[Api]:
    (folder / "our_redaction.py").write_text(HOOK)
    redact = {
        "patterns": ["email", "card", "phone", "iban", {"name": "order", "pattern": r"ORD-\d+"}],
        "hook": "our_redaction:redact",
    }
    limits = {"requestSpans": 50, "spanBytes": 20_000, "conversationSpans": 30, "requestBytes": 1_000_000}
    async with serving(intake_project(folder, redact=redact, limits=limits), web=False) as running:
        yield running


async def post(api: Api, raw: Any, headers: Any = PROTOBUF, path: str = "/v1/traces") -> Any:
    async with api.http.post(api.url + path, data=raw, headers=headers) as response:
        return response.status, response.headers, await response.read()


async def complete(api: Api, name: str) -> Any:
    async with asyncio.timeout(30):
        while not (page := await api.found(f"/api/conversations?text={name}&status=complete"))["items"]:
            await asyncio.sleep(0.05)
    return await api.found(f"/api/conversations/{page['items'][0]['id']}")


async def test_protobuf_and_json_plain_and_packed_say_the_same(api: Api) -> None:
    for number, (encode, headers) in enumerate(
        [(as_protobuf, PROTOBUF), (lambda one: json.dumps(one).encode(), JSON)]
    ):
        for packed in (False, True):
            name = f"same-{number}-{packed}"
            body = encode(request_of(chat_span(100 + number * 2 + packed, 1, conversation=name)))
            more = {"Content-Encoding": "gzip"} if packed else {}
            status, answered, answer = await post(
                api, gzip.compress(body) if packed else body, headers | more
            )
            assert (status, answer) == (200, b"" if encode is as_protobuf else b"{}")
            assert answered["Content-Type"] == headers["Content-Type"]
            whole = await complete(api, name)
            assert whole["turns"][0]["userMessage"]["content"] == "Hello"
            assert whole["turns"][0]["messages"][0]["content"] == "Hi."


@pytest.mark.parametrize(
    ("raw", "headers", "path", "expected"),
    [
        (b"{}", {"Content-Type": "application/json"}, "/v1/traces", 401),
        (b"{}", JSON | {"Authorization": "Bearer wrong-token-of-somebody"}, "/v1/traces", 401),
        (b"", AUTHORIZED | {"Content-Type": "text/plain"}, "/v1/traces", 415),
        (b"", PROTOBUF | {"Content-Encoding": "br"}, "/v1/traces", 415),
        (b"\xff\xff\xff", PROTOBUF, "/v1/traces", 400),
        (b"\x0a\x7f", PROTOBUF, "/v1/traces", 400),
        (b"not json", JSON, "/v1/traces", 400),
        (b"[" * 100_000, JSON, "/v1/traces", 400),
        (b'{"resourceSpans": 3}', JSON, "/v1/traces", 400),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xx"}]}]}]}', JSON, "/v1/traces", 400),
        (b"not gzip", PROTOBUF | {"Content-Encoding": "gzip"}, "/v1/traces", 400),
        (gzip.compress(b"\0" * 50_000_000), PROTOBUF | {"Content-Encoding": "gzip"}, "/v1/traces", 413),
        # Empty spans: two bytes each on the wire.
        (b"\x0a\xcc\x01\x12\xc9\x01" + b"\x12\x00" * 100 + b"\x12", PROTOBUF, "/v1/traces", 400),
        (b"{}", JSON, "/v1/metrics", 404),
    ],
)
async def test_what_is_wrong_is_refused(api: Api, raw: bytes, headers: Any, path: str, expected: int) -> None:
    status, answered, answer = await post(api, raw, headers, path)
    assert status == expected
    assert answer
    assert ("WWW-Authenticate" in answered) == (expected == 401)


async def test_more_spans_than_a_request_may_hold_are_refused(api: Api) -> None:
    request = request_of(*(chat_span(300, number) for number in range(1, 60)))
    assert (await post(api, as_protobuf(request)))[0] == 413
    assert (await post(api, json.dumps(request), JSON))[0] == 413


async def test_values_nested_without_end_are_refused(api: Api) -> None:
    span = chat_span(301, 1)
    value: Any = {"stringValue": "x"}
    for _ in range(300):
        value = {"arrayValue": {"values": [value]}}
    span["attributes"].append({"key": "deep", "value": value})
    assert (await post(api, json.dumps(request_of(span)), JSON))[0] == 400


async def test_a_span_that_is_too_large_makes_its_conversation_an_error(api: Api) -> None:
    large = chat_span(302, 1, conversation="large", answer="x" * 30_000)
    for encoded, headers in ((as_protobuf(request_of(large)), PROTOBUF),):
        status, _, answer = await post(api, encoded, headers)
        assert status == 200
        assert "30," in ExportTraceServiceResponse.FromString(answer).partial_success.error_message
    small = chat_span(302, 2, conversation="large")
    assert (await post(api, json.dumps(request_of(small)), JSON))[0] == 200
    large["traceId"], large["spanId"] = f"{303:032x}", f"{3:016x}"
    assert (await post(api, json.dumps(request_of(large)), JSON))[0] == 200
    assert "was not taken" in (await complete(api, "large"))["error"]


async def test_spans_beyond_what_a_conversation_may_hold_are_refused_and_told(api: Api) -> None:
    spans = [chat_span(310, number, conversation="endless") for number in range(1, 41)]
    status, _, answer = await post(api, as_protobuf(request_of(*spans)))
    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert (status, partial.rejected_spans) == (200, 10)
    assert "10 spans were refused" in (await complete(api, "endless"))["error"]


async def test_nothing_personal_is_stored(api: Api, folder: Path) -> None:
    said = [("user", "I am ann@example.com, call +49 170 1234567, card 4111 1111 1111 1111, ORD-778")]
    span = chat_span(320, 1, conversation="bob@example.com", said=said, answer="Noted, ann@example.com.")
    other = chat_span(321, 1, conversation="eve@example.com", card=4111111111111111, internal="private-note")
    escaped = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x"}]}])
    other["attributes"][1]["value"]["stringValue"] = escaped.replace('"x"', '"ann\\u0040example.com"')
    assert (await post(api, as_protobuf(request_of(span, other))))[0] == 200
    async with asyncio.timeout(20):
        while len(items := (await api.found("/api/conversations?text=[email]"))["items"]) < 2:
            await asyncio.sleep(0.05)
    assert len({item["name"] for item in items}) == 2
    texts = [
        turn["userMessage"]["content"]
        for item in items
        for turn in (await api.found(f"/api/conversations/{item['id']}"))["turns"]
    ]
    assert sorted(texts) == ["I am [email], call [phone], card [card], [order]", "[email]"]
    kept = b"".join(
        zlib.decompress(row[0])
        for row in sqlite3.connect(folder / "data" / "evalstudio.db").execute("SELECT body FROM spans")
    )
    # Four digits alone occur in times by chance.
    for private in (b"example.com", b"4111 1111", b"41111111", b"1234567", b"ORD-778", b"private-note"):
        assert private not in kept


async def test_the_hook_leaves_out_spans_and_its_failure_stores_nothing(api: Api) -> None:
    kept = chat_span(330, 1, conversation="hooked")
    dropped = chat_span(330, 2, conversation="hooked", drop=True)
    assert (await post(api, json.dumps(request_of(kept, dropped)), JSON))[0] == 200
    assert (await complete(api, "hooked"))["spans"] == 1
    broken = chat_span(331, 1, conversation="broken-hook", explode=True)
    status, answered, _ = await post(api, json.dumps(request_of(broken)), JSON)
    assert (status, answered["Retry-After"]) == (503, "30")
    assert (await api.found("/api/conversations?text=broken-hook"))["items"] == []


async def test_a_slow_or_full_database_asks_to_try_again(
    api: Api, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    body = json.dumps(request_of(chat_span(340, 1, conversation="later")))
    monkeypatch.setattr(receiving, "_STORING_SECONDS", 0.2)
    with sqlite3.connect(folder / "data" / "evalstudio.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        status, answered, _ = await post(api, body, JSON)
        assert status == 503
        assert int(answered["Retry-After"]) > 0
        other.execute("ROLLBACK")
    monkeypatch.undo()
    assert (await post(api, body, JSON))[0] == 200
    assert (await complete(api, "later"))["spans"] == 1


async def test_without_being_enabled_nothing_is_taken(tmp_path: Path) -> None:
    config = intake_project(tmp_path, enabled=False)
    async with serving(config, web=False) as off:
        status, _, answer = await post(off, b"{}", JSON)
        assert status == 404
        assert b"production.enabled" in answer
