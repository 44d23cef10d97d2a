"""A LangGraph agent with the OpenInference instrumentation: two turns of one thread, with a tool."""

from __future__ import annotations

import warnings
from typing import Any

from exporting import exporting
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver
from openinference.instrumentation.langchain import LangChainInstrumentor


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def get_weather(city: str) -> str:
    """The weather of a city."""
    return {"Paris": "sunny", "Rome": "raining"}[city]


def call(city: str, identity: str) -> AIMessage:
    return AIMessage(
        "",
        tool_calls=[{"name": "get_weather", "args": {"city": city}, "id": identity}],
        usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    )


def said(text: str) -> AIMessage:
    return AIMessage(text, usage_metadata={"input_tokens": 20, "output_tokens": 7, "total_tokens": 27})


def main() -> None:
    with exporting("graph"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langgraph.prebuilt import create_react_agent

        LangChainInstrumentor().instrument()
        model = Model(
            messages=iter(
                [
                    call("Paris", "call-1"),
                    said("It is sunny."),
                    call("Rome", "call-2"),
                    said("It is raining."),
                ]
            )
        )
        agent = create_react_agent(model, [get_weather], prompt="Be brief.", checkpointer=MemorySaver())
        settings: Any = {"configurable": {"thread_id": "thread-7"}}
        for question in ("How is the weather in Paris?", "And in Rome?"):
            agent.invoke({"messages": [("user", question)]}, settings)


main()
