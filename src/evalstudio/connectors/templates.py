"""Request bodies with ``{{placeholders}}``: compiled once, filled in one pass per call.

A text that is exactly one placeholder becomes the value itself; inside a longer text the value is written
out. What is filled in is never looked at again, so a message cannot smuggle placeholders in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from ..messages import json_text
from .contract import ConnectorContext

Fill = Callable[[ConnectorContext[Any]], Any]

_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def _message(ctx: ConnectorContext[Any]) -> str:
    users = (m for said in (ctx.new_messages, ctx.messages) for m in reversed(said) if m.role == "user")
    last = next(users, None)
    return last.text if last else ""


PLACEHOLDERS: Mapping[str, Fill] = {
    "message": _message,
    "messages": lambda ctx: [message.to_json() for message in ctx.messages],
    "newMessages": lambda ctx: [message.to_json() for message in ctx.new_messages],
    "threadId": lambda ctx: ctx.run.thread_id,
    "runId": lambda ctx: ctx.run.id,
    "turn": lambda ctx: ctx.run.turn,
}


def compile_template(template: Any) -> Fill:
    """A function that fills the template in; ``ValueError`` names a placeholder nobody knows."""
    return _compile(template) or (lambda _: template)


def _compile(part: Any) -> Fill | None:
    """The filler of a part, or nothing where there is nothing to fill in."""
    if isinstance(part, str):
        return _compile_text(part)
    if isinstance(part, dict):
        fields = {key: (item, _compile(item)) for key, item in cast(dict[str, Any], part).items()}
        if not any(fill for _, fill in fields.values()):
            return None
        return lambda ctx: {key: fill(ctx) if fill else item for key, (item, fill) in fields.items()}
    if isinstance(part, list):
        items = [(item, _compile(item)) for item in cast(list[Any], part)]
        if not any(fill for _, fill in items):
            return None
        return lambda ctx: [fill(ctx) if fill else item for item, fill in items]
    return None


def _compile_text(text: str) -> Fill | None:
    names = _PLACEHOLDER.findall(text)
    if unknown := [name for name in names if name not in PLACEHOLDERS]:
        known = ", ".join(PLACEHOLDERS)
        raise ValueError(f"{{{{{unknown[0]}}}}} is not known here; known are {known}")
    if not names:
        return None
    if _PLACEHOLDER.fullmatch(text):
        return PLACEHOLDERS[names[0]]
    return lambda ctx: _PLACEHOLDER.sub(lambda found: _written(PLACEHOLDERS[found[1]](ctx)), text)


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)
