"""Results of promptfoo: every prompt with its output is a conversation, with the test it was made for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import yaml

from ..base.json_text import json_bytes, json_text
from ..base.paths import fields_of, items_of
from ..messages import read_answer
from .conversation import RecordedConversation
from .documents import decode
from .exchange import answered, error_in
from .parts import (
    Fields,
    UnreadableConversation,
    add_latency,
    add_usage,
    build,
    conversation_of,
    first_of,
    latency_in,
    text_under,
    tool_schemas,
)
from .times import time_in

# Assertions that hold the answer which is expected.
_REFERENCES = ("equals", "similar", "factuality", "model-graded-factuality", "rouge-n", "bleu")
_EXPECTED = ("groundTruth", "ground_truth", "expected", "reference", "answer")
_LONGEST_YAML = 100_000


def is_promptfoo(fields: Fields) -> bool:
    return _is_result(fields) or any(map(_is_result, map(fields_of, _listed(fields) or ())))


def _is_result(fields: Fields) -> bool:
    return "promptIdx" in fields or ("gradingResult" in fields and "prompt" in fields and "vars" in fields)


def _listed(fields: Fields) -> list[Any] | None:
    results = fields.get("results")
    return items_of(fields_of(results).get("results")) if isinstance(results, dict) else items_of(results)


def results_in(fields: Fields) -> Iterator[Any]:
    """The single results, each with the id and the time of the evaluation."""
    listed = _listed(fields)
    if listed is None:
        yield fields
        return
    summary = fields_of(fields.get("results"))
    shared = {"evalId": fields.get("evalId"), "timestamp": summary.get("timestamp")}
    for result in listed:
        yield {**shared, **fields_of(result)} if isinstance(result, dict) else result


def read_result(fields: Fields) -> RecordedConversation:
    """What one prompt of one test came to."""
    response, test = fields_of(fields.get("response")), fields_of(fields.get("testCase"))
    builder = build(_said(fields, response))
    add_usage(builder, _usage(first_of(response, "tokenUsage") or fields.get("tokenUsage")))
    add_latency(builder, latency_in(fields))
    names = (text_under(fields, "evalId"), text_under(fields, "testIdx"), text_under(fields, "promptIdx"))
    has_place = names[1] is not None and names[2] is not None
    place = ":".join(name for name in names if name) if has_place else None
    conversation = conversation_of(builder, text_under(fields, "id") or place)
    variables = fields_of(fields.get("vars")) or fields_of(test.get("vars"))
    conversation.task_id = _task_id(fields, test, variables)
    conversation.ground_truth = _ground_truth(test, variables)
    provider = fields.get("provider")
    conversation.agent = text_under(fields_of(provider), "label", "id") or text_under(fields, "provider")
    conversation.started = time_in(fields)
    conversation.tools = tool_schemas(fields_of(fields_of(fields.get("prompt")).get("config")).get("tools"))
    conversation.error = _error(fields, response)
    conversation.metadata = _metadata(test, variables)
    return conversation


def _said(fields: Fields, response: Fields) -> list[Any]:
    """The messages that a provider of several turns keeps, else the prompt and its output."""
    kept = items_of(fields_of(response.get("metadata")).get("messages"))
    if kept and all("role" in fields_of(message) for message in kept):
        return kept
    return [*_prompt(fields), *_output(response)]


def _prompt(fields: Fields) -> list[Any]:
    """A prompt is a text, or messages as JSON or YAML text."""
    raw = text_under(fields_of(fields.get("prompt")), "raw") or text_under(fields, "prompt")
    if raw is None:
        raise UnreadableConversation('has no prompt: neither "prompt.raw" nor "prompt" is a text')
    value = _structured(raw)
    messages = items_of(value) or items_of(fields_of(value).get("messages"))
    if messages and all("role" in fields_of(message) for message in messages):
        return messages
    return [{"role": "user", "content": raw}]


def _structured(text: str) -> Any:
    begin = text.lstrip()
    try:
        if begin.startswith(("[", "{")):
            return decode(text.encode())
        if begin.startswith("- role") and len(text) <= _LONGEST_YAML:
            return yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError):
        pass
    return None


def _output(response: Fields) -> list[Any]:
    """An output is a text, a message, tool calls, or data that the agent answered with."""
    output = response.get("output")
    if output is None:
        return []
    value = _structured(output) if isinstance(output, str) else output
    if _is_call(value):
        messages = read_answer(value)
        if messages is not None:
            return list(messages)
    if not isinstance(output, str) and (items := answered(fields_of(value))):
        return items
    return [{"role": "assistant", "content": output if isinstance(output, str) else json_text(output)}]


def _is_call(value: Any) -> bool:
    """Whether an output is a tool call, or a list that holds one."""
    items = [fields_of(item) for item in (items_of(value) or [value])]
    return any(item.get("type") in ("function", "tool_use", "function_call", "tool_call") for item in items)


def _usage(value: Any) -> Fields | None:
    """promptfoo counts 0 where it took an answer from its cache."""
    counts = fields_of(value)
    names = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
    read = {names[name]: count for name, count in counts.items() if name in names and count}
    return read or None


def _task_id(fields: Fields, test: Fields, variables: Fields) -> str:
    """The same for every repetition of a test: promptfoo numbers these on."""
    described = text_under(test, "description")
    content = [fields_of(fields.get("prompt")).get("label"), variables, described]
    digest = hashlib.blake2b(json_bytes(content, sort_keys=True), digest_size=6).hexdigest()
    return f"{described} {digest}" if described else digest


def _ground_truth(test: Fields, variables: Fields) -> Any:
    asserts = [fields_of(one) for one in items_of(test.get("assert")) or ()]
    references = (one["value"] for one in asserts if one.get("type") in _REFERENCES and "value" in one)
    return next(references, None) or first_of(variables, *_EXPECTED)


def _error(fields: Fields, response: Fields) -> str | None:
    """An error of the provider. What promptfoo's own assertions say is no error of the agent."""
    graded = fields.get("gradingResult") is not None and response.get("output") is not None
    return error_in(response) or (None if graded else error_in(fields))


def _metadata(test: Fields, variables: Fields) -> Fields:
    metadata = {**fields_of(test.get("metadata"))}
    if variables:
        metadata["vars"] = variables
    if asserts := items_of(test.get("assert")):
        metadata["assert"] = asserts
    return metadata
