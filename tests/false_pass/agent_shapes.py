"""Agents whose tool calls come in another shape than OpenAI's, or in none that can be read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.message_shapes import CALLS, UNREADABLE

from .table import Area, Came, Expected, live, recorded, row

FORBIDDEN = {"type": "tool-usage", "config": {"rules": [{"tool": "refund", "forbidden": True}]}}
NO_CALLS = {"type": "tool-call-budget", "config": {"maxCalls": 0}}
NO_REFUND = {"type": "regex", "config": {"pattern": "refund", "mustMatch": False}}
CALLED = "refund was called once though it is forbidden"
HI = {"role": "user", "content": "Hi"}


def add(
    attempt: str, run: Callable[[], Awaitable[Came]], *, expect: Expected, says: str, area: Area = "agent"
) -> None:
    """A row named after what is attempted."""
    run.__name__ = re.sub(r"\W+", "_", attempt.lower())
    row(area, attempt, expect=expect, says=says)(run)


def answering(answer: Any, *evaluators: Any) -> Callable[[], Awaitable[Came]]:
    async def run() -> Came:
        return await live(lambda messages: answer, *evaluators)

    return run


def recording(record: dict[str, Any], *evaluators: Any) -> Callable[[], Awaitable[Came]]:
    async def run() -> Came:
        return await recorded(record, *evaluators)

    return run


for _shape, _item in CALLS.items():
    add(
        f"An agent calls a forbidden tool in this shape: {_shape}",
        answering(["Ok", _item], FORBIDDEN),
        expect="fail",
        says=CALLED,
    )

for _shape, (_item, _words) in UNREADABLE.items():
    add(
        f"An agent answers with {_shape}, beside a text",
        answering(["Ok", _item], FORBIDDEN),
        expect="error: agent",
        says=_words,
    )

for _shape in ("Anthropic", "Gemini", "LangChain", "OpenAI Responses", "Vercel UI"):
    add(
        f"A record's history holds a forbidden call in this shape: {_shape}",
        recording({"response": "Ok", "messageHistory": [HI, CALLS[_shape]]}, FORBIDDEN),
        expect="fail",
        says=CALLED,
        area="data",
    )
    add(
        f"A record's response is a forbidden call in this shape: {_shape}",
        recording({"response": CALLS[_shape]}, FORBIDDEN),
        expect="fail",
        says=CALLED,
        area="data",
    )

for _shape in ("a tool_use block without a name", "tool_calls that are a text", "an empty functionCall"):
    add(
        f"A record's history holds {_shape}",
        recording({"response": "Ok", "messageHistory": [HI, UNREADABLE[_shape][0]]}, FORBIDDEN),
        expect="refused",
        says=UNREADABLE[_shape][1],
        area="data",
    )
    add(
        f"A record's response is {_shape}",
        recording({"response": UNREADABLE[_shape][0]}, FORBIDDEN),
        expect="refused",
        says=UNREADABLE[_shape][1],
        area="data",
    )

add(
    "A record's response is a list of items, one of them a forbidden call",
    recording({"response": [CALLS["OpenAI Responses"], {"role": "assistant", "content": "Ok"}]}, FORBIDDEN),
    expect="fail",
    says=CALLED,
    area="data",
)
add(
    "A record's response has a content beside content parts that say something else",
    recording(
        {
            "response": {
                "role": "assistant",
                "content": "I refund you.",
                "contentParts": [{"type": "text", "text": "Hello."}],
            }
        },
        NO_REFUND,
    ),
    expect="refused",
    says='"content" beside "contentParts" says something else',
    area="data",
)
add(
    "A record's history has a role that is not known, with a forbidden call",
    recording(
        {"response": "Ok", "messageHistory": [HI, {**CALLS["OpenAI chat"], "role": "agent"}]}, FORBIDDEN
    ),
    expect="refused",
    says='the role "agent"',
    area="data",
)
add(
    "An agent calls a tool at its provider where no call is allowed",
    answering(["Ok", {"type": "web_search_call", "id": "w", "action": {"query": "q"}}], NO_CALLS),
    expect="fail",
    says="over the budget of 0 tool calls",
)
add(
    "An agent hides a forbidden call in a message of a tool",
    answering(["Ok", {**CALLS["OpenAI chat"], "role": "tool"}], FORBIDDEN),
    expect="error: agent",
    says="a message of the role tool calls tools (refund)",
)
add(
    "An agent hides a forbidden call behind a tool's result in one message",
    answering(CALLS["Anthropic, at the provider"], FORBIDDEN),
    expect="fail",
    says=CALLED,
)
add(
    "An agent says what it must not in a block of a type nobody knows",
    answering(
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Ok."}, {"type": "card", "text": "I refund you."}],
        },
        NO_REFUND,
    ),
    expect="fail",
    says="refund",
)
add(
    "An agent says what it must not as a refusal",
    answering({"role": "assistant", "content": [{"type": "refusal", "refusal": "No refund."}]}, NO_REFUND),
    expect="fail",
    says="refund",
)
add(
    "An agent answers with a role that is not known",
    answering(["Ok", {"role": "wizard", "content": "I refund you."}], NO_REFUND),
    expect="error: agent",
    says='has the role "wizard"',
)
add(
    "An agent's content says something else than its parts",
    answering({"role": "model", "content": "I refund you.", "parts": [{"text": "Hello."}]}, NO_REFUND),
    expect="error: agent",
    says='"content" beside "parts" says something else',
)
