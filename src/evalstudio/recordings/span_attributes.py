"""What production conversations can be filtered by: the short attributes of their spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson

from .spans import Span

_MOST_ATTRIBUTES = 200
_LONGEST_ATTRIBUTE = 500
# What a conversation consists of is no attribute of it.
_CONTENT = (
    "gen_ai.input.",
    "gen_ai.output.",
    "gen_ai.system_instructions",
    "gen_ai.tool.",
    "gen_ai.usage.",
    "gen_ai.aggregated_usage.",
    "gen_ai.response.id",
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.tools.",
    "llm.token_count.",
    "input.",
    "output.",
    "pydantic_ai.",
    "logfire.",
    "tool",
    "model_request_parameters",
    "final_result",
)


def attributes_of(spans: Iterable[Span]) -> dict[str, Any]:
    """What can be filtered by: short values of the resource and the spans; the outermost span's counts."""
    ordered = sorted(
        (one for one in spans if not one.event), key=lambda one: (bool(one.parent_id), one.start)
    )
    attributes: dict[str, Any] = {}
    for span in ordered:
        for name, value in (*span.attributes.items(), *span.resource.items()):
            if len(attributes) < _MOST_ATTRIBUTES and not name.startswith(_CONTENT) and _is_short(value):
                attributes.setdefault(name, value)
        for name, value in _metadata(span.attributes.get("metadata")).items():
            if len(attributes) < _MOST_ATTRIBUTES and _is_short(value):
                attributes.setdefault(f"metadata.{name}", value)
    return {name: value for name, value in attributes.items() if name != "metadata"}


def _metadata(value: Any) -> Mapping[str, Any]:
    try:
        parsed = orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return {}
    return cast(Mapping[str, Any], parsed) if isinstance(parsed, dict) else {}


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(cast(list[Any], value)) <= 50 and all(map(_is_short, cast(list[Any], value)))
    if isinstance(value, str):
        return len(value) <= _LONGEST_ATTRIBUTE
    return isinstance(value, bool | int | float)
