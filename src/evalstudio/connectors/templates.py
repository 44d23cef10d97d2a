"""Request templates: ``{{name}}`` from the call and the case, ``${NAME}`` from the environment, in one pass.

What is filled in is never looked at again: a user who writes a placeholder sends that text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from ..base.paths import MISSING, lookup
from ..base.placeholders import is_name, names_in, only_placeholder, written
from ..base.references import resolve
from .contract import ConnectorContext, ConnectorError

Fill = Callable[[ConnectorContext[Any]], Any]

# A placeholder with the backslashes before it, or a reference to the environment.
_PART = re.compile(r"(?<!\\)(\\*)\{\{([^{}]*)\}\}|\$\{[^{}]*\}")


def _message(ctx: ConnectorContext[Any]) -> str:
    both = (ctx.new_messages, ctx.messages)
    last = next((m for messages in both for m in reversed(messages) if m.role == "user"), None)
    return last.text if last else ""


PLACEHOLDERS: Mapping[str, Fill] = {
    "message": _message,
    "messages": lambda ctx: [message.to_json() for message in ctx.messages],
    "newMessages": lambda ctx: [message.to_json() for message in ctx.new_messages],
    "threadId": lambda ctx: ctx.run.thread_id,
    "sessionId": lambda ctx: ctx.run.session_id,
    "runId": lambda ctx: ctx.run.id,
    "turn": lambda ctx: ctx.run.turn,
}


def compile_template(template: Any) -> Fill:
    """A function that fills the template in; ``ValueError`` names a placeholder that can be none."""
    return _compile(template) or (lambda _: template)


def _unknown(name: str, values: Mapping[str, Any]) -> str:
    case = ", ".join(sorted(values)) or "none"
    known = f"known are {', '.join(PLACEHOLDERS)}, and of the case: {case}"
    return f"{{{{{name}}}}} in the request template has no value; {known}"


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
    if _PART.search(text) is None:
        return None
    if "" in names_in(text):
        known = f"known are {', '.join(PLACEHOLDERS)} and the values of a case"
        raise ValueError(f"{{{{}}}} is not known here; {known}")
    if (name := only_placeholder(text)) and is_name(name):
        return lambda ctx: _value(name, ctx)
    return lambda ctx: _PART.sub(lambda part: _filled(part, ctx), text)


def _filled(part: re.Match[str], ctx: ConnectorContext[Any]) -> str:
    if part[2] is None:
        try:
            return resolve(part[0], "the request template")
        except ValueError as error:
            raise ConnectorError(str(error)) from None
    slashes, name = part[1], part[2].strip()
    if not is_name(name):
        return part[0]
    kept = slashes[: len(slashes) // 2]
    if len(slashes) % 2:
        return kept + part[0][len(slashes) :]
    value = _value(name, ctx)
    return kept + ("" if value is None else written(value))


def _value(name: str, ctx: ConnectorContext[Any]) -> Any:
    builtin = PLACEHOLDERS.get(name)
    return _case_value(name, ctx) if builtin is None else builtin(ctx)


def _case_value(name: str, ctx: ConnectorContext[Any]) -> Any:
    value = lookup(ctx.run.case_values, name)
    if value is MISSING:
        raise ConnectorError(_unknown(name, ctx.run.case_values))
    return value
