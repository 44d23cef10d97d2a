"""Projects that take telemetry, and requests as senders make them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

TOKEN = "a-token-of-the-senders"
PRODUCERS = Path(__file__).parent / "producers"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
PROTOBUF = AUTHORIZED | {"Content-Type": "application/x-protobuf"}
JSON = AUTHORIZED | {"Content-Type": "application/json"}


def intake_project(folder: Path, storage: Mapping[str, Any] | None = None, **production: Any) -> Path:
    """A project that takes telemetry; conversations are complete after a moment."""
    settings = {"enabled": True, "token": TOKEN, "quietSeconds": 0.3, **production}
    config: dict[str, Any] = {"version": 2, "production": settings}
    if storage is not None:
        config["storage"] = storage
    path = folder / "evalstudio.config.json"
    path.write_text(json.dumps(config))
    return path


def produce(url: str, script: str, *arguments: str, **environment: str) -> None:
    """Run a program that exports its telemetry to the server at this address."""
    subprocess.run(
        [sys.executable, "-W", "ignore", str(PRODUCERS / script), *arguments],
        check=True,
        timeout=120,
        env={
            "PATH": "/usr/bin:/bin",
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{TOKEN}",
            **environment,
        },
    )


def chat_span(
    trace: int,
    span: int,
    *,
    conversation: str | None = "conv-1",
    said: Sequence[tuple[str, str]] = (("user", "Hello"),),
    answer: str = "Hi.",
    **attributes: Any,
) -> dict[str, Any]:
    """A span of the GenAI conventions as JSON has it."""
    values: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([_message(role, text) for role, text in said]),
        "gen_ai.output.messages": json.dumps([_message("assistant", answer)]),
        **attributes,
    }
    if conversation is not None:
        values["gen_ai.conversation.id"] = conversation
    now = time.time_ns()
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{span:016x}",
        "name": "chat model-1",
        "startTimeUnixNano": str(now),
        "endTimeUnixNano": str(now + 5_000_000),
        "attributes": [{"key": key, "value": any_value(value)} for key, value in values.items()],
    }


def tool_span(trace: int, span: int, call_id: str, *, conversation: str) -> dict[str, Any]:
    """A span of a tool that was called once, as JSON has it."""
    tool: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.call.result": "seen",
    }
    one = chat_span(trace, span, conversation=conversation, **tool)
    said = ("gen_ai.input.messages", "gen_ai.output.messages")
    return one | {"attributes": [pair for pair in one["attributes"] if pair["key"] not in said]}


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def request_of(*spans: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    """An OTLP request in JSON."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def as_protobuf(request: dict[str, Any]) -> bytes:
    """The same request in protobuf."""
    message = ExportTraceServiceRequest()
    for whole in request["resourceSpans"]:
        resource = message.resource_spans.add()
        for pair in whole["resource"]["attributes"]:
            resource.resource.attributes.add(key=pair["key"]).value.string_value = pair["value"][
                "stringValue"
            ]
        scope = resource.scope_spans.add()
        for one in whole["scopeSpans"][0]["spans"]:
            scope.spans.append(_span(one))
    return message.SerializeToString()


def _span(one: dict[str, Any]) -> SpanMessage:
    span = SpanMessage(
        trace_id=bytes.fromhex(one["traceId"]),
        span_id=bytes.fromhex(one["spanId"]),
        name=one["name"],
        start_time_unix_nano=int(one["startTimeUnixNano"]),
        end_time_unix_nano=int(one["endTimeUnixNano"]),
    )
    for pair in one["attributes"]:
        value = span.attributes.add(key=pair["key"]).value
        ((kind, item),) = pair["value"].items()
        if kind == "stringValue":
            value.string_value = item
        elif kind == "intValue":
            value.int_value = int(item)
    return span


def send(url: str, spans: Sequence[dict[str, Any]]) -> int:
    """Send a batch; the status of the answer, or 0 where there was none."""
    request = urllib.request.Request(f"{url}/v1/traces", json.dumps(request_of(*spans)).encode(), JSON)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def found(url: str, path: str) -> Any:
    with urllib.request.urlopen(url + path, timeout=30) as answer:
        return json.loads(answer.read())


def every_item(url: str, path: str) -> list[Any]:
    """All items of a list of the API."""
    items: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = found(url, f"{path}{'&' if '?' in path else '?'}limit=500{cursor}")
        items += page["items"]
        cursor = f"&cursor={page['cursor']}" if page["cursor"] is not None else None
    return items


def judged_conversations(url: str, seconds: float = 60) -> list[Any]:
    """All conversations, once the last revision of each was handed over."""
    deadline = time.monotonic() + seconds
    while True:
        items = every_item(url, "/api/conversations")
        waiting = [one for one in items if not one["judged"] or one["status"] != "complete"]
        if items and not waiting:
            return items
        assert time.monotonic() < deadline, f"{len(waiting)} of {len(items)} wait, such as {waiting[:1]}"
        time.sleep(0.1)
