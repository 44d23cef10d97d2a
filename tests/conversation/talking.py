"""What the tests of whole conversations share: scenarios as JSON, a judge's verdicts, models over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.model_server import ModelServer, Recorded

from evalstudio.conversation.definitions import Scenario
from evalstudio.llm import Llm, LlmSettings
from evalstudio.messages import Message

Agent = Callable[[list[Message]], str]


def scenario(**fields: Any) -> Scenario:
    return Scenario.model_validate({"name": "s", **fields})


def regex(pattern: str, **more: Any) -> dict[str, Any]:
    return {"type": "regex", "config": {"pattern": pattern, **more}}


NEVER = regex("x{99}", mustMatch=False)


def echo(messages: list[Message]) -> str:
    return f"You said: {messages[-1].text}"


def says(*replies: str) -> Agent:
    """An agent that answers these, then repeats the last."""
    left = list(replies)

    def agent(messages: list[Message]) -> str:
        return left.pop(0) if len(left) > 1 else left[0]

    return agent


def verdict(
    success: bool | None = None, failure: bool | None = None, reasoning: str = "Because.", **more: Any
) -> dict[str, Any]:
    asked = {"success_met": success, "failure_met": failure}
    given = {name: answer for name, answer in asked.items() if answer is not None}
    return {"reasoning": reasoning, "evidence": [], **given, "confidence": 0.9, **more}


def open_llm(server: ModelServer, **changes: Any) -> Llm:
    """A client whose judge and persona are different models of the server."""
    return Llm(
        LlmSettings.model_validate(
            {
                "provider": "local",
                "baseUrl": server.url,
                "models": {"evaluation": "judge", "persona": "user"},
                "maxRetries": 0,
                **changes,
            }
        )
    )


def asked_by(server: ModelServer, model: str) -> list[Recorded]:
    return [request for request in server.requests if request.body["model"] == model]


def by_model(**replies: Sequence[Any] | Callable[[Recorded], Any]) -> Callable[[Recorded], Any]:
    """Replies for a server that plays several models, each by a function or a list that is used up."""
    left: Mapping[str, Any] = {
        name: given if callable(given) else list(given) for name, given in replies.items()
    }

    def reply(request: Recorded) -> Any:
        given = left[request.body["model"]]
        return given(request) if callable(given) else given.pop(0)

    return reply
