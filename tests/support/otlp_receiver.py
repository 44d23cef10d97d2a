"""A receiver of OTLP over HTTP that decodes what it is sent with OpenTelemetry's own protocol library."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_REQUESTS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


@dataclass(slots=True)
class SentSpan:
    """A span as it arrived; ids in hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    status: int
    status_message: str
    start: int
    end: int
    attributes: dict[str, Any]
    links: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class SentEvent:
    """A log record with a name."""

    name: str
    trace_id: str
    span_id: str
    attributes: dict[str, Any]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


class OtlpReceiver:
    """Start it with ``with``. ``status`` is what it answers to everything."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.requests: list[tuple[str, Any]] = []
        self.raw = b""
        self.resource: dict[str, Any] = {}
        self.headers: list[dict[str, str]] = []
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> OtlpReceiver:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.receive(self.path, body, {k.lower(): v for k, v in self.headers.items()})
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def receive(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        message = _REQUESTS[path]()
        message.ParseFromString(body)
        self.raw += body
        self.headers.append(headers)
        self.requests.append((path, message))

    def _messages(self, path: str) -> list[Any]:
        return [message for where, message in self.requests if where == path]

    @property
    def spans(self) -> list[SentSpan]:
        resources = [one for message in self._messages("/v1/traces") for one in message.resource_spans]
        for one in resources:
            self.resource = _attributes(one.resource.attributes)
        spans = [span for one in resources for scope in one.scope_spans for span in scope.spans]
        return [
            SentSpan(
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.kind,
                span.status.code,
                span.status.message,
                span.start_time_unix_nano,
                span.end_time_unix_nano,
                _attributes(span.attributes),
                [link.trace_id.hex() for link in span.links],
            )
            for span in spans
        ]

    @property
    def events(self) -> list[SentEvent]:
        resources = [one for message in self._messages("/v1/logs") for one in message.resource_logs]
        records = [record for one in resources for scope in one.scope_logs for record in scope.log_records]
        return [
            SentEvent(
                record.event_name, record.trace_id.hex(), record.span_id.hex(), _attributes(record.attributes)
            )
            for record in records
        ]

    @property
    def metrics(self) -> dict[str, list[tuple[dict[str, Any], int]]]:
        """By name, each point's attributes with its sum or its count."""
        known: dict[str, list[tuple[dict[str, Any], int]]] = {}
        for message in self._messages("/v1/metrics"):
            for one in message.resource_metrics:
                for metric in (metric for scope in one.scope_metrics for metric in scope.metrics):
                    points = metric.sum.data_points or metric.histogram.data_points
                    counted = [
                        (_attributes(p.attributes), getattr(p, "count", 0) or p.as_int) for p in points
                    ]
                    known[metric.name] = counted
        return known
