"""Logs of Inspect: every sample of an evaluation is a conversation, every epoch a trial of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.paths import fields_of, items_of
from .conversation import RecordedConversation
from .exchange import error_in
from .parts import (
    Fields,
    add_latency,
    add_usage,
    build,
    conversation_of,
    list_under,
    text_under,
    tool_schemas,
)
from .times import time_in

_ATTACHMENT = "attachment://"
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")


def is_inspect_log(fields: Fields) -> bool:
    evaluation = fields_of(fields.get("eval"))
    return "samples" in fields and ("task" in evaluation or "eval_id" in evaluation)


def samples_in(fields: Fields) -> Iterator[Any]:
    """The samples, each with what the log says of the evaluation under ``eval``."""
    for sample in list_under(fields, "samples"):
        yield {"eval": fields_of(fields.get("eval")), **sample} if isinstance(sample, dict) else sample


def read_sample(sample: Fields) -> RecordedConversation:
    """One sample of one epoch."""
    evaluation, calls = fields_of(sample.get("eval")), _ModelCalls(items_of(sample.get("events")) or [])
    messages = _resolved(list_under(sample, "messages"), fields_of(sample.get("attachments")))
    builder = build(messages, beside=calls.beside)
    add_usage(builder, _summed(fields_of(sample.get("model_usage"))))
    seconds = sample.get("working_time") or sample.get("total_time")
    if len(builder.turns) == 1 and isinstance(seconds, int | float):
        add_latency(builder, seconds * 1000)
    task, number = text_under(evaluation, "task"), text_under(sample, "id")
    epoch = sample.get("epoch")
    names = (text_under(evaluation, "eval_id", "run_id") or task, number, text_under(sample, "epoch"))
    conversation = conversation_of(
        builder, text_under(sample, "uuid") or ":".join(name for name in names if name)
    )
    conversation.task_id = "/".join(name for name in (task, number) if name) or None
    conversation.trial = epoch if isinstance(epoch, int) else None
    conversation.ground_truth = sample.get("target") or None
    conversation.state = fields_of(sample.get("store")) or None
    conversation.tags = [tag for tag in items_of(evaluation.get("tags")) or () if isinstance(tag, str)]
    conversation.agent = text_under(evaluation, "model")
    conversation.started = time_in(sample) or calls.began or time_in(evaluation)
    conversation.tools = calls.tools
    conversation.error = error_in(sample)
    conversation.metadata = {"task": task, **fields_of(sample.get("metadata"))}
    return conversation


class _ModelCalls:
    """What the events of a sample say of each message of the model: how long it took and what it used."""

    def __init__(self, events: list[Any]) -> None:
        calls = [event for event in map(fields_of, events) if event.get("event") == "model"]
        self._by_message = {name: event for event in calls if (name := _message_id(event))}
        self.began = time_in(calls[0], "timestamp") if calls else None
        self.tools = tool_schemas(next((event["tools"] for event in calls if event.get("tools")), None))

    def beside(self, message: Fields) -> Fields:
        event = self._by_message.get(str(message.get("id")))
        if event is None:
            return {}
        output = fields_of(event.get("output"))
        seconds = event.get("working_time") or output.get("time")
        took = {"latencyMs": seconds * 1000} if isinstance(seconds, int | float) else {}
        usage = output.get("usage")
        return took if usage is None else {"usage": usage, **took}


def _message_id(event: Fields) -> str | None:
    choices = items_of(fields_of(event.get("output")).get("choices")) or [None]
    return text_under(fields_of(fields_of(choices[0]).get("message")), "id")


def _summed(by_model: Fields) -> Fields | None:
    """What all models of a sample used together."""
    usages = [fields_of(usage) for usage in by_model.values()]
    counts = {name: [usage[name] for usage in usages if isinstance(usage.get(name), int)] for name in _COUNTS}
    return {name: sum(numbers) for name, numbers in counts.items() if numbers} or None


def _resolved(value: Any, attachments: Fields) -> Any:
    """The same with long texts in their place, which a log keeps apart."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if items := items_of(value):
        return [_resolved(item, attachments) for item in items]
    if fields := fields_of(value):
        return {name: _resolved(item, attachments) for name, item in fields.items()}
    return value
