"""Recordings that are played back in the place of an agent and do not fit, or hold no answer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalstudio import run_scenario
from evalstudio.cassettes import Cassette

from .table import Came, row

SCENARIO = {
    "name": "attempt",
    "script": ["Hello"],
    "evaluators": [{"type": "regex", "config": {"pattern": "rude", "mustMatch": False}}],
}
Exchange = dict[str, Any]


def polite(messages: Any) -> str:
    return "Welcome."


def broken(messages: Any) -> str:
    raise RuntimeError("out of order")


async def replayed(
    change: Callable[[Exchange], Exchange | None], agent: Any = polite, **scenario: Any
) -> Came:
    """A conversation played back from what was recorded of another, each exchange changed; none: left out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tape.jsonl")
        with Cassette.record(path) as cassette:
            await run_scenario(SCENARIO, agent, cassette=cassette)
        exchanges = [change(json.loads(line)) for line in path.read_text().splitlines()]
        path.write_text("".join(f"{json.dumps(one)}\n" for one in exchanges if one is not None))
        with Cassette.replay(path) as cassette:
            result = await run_scenario(SCENARIO | scenario, agent, cassette=cassette)
    outcome = f"error: {result.fault}" if result.outcome == "error" else result.outcome
    return Came(outcome, result.reason)


def same(exchange: Exchange) -> Exchange:
    return exchange


def with_response(**fields: Any) -> Callable[[Exchange], Exchange]:
    return lambda exchange: {**exchange, "response": {**exchange["response"], **fields}}


@row("agent", "A recording that is played back is empty", expect="error: system", says="holds no answer")
async def empty_recording() -> Came:
    return await replayed(lambda exchange: None)


@row("agent", "A recording that is played back is that of another conversation", expect="error: system")
async def recording_of_another_conversation() -> Came:
    return await replayed(same, script=["Good morning"])


@row("agent", "A recording that is played back ends before the conversation does", expect="error: system")
async def recording_that_is_too_short() -> Came:
    return await replayed(same, script=["Hello", "And now?"])


@row("agent", "A recording that is played back holds the agent's failure", expect="error: agent")
async def recording_of_a_failure() -> Came:
    return await replayed(same, broken)


@row("agent", "In a recording that is played back the answer is empty", expect="error: agent")
async def recording_of_nothing_said() -> Came:
    return await replayed(with_response(messages=[]))


@row("agent", "In a recording that is played back the answer cannot be read", expect="error: system")
async def recording_that_cannot_be_read() -> Came:
    return await replayed(with_response(messages=[{"role": "assistant", "content": 7}]))
