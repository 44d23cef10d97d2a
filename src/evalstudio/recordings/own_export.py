"""A run as this product gives it out: ``evalstudio run show ID --json``, and the API.

``written`` gives out a recorded conversation in the same shape, with all that came along under ``recording``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from ..base.paths import fields_of, items_of
from ..base.problems import problems_of
from ..evaluators.results import Turn
from ..messages import Message, read_messages
from .alongside import MOST_TRIALS, place
from .conversation import RecordedConversation
from .parts import Fields, UnreadableConversation, list_under, text_under
from .times import read_time, time_in

_PLAIN_TEXTS = ("id", "origin", "error")
_TARGETS = {"ground_truth": "groundTruth", "expected_calls": "expectedCalls", "task_id": "taskId"}
_BESIDE = (
    *_PLAIN_TEXTS,
    *_TARGETS,
    "state",
    "tags",
    "trial",
    "repetition",
    "agent",
    "started",
    "tools",
    "metadata",
)
_OF_A_TURN = ("turn", "latencyMs", "tokensUsage", "usageMissing", "firstTokenMs", "metadata", "redacted")


def is_own_run(fields: Fields) -> bool:
    """A run has its messages in one list, and turns that say how many of them are their own."""
    turns = items_of(fields.get("turns"))
    return bool(turns) and "messages" in fields and all("messageCount" in fields_of(turn) for turn in turns)


def read_own_run(fields: Fields) -> RecordedConversation:
    """The turns as the live run had them; what was found about them is left behind."""
    recording = fields_of(fields.get("recording"))
    seeds, turns = _turns(list_under(fields, "turns"), read_messages(list_under(fields, "messages")))
    if recording:
        return _read_recording(recording, seeds, turns)
    if not turns:
        raise UnreadableConversation("has no turn: the run ended before the agent was asked")
    case = fields_of(fields.get("case"))
    names = (text_under(fields, "scenarioName"), text_under(fields, "caseName"))
    conversation = RecordedConversation(
        id=text_under(fields, "id") or "",
        turns=turns,
        seeds=seeds,
        ground_truth=case.get("groundTruth"),
        task_id=" / ".join(name for name in names if name) or None,
        trial=fields.get("repetition") if isinstance(fields.get("repetition"), int) else None,
        agent=text_under(fields, "connectorName"),
        started=time_in(fields, "startedAt"),
        error=text_under(fields, "error"),
        is_live=True,
    )
    kept = ("executionId", "scenarioName", "personaName", "caseName", "threadId")
    conversation.metadata = {name: fields[name] for name in kept if fields.get(name) is not None}
    return conversation


def _turns(stored: Sequence[Any], messages: list[Message]) -> tuple[list[Message], list[Turn]]:
    counts = [_count(fields_of(turn).get("messageCount")) for turn in stored]
    if sum(counts) != len(messages):
        told = f"its turns count {sum(counts)} messages and there are {len(messages)}"
        raise UnreadableConversation(f"is no whole run: {told}")
    seeds, turns, start = list[Message](), list[Turn](), 0
    for one, count in zip(stored, counts, strict=True):
        turn = _turn(fields_of(one), messages[start : start + count])
        start += count
        if turn.number > 0:
            turns.append(turn)
        else:
            seeds += turn.all_messages
    return seeds, turns


def written(conversation: RecordedConversation) -> dict[str, Any]:
    """A recorded conversation as a document that is read as the same one."""
    seeds = Turn(number=0, messages=conversation.seeds)
    told = [seeds, *conversation.turns]
    recording = {name: getattr(conversation, name) for name in _BESIDE}
    recording |= {"tags": [*conversation.tags], "metadata": dict(conversation.metadata)}
    recording["isLive"] = conversation.is_live or None
    recording["started"] = None if conversation.started is None else conversation.started.isoformat()
    return {
        "messages": [message.to_json() for turn in told for message in turn.all_messages],
        "turns": [_told(turn) for turn in told],
        "recording": {name: value for name, value in recording.items() if value is not None},
    }


def _told(turn: Turn) -> dict[str, Any]:
    told = turn.model_dump(mode="json", by_alias=True, exclude_none=True)
    kept = {name: told[name] for name in _OF_A_TURN if name in told}
    return {**kept, "messageCount": len(turn.all_messages)}


def _read_recording(recording: Fields, seeds: list[Message], turns: list[Turn]) -> RecordedConversation:
    values = {name: recording[name] for name in _BESIDE if name in recording}
    repetition = values.pop("repetition", None)
    started = read_time(values.pop("started", None))
    conversation = RecordedConversation(text_under(recording, "id") or "", turns, seeds, started=started)
    conversation.is_live = recording.get("isLive") is True
    if isinstance(repetition, int) and 0 < repetition <= MOST_TRIALS:
        conversation.repetition = repetition
    for name, value in values.items():
        if name in _PLAIN_TEXTS:
            setattr(conversation, name, text_under(recording, name) or getattr(conversation, name))
        else:
            place(conversation, _TARGETS.get(name, name), value)
    return conversation


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _turn(stored: Fields, messages: list[Message]) -> Turn:
    try:
        turn = Turn.model_validate({name: stored[name] for name in _OF_A_TURN if name in stored})
    except ValidationError as error:
        raise UnreadableConversation(f"a turn cannot be read: {problems_of(error)[0]}") from None
    if turn.number > 0 and messages and messages[0].role == "user":
        turn.user_message, *messages = messages
    turn.messages = messages
    return turn
