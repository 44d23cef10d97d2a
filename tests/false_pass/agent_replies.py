"""Agents that report a failure as an answer, answer with nothing, or miscount their tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalstudio import ConnectorResponse, define_connector
from evalstudio.connectors.connection import CallPolicy
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.session import test_connector

from .agent_shapes import NO_REFUND, add, answering, recording
from .table import Came, live, row

SAID = [{"role": "assistant", "content": "Fine."}]
BUDGET = {"type": "token-budget", "config": {"maxTokens": 10}}

_RESULTS: dict[str, tuple[Any, str]] = {
    "reports success: false with an error beside its messages": (
        {"success": False, "error": "no beds left", "messages": SAID},
        "no beds left",
    ),
    "reports success: false without a word": ({"success": False, "messages": SAID}, "success: false"),
    "reports success as numpy's false": ({"success": np.False_, "error": "down", "messages": SAID}, "down"),
    'reports success as the text "false"': ({"success": "false", "messages": SAID}, "must be true or false"),
    "reports success as 1": ({"success": 1, "messages": SAID}, "must be true or false, not 1"),
    "reports success as null": ({"success": None, "messages": SAID}, "must be true or false, not null"),
    "reports success and no messages": ({"success": True}, "no messages"),
    "reports success beside an error": (
        {"success": True, "error": "half done", "messages": SAID},
        "half done",
    ),
    "reports an error beside its messages": ({"messages": SAID, "error": "down"}, "down"),
    "puts a failure into a message": (
        {"role": "assistant", "content": "Fine.", "success": False},
        "success: false",
    ),
    "misspells a key of its result": ({"success": True, "messages": SAID, "eror": "down"}, '"eror"'),
    "returns a ConnectorResponse that failed": (
        ConnectorResponse(SAID, success=False, error="no key"),
        "no key",
    ),
    "returns a ConnectorResponse with an error": (ConnectorResponse(SAID, error="no key"), "no key"),
}
for _attempt, (_result, _words) in _RESULTS.items():
    add(f"An agent {_attempt}", answering(_result, NO_REFUND), expect="error: agent", says=_words)

_EMPTY: dict[str, Any] = {
    "an empty text": "",
    "nothing but blanks": " \n\t",
    "nothing but invisible characters": "\u200b\u2060\ufeff",
    "a message without content": {"role": "assistant"},
    "an empty list of blocks": {"role": "assistant", "content": []},
    "its thoughts alone": {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]},
    "a reasoning item alone": {"type": "reasoning", "summary": []},
    "an image alone": {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
    "a tool's result alone": [{"role": "tool", "content": "found", "tool_call_id": "1"}],
    "a system message alone": [{"role": "system", "content": "Reset."}],
}
for _attempt, _answer in _EMPTY.items():
    add(
        f"An agent answers with {_attempt}",
        answering(_answer, NO_REFUND),
        expect="error: agent",
        says="neither text nor a tool call",
    )

_USAGES: dict[str, tuple[Any, str]] = {
    "an empty usage": ({}, "no count that is known"),
    "a negative usage": (
        {"input_tokens": -5, "output_tokens": 1},
        "input_tokens is not a number of tokens: -5",
    ),
    "a usage of half a token": ({"total": 0.5}, "not a number of tokens: 0.5"),
    "a usage that is NaN": ({"total": float("nan")}, "not a number of tokens"),
    "a usage in words": ({"total": "few"}, 'not a number of tokens: "few"'),
    "a usage of true": ({"total": True}, "not a number of tokens: true"),
    "a usage beyond 2^53": ({"total": 2**60}, "not a number of tokens"),
    "a usage that is a list": ([1, 2], "not an object of numbers"),
    "a usage with one side only": ({"input_tokens": 5}, "neither a total nor output_tokens"),
    "a total below its parts": ({"input": 900, "output": 900, "total": 1}, "fewer than 1,800"),
    "no usage": (None, "the agent reported no token usage"),
}
for _attempt, (_usage, _words) in _USAGES.items():
    add(
        f"An agent with a token budget reports {_attempt}",
        answering(ConnectorResponse(SAID, tokens_usage=_usage), BUDGET),
        expect="error: evaluator",
        says=_words,
    )
for _attempt in ("an empty usage", "a negative usage", "a usage beyond 2^53"):
    add(
        f"A record with a token budget has {_attempt}",
        recording({"response": "Fine.", "tokensUsage": _USAGES[_attempt][0]}, BUDGET),
        expect="error",
        says=_USAGES[_attempt][1],
        area="data",
    )


@row(
    "agent",
    "An agent with a token budget for the run reports usage on its first turn only",
    expect="error: evaluator",
    says="on 1 turn of 2",
)
async def usage_on_one_turn_of_two() -> Came:
    def agent(messages: list[Any]) -> ConnectorResponse:
        usage = {"input_tokens": 1, "output_tokens": 1} if len(messages) == 1 else None
        return ConnectorResponse(SAID, tokens_usage=usage)

    budget = {"type": "token-budget", "config": {"maxTokens": 10, "scope": "run"}}
    return await live(agent, budget, script=["Hello", "And?"])


async def tested(answer: Any) -> Came:
    """What testing a connector whose hook returns this comes to."""

    @define_connector(type="tested")
    def connector(ctx: Any) -> str:
        return "never asked"

    connector.test(lambda ctx: answer)
    async with HttpPool() as pool:
        check = await test_connector(connector, connector.settings(), pool=pool, policy=CallPolicy())
    return Came("pass" if check.success else "error: agent", check.error or "")


@row("agent", "A connector's test returns success: false", expect="error: agent", says="no database")
async def test_hook_reports_failure() -> Came:
    return await tested({"success": False, "error": "no database"})


@row("agent", 'A connector\'s test returns "false" as a text', expect="error: agent", says="true or false")
async def test_hook_reports_false_as_text() -> Came:
    return await tested({"success": "false", "response": "fine"})


@row("agent", "A connector's test returns a result without success", expect="error: agent", says="no success")
async def test_hook_without_success() -> Came:
    return await tested({"response": "fine"})


@row("agent", "A connector's test returns a key that is not known", expect="error: agent", says='"healthy"')
async def test_hook_with_unknown_key() -> Came:
    return await tested({"success": True, "healthy": False})
