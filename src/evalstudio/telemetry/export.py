"""Where telemetry goes: OpenTelemetry's providers and exporters, as its own variables say.

Everything is sent by threads of their own from queues that are bounded; a receiver that is down costs what is
sent and one warning, never a run. The providers are ours alone: those of the process stay as they are.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from time import monotonic
from typing import Any

from opentelemetry import trace as otel
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from ..base.addresses import shown_address
from ..base.text import excerpt
from ..version import __version__
from . import names

log = logging.getLogger("evalstudio")

# Once sending has failed, this long is waited for another try before what is left is given up.
_FAILING_SECONDS = 1.0
_LOOK_SECONDS = 0.02
_SIGNALS = ("traces", "logs", "metrics")
_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc", "http/json": "otlp_json_http"}
_TALKATIVE = (
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.metrics._internal.export",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
)


class UnusableTelemetry(ValueError):
    """What is asked for cannot be set up."""


class _Speaking(threading.local):
    """Whose exporter speaks on this thread, if one of ours does."""

    pipeline: Pipeline | None = None


_speaking = _Speaking()


class _OneWarning(logging.Filter):
    """Turns what the exporters of ours complain about, again and again, into one warning."""

    def filter(self, record: logging.LogRecord) -> bool:
        pipeline = _speaking.pipeline
        if pipeline is None:
            return True
        if record.levelno >= logging.WARNING:
            pipeline.complain(record.getMessage())
        return False


_one_warning = _OneWarning()


class _Ids(RandomIdGenerator):
    """Ids by chance, but for a span whose ids are settled beforehand."""

    def __init__(self) -> None:
        self.settled = threading.local()

    def generate_trace_id(self) -> int:
        return getattr(self.settled, "trace_id", None) or super().generate_trace_id()

    def generate_span_id(self) -> int:
        return getattr(self.settled, "span_id", None) or super().generate_span_id()


class Pipeline:
    """The providers of one project, and the instruments that are recorded on."""

    def __init__(self, endpoint: str | None = None) -> None:
        self._complained = False
        self._failing = threading.Event()
        resource = _resource()
        self._ids = _Ids()
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=self._ids)
        self._loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
        readers: list[MetricReader] = []
        exporters = {signal: _exporter(signal, endpoint) for signal in _SIGNALS}
        self.place = _place(exporters, endpoint)
        for name in _TALKATIVE:
            logging.getLogger(name).addFilter(_one_warning)
        if (exporter := exporters["traces"]) is not None:
            self._tracers.add_span_processor(BatchSpanProcessor(self._ours(exporter)))
        if (exporter := exporters["logs"]) is not None:
            self._loggers.add_log_record_processor(BatchLogRecordProcessor(self._ours(exporter)))
        if (exporter := exporters["metrics"]) is not None:
            reader = isinstance(exporter, MetricReader)
            readers.append(exporter if reader else PeriodicExportingMetricReader(self._ours(exporter)))
        self._meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        self.tracer = self._tracers.get_tracer(names.SCOPE, __version__)
        self._logger = self._loggers.get_logger(names.SCOPE, __version__)
        meter = self._meters.get_meter(names.SCOPE, __version__)
        self.runs = meter.create_counter(*names.RUNS)
        self.evaluations = meter.create_counter(*names.EVALUATIONS)
        self.turn_duration = meter.create_histogram(*names.TURN_DURATION)
        self.evaluator_duration = meter.create_histogram(*names.EVALUATOR_DURATION)
        self.operation_duration = meter.create_histogram(*names.OPERATION_DURATION)
        self.token_usage = meter.create_histogram(*names.TOKEN_USAGE)

    def _ours(self, exporter: Any) -> Any:
        """The exporter, whose complaints come to us and whose failures end nothing."""
        send = exporter.export

        def export(*batch: Any, **options: Any) -> Any:
            with self._speaking():
                try:
                    result = send(*batch, **options)
                except Exception as error:
                    self.complain(f"{type(error).__name__}: {error}")
                    return None
            if getattr(result, "name", "") == "SUCCESS":
                self._failing.clear()
            return result

        exporter.export = export
        return exporter

    @contextmanager
    def _speaking(self) -> Generator[None]:
        before, _speaking.pipeline = _speaking.pipeline, self
        try:
            yield
        finally:
            _speaking.pipeline = before

    def complain(self, message: str) -> None:
        self._failing.set()
        if not self._complained:
            self._complained = True
            reason = excerpt(message, 300)
            log.warning("Not all telemetry reaches %s; the evaluation goes on: %s", self.place, reason)

    def samples(self, trace_id: int, name: str) -> bool:
        """Whether the sampler that OTEL_TRACES_SAMPLER names keeps a trace."""
        return self._tracers.sampler.should_sample(None, trace_id, name).decision.is_sampled()

    @contextmanager
    def with_ids(self, trace_id: int, span_id: int) -> Generator[None]:
        """The root span that is started inside gets these ids."""
        self._ids.settled.trace_id, self._ids.settled.span_id = trace_id, span_id
        try:
            yield
        finally:
            self._ids.settled.trace_id = self._ids.settled.span_id = None

    def end(self, span: otel.Span, end_ns: int | None = None) -> None:
        with self._speaking():
            span.end(end_ns)

    def emit(self, record: LogRecord) -> None:
        with self._speaking():
            self._logger.emit(record)

    def close(self, seconds: float) -> None:
        """Send what is left, for as long as this at most."""
        closings = [
            threading.Thread(target=self._close, args=(provider,), daemon=True)
            for provider in (self._tracers, self._loggers, self._meters)
        ]
        for closing in closings:
            closing.start()
        deadline = monotonic() + seconds
        failing = False
        while waiting := [closing for closing in closings if closing.is_alive()]:
            if self._failing.is_set() and not failing:
                failing, deadline = True, min(deadline, monotonic() + _FAILING_SECONDS)
            if monotonic() > deadline:
                self.complain(f"what was left could not be sent within {seconds:g} s")
                return
            waiting[0].join(_LOOK_SECONDS)

    def _close(self, provider: Any) -> None:
        with self._speaking(), suppress(Exception):
            provider.shutdown()


def _resource() -> Resource:
    """Ours, under what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say."""
    own = Resource({names.SERVICE_NAME: names.SERVICE, names.SERVICE_VERSION: __version__})
    asked = Resource.create()
    named = asked.attributes.get(names.SERVICE_NAME)
    if isinstance(named, str) and named.startswith("unknown_service"):
        return asked.merge(own)
    return own.merge(asked)


def _exporter(signal: str, endpoint: str | None) -> Any:
    """The exporter that OTEL_TRACES_EXPORTER and the like name: OTLP unless said otherwise."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    name = os.environ.get(variable, "").strip() or "otlp"
    if name == "none":
        return None
    if name == "otlp":
        name, variable = _protocol(signal)
    installed = next(iter(entry_points(group=f"opentelemetry_{signal}_exporter", name=name)), None)
    if installed is None:
        raise UnusableTelemetry(
            f'no exporter of {signal} is installed that is called "{name}" ({variable}); '
            "otlp over http/protobuf is part of the extra otel"
        )
    exporter = installed.load()
    base = _base(signal, endpoint)
    if base is not None and name == "otlp_proto_http":
        return exporter(endpoint=f"{base.rstrip('/')}/v1/{signal}")
    return exporter()


def _protocol(signal: str) -> tuple[str, str]:
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if asked := os.environ.get(variable, "").strip():
            return _PROTOCOLS.get(asked, asked), variable
    return "otlp_proto_http", "OTEL_EXPORTER_OTLP_PROTOCOL"


def _base(signal: str, endpoint: str | None) -> str | None:
    """The project's address, unless the environment names another."""
    variables = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return None if any(os.environ.get(variable) for variable in variables) else endpoint


def _place(exporters: Mapping[str, Any], endpoint: str | None) -> str:
    """Where it goes, as it may be shown."""
    known = [getattr(exporter, "_endpoint", None) for exporter in exporters.values()]
    address = next((one for one in known if isinstance(one, str)), endpoint or "its exporter")
    return shown_address(address, path=False)
