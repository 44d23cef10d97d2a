"""Agents that break every rule of HTTP and JSON: an agent fault in words, in bounded time and memory."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pytest
from tests.conversation.talking import NEVER, scenario
from tests.support.agent_server import (
    DROP,
    DROP_MID_BODY,
    EMPTY,
    HANG,
    HTML,
    HUGE,
    NOT_JSON,
    AgentServer,
    Answer,
    says,
)

from evalstudio.conversation.library import run_scenario
from evalstudio.conversation.results import RunResult

LONGEST_SECONDS = 8.0
MOST_MEMORY = 80_000_000


@dataclass(frozen=True)
class Bad:
    """What an agent answers, and words the person must read."""

    answer: Answer
    words: tuple[str, ...]


def messages(*given: Any) -> Answer:
    return Answer(json={"messages": list(given)})


BAD: dict[str, Bad] = {
    "never answers": Bad(HANG, ("did not answer within 1 s",)),
    "closes the connection": Bad(DROP, ("closed the connection without an answer",)),
    "breaks off in its body": Bad(DROP_MID_BODY, ("broke off in the middle of its answer",)),
    "sends 200 MB": Bad(HUGE, ("sent more than 10,000,000 bytes",)),
    "announces 200 MB": Bad(Answer(stream_bytes=200_000_000, declared=True), ("more than 10,000,000 bytes",)),
    "sends invalid JSON": Bad(NOT_JSON, ("not JSON", "single quotes")),
    "sends half of a JSON": Bad(Answer(body=b'{"message": "Hel'), ("not JSON",)),
    "sends HTML": Bad(HTML, ("an HTML page instead of JSON", "Sign in Welcome back")),
    "sends bytes": Bad(Answer(body=bytes(range(256)) * 8), ("not JSON",)),
    "sends nothing": Bad(EMPTY, ("an empty answer",)),
    "sends null": Bad(Answer(body=b"null"), ("wrong shape",)),
    "sends a number": Bad(Answer(json=42), ("no text, message or list of messages: 42",)),
    "sends an empty list": Bad(Answer(json=[]), ("holds no message",)),
    "sends no messages": Bad(messages(), ("holds no message",)),
    "sends something else": Bad(Answer(json={"status": "fine"}), ("set responsePath", '"status"')),
    "speaks for the user": Bad(messages({"role": "user", "content": "hi"}), ('the role "user"',)),
    "invents a role": Bad(messages({"role": "wizard", "content": "hi"}), ('the role "wizard"',)),
    "has no role": Bad(messages({"content": "hi"}), ("role",)),
    "has a number for a role": Bad(messages({"role": 5, "content": "hi"}), ("role",)),
    "puts a number for a message": Bad(messages(7), ("message 1 of the answer is an int",)),
    "sends a flood of messages": Bad(
        messages(*[{"role": "assistant", "content": "x"}] * 2000), ("2,000 messages; the limit is 1,000",)
    ),
    "refuses": Bad(
        Answer(status=403, body=b"who are you?"), ("refused the credentials (403)", "who are you?")
    ),
    "is not there": Bad(Answer(status=404, body=b""), ("nothing at this address (404)",)),
    "redirects": Bad(Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}), ("redirect (302)",)),
    "fails": Bad(
        Answer(status=500, body=b"Traceback: division by zero"), ("failed (500)", "division by zero")
    ),
}


async def meet(answers: Any, script: tuple[str, ...] = ("Hi",), **config: Any) -> RunResult:
    async with AgentServer(answers) as agent:
        connector = {"type": "http", "baseUrl": agent.url, "config": {"timeoutSeconds": 1, **config}}
        return await run_scenario(scenario(script=list(script), evaluators=[NEVER]), connector)


@pytest.mark.parametrize("name", BAD)
async def test_it_is_the_agents_fault_and_says_why(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    result = await meet(BAD[name].answer)
    assert (result.outcome, result.fault, result.score) == ("error", "agent", None)
    for words in BAD[name].words:
        assert words in result.reason
    assert result.reason.startswith('Connector "http": ')
    assert result.error == result.reason
    assert "\n" not in result.reason
    assert len(result.reason) < 1000
    assert perf_counter() - start < LONGEST_SECONDS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < MOST_MEMORY


@pytest.mark.parametrize("name", ["never answers", "sends HTML", "breaks off in its body"])
async def test_what_was_said_before_is_kept(name: str) -> None:
    result = await meet([says("Hello!"), BAD[name].answer], ("one", "two", "three"))
    assert (result.outcome, result.fault) == ("error", "agent")
    assert [m.text for m in result.messages] == ["one", "Hello!", "two"]
    assert [turn.number for turn in result.turns] == [1]
    assert "Hello!" in str(result)


async def test_a_hiccup_is_tried_again() -> None:
    result = await meet([Answer(status=503, headers={"Retry-After": "0"}), says("Hello!")])
    assert result.passed
    first, second = result.turns[0].attempts or []
    assert ("failed (503)" in str(first.error), first.retry_after, second.error) == (True, 0.0, None)


async def test_an_agent_nobody_runs_is_named() -> None:
    async with AgentServer() as agent:
        gone = agent.url
    result = await run_scenario(
        scenario(script=["Hi"], evaluators=[NEVER]), {"type": "http", "baseUrl": gone}
    )
    assert (result.outcome, result.fault) == ("error", "agent")
    assert "Is the agent running?" in result.reason


async def test_what_an_agent_says_cannot_steer_a_terminal() -> None:
    result = await meet(says("\x1b[2J\x1b]0;owned\x07 done\r\nreally"))
    assert "\x1b" not in str(result)
    assert "\r" not in str(result)
    shown = await meet(says("<b>hi</b>"))
    assert "&lt;b&gt;" in shown._repr_html_()  # pyright: ignore[reportPrivateUsage]
