"""Secrets in what a recorded conversation brings beside its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.base.redaction import Redaction
from evalstudio.conversation.definitions import Scenario
from evalstudio.conversation.preparation import Services, prepare
from evalstudio.conversation.results import RunResult
from evalstudio.execution.reviewing import judge_recorded, with_conversation, without_secrets
from evalstudio.plugins import create_registry
from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.reading import conversations_in

SECRET = "sk-never-to-be-stored-1"
REDACT = Redaction.of([SECRET])


def conversation(*messages: dict[str, Any], **more: Any) -> RecordedConversation:
    [read] = conversations_in([{"messages": list(messages), **more}], "test")
    assert isinstance(read, RecordedConversation)
    return read


async def judged(recorded: RecordedConversation) -> RunResult:
    scenario = Scenario.model_validate({"name": "keeps it", "evaluators": [{"type": "secret-leak"}]})
    prepared = prepare(scenario, create_registry(), recorded=True)
    shown = without_secrets(recorded, REDACT)
    return await judge_recorded(with_conversation(prepared, shown), shown, Services(None, None), REDACT)


async def test_they_are_taken_out_of_prompts_questions_and_what_came_along() -> None:
    recorded = conversation(
        {"role": "system", "content": f"Use {SECRET}."},
        {"role": "user", "content": f"Is {SECRET} right?"},
        {"role": "assistant", "content": "I cannot tell."},
        metadata={"key": SECRET},
        tools=[{"type": "function", "function": {"name": "call", "description": SECRET}}],
    )
    recorded.error = f"401 for {SECRET}"
    shown = without_secrets(recorded, REDACT)
    assert SECRET in repr(recorded)
    assert SECRET not in repr(shown)
    result = await judged(recorded)
    assert SECRET not in repr(result)


async def test_an_agent_that_gives_one_away_before_the_first_question_has_given_it_away() -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert (await judged(conversation(*said))).outcome == "pass"
    result = await judged(conversation({"role": "assistant", "content": f"My key is {SECRET}"}, *said))
    assert (result.outcome, "opening" in result.reason) == ("fail", True)


async def test_what_cannot_be_looked_through_is_not_reviewed() -> None:
    nested: Any = SECRET
    for _ in range(100_000):
        nested = [nested]
    recorded = conversation({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"})
    with pytest.raises(InvalidInput, match="metadata is nested too deeply to be looked through for secrets"):
        without_secrets(replace(recorded, metadata={"deep": nested}), REDACT)
    with pytest.raises(InvalidInput, match="state is nested too deeply"):
        await judged(replace(recorded, state={"deep": nested}))
