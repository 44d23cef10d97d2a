"""A conversation as text for a judge: numbered, tool calls and results included, impossible to forge."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ...messages import Message, text_of

_LONGEST_MESSAGE = 20_000


def transcript(messages: Sequence[Message]) -> str:
    """Every line of what was said is indented by a bar, so that nothing said can look like a new message."""
    return "\n".join(_entry(number, message) for number, message in enumerate(messages, 1))


def _entry(number: int, message: Message) -> str:
    who = {"assistant": "agent"}.get(message.role, message.role)
    lines = [f"[{number}] {who}{f' {message.name}' if message.name else ''}:"]
    if text := text_of(message):
        lines.append(_barred(text))
    lines += [
        _barred(f"(calls tool {call.name} with {call.function.arguments})")
        for call in message.tool_calls or ()
    ]
    return "\n".join(lines)


def _barred(text: str) -> str:
    shown = (
        text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}… ({len(text):,} characters)"
    )
    return "\n".join(f"    | {line}" for line in shown.splitlines() or [""])


def quoted_in(quote: str, messages: Sequence[Message]) -> bool:
    """Whether somebody really said this, blanks, case and quotation marks aside."""
    wanted = _plain(quote)
    return bool(wanted) and any(wanted in _plain(_all_text(message)) for message in messages)


def _all_text(message: Message) -> str:
    calls = " ".join(f"{call.name} {call.function.arguments}" for call in message.tool_calls or ())
    return f"{text_of(message)} {calls}"


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.replace("“", '"').replace("”", '"').replace("’", "'").split()).strip("\"' .…|")
