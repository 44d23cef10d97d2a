"""What stands beside a conversation to judge it by: ground truth, expected calls, state, tags, the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..base.json_text import json_kind, json_text
from ..base.paths import fields_of, items_of
from .conversation import RecordedConversation
from .parts import UnreadableConversation, tool_schemas
from .times import read_time

MOST_TRIALS = 1_000_000
# Names that others use for something else too are not refused: what is not ours is kept as metadata.
_OURS = frozenset({"groundTruth", "expectedCalls", "taskId", "trial"})


def take_along(conversation: RecordedConversation, fields: Mapping[str, Any]) -> None:
    """Everything that a document says under our own names, in either spelling."""
    for target, names in _SPELLINGS.items():
        name = next((one for one in names if fields.get(one) is not None), None)
        if name is None:
            continue
        try:
            place(conversation, target, fields[name])
        except UnreadableConversation:
            if target in _OURS:
                raise
            conversation.metadata = {**conversation.metadata, name: fields[name]}


def place(conversation: RecordedConversation, target: str, value: Any) -> None:
    """Put a value where its target says; ``UnreadableConversation`` where it cannot be that."""
    if target.startswith("metadata."):
        conversation.metadata = {**conversation.metadata, target.removeprefix("metadata."): value}
        return
    _SETTERS[target](conversation, value)


def _text(target: str, value: Any) -> str:
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return str(value)
    raise _wrong(target, value, "a text")


def _wrong(target: str, value: Any, expected: str) -> UnreadableConversation:
    kind = "object" if isinstance(value, dict) else json_kind(value)
    return UnreadableConversation(f"{target} is a JSON {kind}, not {expected}")


def _set_id(conversation: RecordedConversation, value: Any) -> None:
    conversation.id = _text("id", value)


def _set_ground_truth(conversation: RecordedConversation, value: Any) -> None:
    conversation.ground_truth = value


def _set_expected_calls(conversation: RecordedConversation, value: Any) -> None:
    items = items_of(value)
    if items is None or not all(isinstance(item, dict) for item in items):
        raise _wrong("expectedCalls", value, "a list of calls")
    conversation.expected_calls = items


def _set_state(conversation: RecordedConversation, value: Any) -> None:
    if not isinstance(value, dict):
        raise _wrong("state", value, "an object")
    conversation.state = fields_of(value)


def _set_tags(conversation: RecordedConversation, value: Any) -> None:
    items = [value] if isinstance(value, str) else items_of(value)
    if isinstance(value, dict):
        items = [
            f"{name}:{item if isinstance(item, str) else json_text(item)}"
            for name, item in fields_of(value).items()
        ]
    if items is None:
        raise _wrong("tags", value, "a list of texts")
    conversation.tags = [_text("tags", item) for item in items]


def _set_task_id(conversation: RecordedConversation, value: Any) -> None:
    conversation.task_id = _text("taskId", value)


def _set_trial(conversation: RecordedConversation, value: Any) -> None:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_TRIALS:
        raise _wrong("trial", value, f"a whole number from 0 to {MOST_TRIALS:,}")
    conversation.trial = number


def _set_agent(conversation: RecordedConversation, value: Any) -> None:
    conversation.agent = _text("agent", value)


def _set_started(conversation: RecordedConversation, value: Any) -> None:
    conversation.started = read_time(value)
    if conversation.started is None:
        raise _wrong("startedAt", value, "a time in ISO 8601 or since 1970")


def _set_tools(conversation: RecordedConversation, value: Any) -> None:
    if items_of(value) is None:
        raise _wrong("tools", value, "a list of tool schemas")
    conversation.tools = tool_schemas(value)


def _set_metadata(conversation: RecordedConversation, value: Any) -> None:
    if not isinstance(value, dict):
        raise _wrong("metadata", value, "an object")
    conversation.metadata = {**conversation.metadata, **fields_of(value)}


_SETTERS: dict[str, Callable[[RecordedConversation, Any], None]] = {
    "id": _set_id,
    "groundTruth": _set_ground_truth,
    "expectedCalls": _set_expected_calls,
    "state": _set_state,
    "tags": _set_tags,
    "taskId": _set_task_id,
    "trial": _set_trial,
    "agent": _set_agent,
    "startedAt": _set_started,
    "tools": _set_tools,
    "metadata": _set_metadata,
}
TARGETS = tuple(_SETTERS)
_SPELLINGS: dict[str, tuple[str, ...]] = {
    "groundTruth": ("groundTruth", "ground_truth"),
    "expectedCalls": ("expectedCalls", "expected_calls"),
    "state": ("state",),
    "tags": ("tags",),
    "taskId": ("taskId", "task_id"),
    "trial": ("trial",),
    "agent": ("agent", "agentId", "agent_id"),
    "startedAt": ("startedAt", "started_at"),
    "metadata": ("metadata",),
}
