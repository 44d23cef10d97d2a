"""A pydantic-ai agent with its own instrumentation: two turns with a tool, and one that fails."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from exporting import exporting
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(f"It is {last.content} there.")])
    question = str(getattr(last, "content", ""))
    if "fail" in question:
        raise RuntimeError("the model is down")
    return ModelResponse(parts=[ToolCallPart("get_weather", {"city": question.split()[-1]})])


def main(version: Any, name: str) -> None:
    with exporting("weather"):
        Agent.instrument_all(InstrumentationSettings(version=version))
        agent = Agent(FunctionModel(answer), name="weather", instructions="Be brief.")

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """The weather of a city."""
            return {"Paris": "sunny", "Rome": "raining"}[city]

        first = agent.run_sync("How is the weather in Paris", conversation_id=f"conv-{name}")
        agent.run_sync("And in Rome", message_history=first.all_messages())
        with suppress(RuntimeError):
            agent.run_sync("Please fail", conversation_id=f"broken-{name}")


main(int(sys.argv[1]), sys.argv[-1])
