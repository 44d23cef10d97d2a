"""Recorded conversations that end too early, say nothing, or lack what a check would need."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from evalstudio import RecordedConversation, review_conversation
from evalstudio.base.problems import InvalidInput

from .table import Came, row

ASKED = {"role": "user", "content": "Where is my parcel?"}
SAID = {"role": "assistant", "content": "It is on its way."}
NEVER_RUDE = {"type": "regex", "config": {"pattern": "rude", "mustMatch": False}}


async def reviewed(conversation: Any, *evaluators: Any) -> Came:
    """One recorded conversation, looked at by these evaluators."""
    scenario = {"name": "attempt", "evaluators": list(evaluators)}
    try:
        result = await review_conversation(conversation, scenario)
    except (InvalidInput, ValidationError) as error:
        return Came("refused", str(error))
    outcome = f"error: {result.fault}" if result.outcome == "error" else result.outcome
    return Came(outcome, result.reason)


@row("data", "A recorded conversation holds no message at all", expect="error: agent", says="no message")
async def recording_without_messages() -> Came:
    return await reviewed([], NEVER_RUDE)


@row("data", "A recording holds words of the agent alone", expect="refused", says="user")
async def recording_without_a_user() -> Came:
    return await reviewed([SAID], NEVER_RUDE)


@row("data", "A recording ends before the agent answers", expect="error: agent", says="turn 2")
async def recording_without_the_last_answer() -> Came:
    return await reviewed([ASKED, SAID, ASKED], NEVER_RUDE)


@row("data", "A recorded answer is blank", expect="error: agent", says="neither text nor a tool call")
async def recording_with_a_blank_answer() -> Came:
    return await reviewed([ASKED, {"role": "assistant", "content": " "}, ASKED, SAID], NEVER_RUDE)


@row("data", "A recording says that the agent broke off", expect="error: agent", says="out of memory")
async def recording_with_an_error() -> Came:
    conversation = await _recorded(error="out of memory")
    return await reviewed(conversation, NEVER_RUDE)


async def _recorded(**fields: Any) -> RecordedConversation:
    from evalstudio.messages import Message
    from evalstudio.recordings.conversation import ConversationBuilder

    builder = ConversationBuilder()
    for message in (ASKED, SAID):
        builder.add(Message.model_validate(message))
    return RecordedConversation("c", builder.turns, **fields)


@row(
    "data",
    "A latency budget is held against a recording without times",
    expect="error: evaluator",
    says="no latency was measured",
)
async def recording_without_times() -> Came:
    return await reviewed([ASKED, SAID], {"type": "latency-budget", "config": {"maxMs": 900}})


@row(
    "data",
    "A recording was timed by a clock of whole seconds that says 0",
    expect="error: evaluator",
    says="no latency was measured",
)
async def recording_timed_by_a_coarse_clock() -> Came:
    conversation = await _recorded()
    conversation.turns[0].latency_ms = 0.0
    return await reviewed(conversation, {"type": "latency-budget", "config": {"maxMs": 900}})


@row(
    "data",
    "A token budget is held against a recording without usage",
    expect="error: evaluator",
    says="no token usage",
)
async def recording_without_usage() -> Came:
    return await reviewed([ASKED, SAID], {"type": "token-budget", "config": {"maxTokens": 900}})


@row("data", "A call that a recording expects was never made", expect="fail", says="refund")
async def recording_without_the_expected_call() -> Came:
    conversation = await _recorded(expected_calls=[{"name": "refund", "arguments": {"order": 7}}])
    return await reviewed(conversation, NEVER_RUDE)


@row("data", "An expected call of a recording cannot be read", expect="refused", says="expectedCalls[0]")
async def recording_with_an_unreadable_expectation() -> Came:
    conversation = await _recorded(expected_calls=[{"arguments": "{"}])
    return await reviewed(conversation, NEVER_RUDE)


@row("data", "An end state is compared that the recording does not hold", expect="error", says="no end state")
async def recording_without_a_state() -> Came:
    check = {"type": "state-match", "config": {"expected": {"status": "sent"}}}
    return await reviewed([ASKED, SAID], check)


@row("data", "A recording turns bad after a live run would have ended", expect="fail", says="rude")
async def recording_that_turns_bad_late() -> Came:
    done = {"type": "regex", "config": {"pattern": "on its way"}}
    rude = {"role": "assistant", "content": "Do not be rude."}
    return await reviewed([ASKED, SAID, ASKED, rude], done, NEVER_RUDE)
