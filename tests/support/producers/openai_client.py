"""OpenAI's client with the official instrumentation: a tool call, its result and a second question.

The client talks to the address in OPENAI_BASE_URL.
"""

from __future__ import annotations

import os
from typing import Any

from exporting import exporting
from openai import OpenAI
from opentelemetry import _logs
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def main() -> None:
    logs = LoggerProvider()
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    _logs.set_logger_provider(logs)
    with exporting(os.environ["OTEL_SERVICE_NAME"]):
        OpenAIInstrumentor().instrument()
        client = OpenAI(api_key="none", max_retries=0)
        messages: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How is the weather in Paris?"},
        ]

        def ask() -> Any:
            reply = client.chat.completions.create(model="model-1", messages=messages, tools=[TOOL])
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            return message

        called = ask()
        messages.append({"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "sunny"})
        ask()
        messages.append({"role": "user", "content": "And in Rome?"})
        ask()
    logs.shutdown()


main()
