"""Words and calls that stand where checks did not look: beside the content, before the first question."""

from __future__ import annotations

from typing import Any

from .recorded_conversations import ASKED, NEVER_RUDE, SAID, reviewed
from .table import Came, live, row

NO_REFUND = {"type": "tool-usage", "config": {"rules": [{"tool": "refund", "forbidden": True}]}}


@row("data", "The agent of a recording is rude before anybody asks", expect="fail", says="rude")
async def rude_opening() -> Came:
    return await reviewed([{"role": "assistant", "content": "How rude."}, ASKED, SAID], NEVER_RUDE)


@row("data", "A recording opens with a word that a rule forbids", expect="fail", says="rude")
async def forbidden_word_in_the_opening() -> Came:
    rule = {"type": "includes", "keywords": ["rude"], "expectedOutcome": "none"}
    opening = {"role": "assistant", "content": "How rude."}
    return await reviewed([opening, ASKED, SAID], {"type": "rule-based", "config": {"rules": [rule]}})


@row("data", "The greeting of a recording says what the answer should", expect="fail", says="no match")
async def greeting_instead_of_an_answer() -> Came:
    greeting = {"role": "assistant", "content": "Ask me for a refund!"}
    return await reviewed([greeting, ASKED, SAID], {"type": "regex", "config": {"pattern": "refund"}})


@row("data", "A recording has the result of a forbidden tool and not its call", expect="fail", says="refund")
async def result_without_its_call() -> Came:
    result = {"role": "tool", "tool_call_id": "9", "name": "refund", "content": "done"}
    return await reviewed([ASKED, result, SAID], NO_REFUND)


@row("data", "Expected arguments stand under another name than the call's", expect="fail", says="order")
async def expected_arguments_under_another_name() -> Came:
    call = {"function": {"name": "refund", "arguments": '{"order": 8}'}, "id": "1", "type": "function"}
    messages = [ASKED, {"role": "assistant", "tool_calls": [call]}]
    expected = [{"name": "refund", "parameters": {"order": 7}}]
    return await reviewed({"messages": messages, "expectedCalls": expected}, NEVER_RUDE)


@row("data", "The arguments of an expected call are misspelled", expect="refused", says="argumnets")
async def expected_arguments_misspelled() -> Came:
    expected = [{"name": "refund", "argumnets": {"order": 7}}]
    return await reviewed({"messages": [ASKED, SAID], "expectedCalls": expected}, NEVER_RUDE)


def _said(**message: Any) -> Any:
    return lambda messages: {"role": "assistant", **message}


@row("agent", "The agent says it aloud: in the transcript of its voice", expect="fail", says="rude")
async def rude_in_a_transcript() -> Came:
    return await live(_said(content="Fine.", audio={"id": "a", "transcript": "How rude."}), NEVER_RUDE)


@row("agent", "The agent says it in a part that was spoken", expect="fail", says="rude")
async def rude_in_a_spoken_part() -> Came:
    parts = [{"type": "text", "text": "Fine."}, {"type": "audio", "transcript": "How rude."}]
    return await live(_said(content=parts), NEVER_RUDE)


@row("agent", "The agent says it in the words of its refusal", expect="fail", says="rude")
async def rude_in_a_refusal() -> Came:
    return await live(_said(content=None, refusal="How rude."), NEVER_RUDE)


@row("agent", "A forbidden argument is given twice, the last time harmless", expect="fail", says="refund")
async def argument_given_twice() -> Came:
    arguments = '{"amount": 1000000, "amount": 5}'
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": arguments}}
    rule = {"tool": "refund", "forbidden": True, "arguments": {"amount": 1000000}}
    check = {"type": "tool-usage", "config": {"rules": [rule]}}
    return await live(_said(content="Done.", tool_calls=[call]), check)


@row(
    "agent", "A key of a JSON answer is there twice, the last time as asked for", expect="fail", says="twice"
)
async def key_given_twice() -> Came:
    schema = {"properties": {"amount": {"maximum": 5}}}
    answer = '{"amount": 1000000, "amount" : 5, "note": "\\u0022:"}'
    return await live(lambda messages: answer, {"type": "json-schema", "config": {"schema": schema}})
