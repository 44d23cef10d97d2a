"""The formats of recorded conversations, each recognised by what is in it and never by a file's name.

A document of a format holds one conversation, or a list of them (``units``), or, where a conversation is
spread over the whole file, it is read by ``collect``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.paths import fields_of, items_of
from .conversation import RecordedConversation
from .documents import Document, Unreadable
from .exchange import has_messages, read_exchange, request_of, response_of
from .inspect_logs import is_inspect_log, read_sample, samples_in
from .langchain import is_run, is_state, parent_of, read_run, read_state, runs_in
from .otlp_files import collect_spans, is_otlp
from .own_export import is_own_run, read_own_run
from .parts import Fields
from .promptfoo import is_promptfoo, read_result, results_in

Collect = Callable[[Iterator[Document | Unreadable], str], Iterator[RecordedConversation | Unreadable]]


def _alone(fields: Fields) -> Iterable[Any]:
    return (fields,)


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is recognised and read.

    ``units`` are the conversations in a document, ``read`` makes one of a unit; ``part_of`` names the
    conversation that a unit is only a part of, which is then read alone. ``collect`` reads a whole file
    instead, from its documents and its name.
    """

    name: str
    recognises: Callable[[Fields], bool]
    read: Callable[[Fields], RecordedConversation] = read_exchange
    units: Callable[[Fields], Iterable[Any]] = _alone
    part_of: Callable[[Fields], str | None] | None = None
    collect: Collect | None = None


def _is_gemini(fields: Fields) -> bool:
    return "contents" in request_of(fields)


def _is_responses(fields: Fields) -> bool:
    request = request_of(fields)
    return "input" in request and "messages" not in request and has_messages(request)


def _is_anthropic(fields: Fields) -> bool:
    request, response = request_of(fields), fields_of(response_of(fields))
    if not isinstance(request.get("messages"), list):
        return False
    return (
        "system" in request
        or response.get("type") == "message"
        or any("input_schema" in fields_of(tool) for tool in items_of(request.get("tools")) or ())
        or any(_has_anthropic_block(fields_of(one)) for one in items_of(request.get("messages")) or ())
    )


def _has_anthropic_block(message: Fields) -> bool:
    blocks = items_of(message.get("content")) or ()
    return any(fields_of(block).get("type") in ("tool_use", "tool_result") for block in blocks)


def _is_chat(fields: Fields) -> bool:
    return has_messages(request_of(fields))


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("otlp", is_otlp, collect=collect_spans),
        Format("evalstudio", is_own_run, read_own_run),
        Format("inspect", is_inspect_log, read_sample, samples_in),
        Format("promptfoo", is_promptfoo, read_result, results_in),
        Format("langsmith", is_run, read_run, runs_in, part_of=parent_of),
        Format("langgraph", is_state, read_state),
        Format("gemini", _is_gemini),
        Format("responses", _is_responses),
        Format("anthropic", _is_anthropic),
        Format("openai", _is_chat),
    )
}


def recognise(fields: Fields) -> Format | None:
    """The format of a document; the first that knows it, for the last ones take the most."""
    return next((one for one in FORMATS.values() if one.recognises(fields)), None)
