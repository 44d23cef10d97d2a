"""LangGraph's states and threads, and the runs of LangSmith, with LangChain's messages in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.paths import fields_of, items_of
from ..base.times import milliseconds_between
from .alongside import take_along
from .conversation import RecordedConversation
from .exchange import answered, asked, error_in, has_messages
from .parts import (
    Fields,
    UnreadableConversation,
    add_latency,
    add_usage,
    build,
    conversation_of,
    first_of,
    list_under,
    text_under,
    tool_schemas,
)
from .times import time_in

_TYPES = frozenset({"human", "ai", "system", "tool", "function", "constructor"})
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_QUESTIONS = ("input", "question", "query", "prompt", "text")
_ANSWERS = ("output", "answer", "response", "result", "text", "content")
# Not part of the state that a graph keeps.
_BESIDE = frozenset(
    {"messages", "id", "thread_id", "groundTruth", "expectedCalls", "tags", "taskId", "trial"}
)


def is_state(fields: Fields) -> bool:
    """LangGraph's values with messages in them, or an object whose messages are LangChain's."""
    if items_of(fields_of(fields.get("values")).get("messages")) is not None:
        return True
    messages = items_of(fields.get("messages")) or ()
    return any(
        "role" not in message and str(message.get("type")).lower() in _TYPES
        for message in map(fields_of, messages)
    )


def read_state(fields: Fields) -> RecordedConversation:
    """The messages of a state; what else is in it is what the agent keeps."""
    values = fields_of(fields.get("values")) or fields
    conversation = conversation_of(build(list_under(values, "messages")), _thread_id(fields))
    conversation.started = time_in(fields)
    take_along(conversation, fields)
    if conversation.state is None:
        left_out = _BESIDE if values is fields else {"messages"}
        conversation.state = {name: item for name, item in values.items() if name not in left_out} or None
    return conversation


def _thread_id(fields: Fields) -> str | None:
    config = fields_of(fields_of(fields.get("config")).get("configurable"))
    places = (fields, fields_of(fields.get("checkpoint")), config)
    return next((name for place in places if (name := text_under(place, "thread_id"))), None) or text_under(
        fields, "id"
    )


def is_run(fields: Fields) -> bool:
    """LangSmith's run, a list of them, or a row of an experiment: a run with its example."""
    runs = items_of(fields.get("runs"))
    return any("run_type" in one and "inputs" in one for one in map(fields_of, runs or [_run_of(fields)]))


def runs_in(fields: Fields) -> Iterable[Any]:
    return items_of(fields.get("runs")) or (fields,)


def parent_of(fields: Fields) -> str | None:
    """The trace that a run is only a part of: what was said stands in the run at its root."""
    run = _run_of(fields)
    return text_under(run, "trace_id", "parent_run_id") if run.get("parent_run_id") else None


def read_run(fields: Fields) -> RecordedConversation:
    """The conversation of a run at the root of its trace."""
    run = _run_of(fields)
    inputs, outputs = fields_of(run.get("inputs")), fields_of(run.get("outputs"))
    builder = build(_said(inputs, outputs))
    counts = {name: run[name] for name in _COUNTS if run.get(name)}
    add_usage(builder, counts or fields_of(outputs.get("llm_output")).get("token_usage"))
    add_usage(builder, first_of(outputs, "usage", "usage_metadata"))
    began = time_in(run, "start_time")
    add_latency(builder, milliseconds_between(began, time_in(run, "end_time")))
    conversation = conversation_of(builder, text_under(run, "id"))
    conversation.started = began
    conversation.error = error_in(run)
    extra = fields_of(run.get("extra"))
    conversation.tools = tool_schemas(fields_of(extra.get("invocation_params")).get("tools"))
    conversation.metadata = {"run": run.get("name"), **fields_of(extra.get("metadata"))}
    conversation.tags = [tag for tag in items_of(run.get("tags")) or () if isinstance(tag, str)]
    _add_example(conversation, run, fields)
    return conversation


def _run_of(fields: Fields) -> Fields:
    return fields_of(fields.get("run")) or fields


def _add_example(conversation: RecordedConversation, run: Fields, fields: Fields) -> None:
    """The example of the data set that the run was made for, with what it should have given."""
    example = fields_of(first_of(fields, "example", "reference_example")) or fields_of(
        run.get("reference_example")
    )
    expected = fields_of(example.get("outputs")) or fields_of(
        first_of(fields, "reference_outputs", "reference")
    )
    conversation.task_id = text_under(example, "id") or text_under(run, "reference_example_id")
    if expected:
        values = list(expected.values())
        conversation.ground_truth = values[0] if len(values) == 1 else expected


def _said(inputs: Fields, outputs: Fields) -> list[Any]:
    before, after = _asked(inputs), _answered(outputs)
    # A graph gives back the whole conversation, what it was given included.
    return after if before and _repeats(before, after) else [*before, *after]


def _asked(inputs: Fields) -> list[Any]:
    nested = items_of(inputs.get("messages")) or ()
    if nested and items_of(nested[0]) is not None:
        return list(nested[0])
    if nested or (has_messages(inputs) and not isinstance(inputs.get("input"), str)):
        return asked(inputs)
    return [{"role": "user", "content": _lone_text(inputs, _QUESTIONS, "inputs")}]


def _answered(outputs: Fields) -> list[Any]:
    if items_of(outputs.get("messages")) is not None:
        return list_under(outputs, "messages")
    if generations := items_of(outputs.get("generations")):
        first = items_of(generations[0])
        generation = fields_of(first[0] if first else generations[0])
        return [generation.get("message") or {"role": "assistant", "content": generation.get("text")}]
    items = answered(outputs)
    if items or not outputs:
        return items
    return [{"role": "assistant", "content": _lone_text(outputs, _ANSWERS, "outputs")}]


def _lone_text(fields: Fields, names: tuple[str, ...], where: str) -> str:
    """The only text that can be meant."""
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    named = next((texts[name] for name in names if name in texts), None)
    if named is None and len(texts) == 1:
        named = next(iter(texts.values()))
    if named is None:
        told = ", ".join(list(fields)[:8]) or "nothing"
        raise UnreadableConversation(f"its {where} hold no messages and no single text, but {told}")
    return named


def _repeats(before: list[Any], after: list[Any]) -> bool:
    """Whether all that was given is in what came back, in its order."""
    left = iter(after)
    return all(any(_is_same(one, other) for other in left) for one in before)


def _is_same(one: Any, other: Any) -> bool:
    return _plain(one).get("content") == _plain(other).get("content")


def _plain(message: Any) -> Fields:
    fields = fields_of(message)
    return fields_of(fields.get("kwargs")) or fields_of(fields.get("data")) or fields
