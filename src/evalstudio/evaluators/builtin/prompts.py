"""What judges are shown: the conversation as numbered text that cannot be forged, fenced off."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from ...base import placeholders
from ...base.json_text import whole_text
from ...messages import ContentBlock, Message, text_of
from ..contract import EvaluatorContext
from ..criteria import EvaluationCriteria

_HEAD, _TAIL = 15_000, 5_000
_NOT_IN_A_TITLE = re.compile(r"[^\w.-]+")
_BAR = re.compile(r"[\r\n]\s*\|\s?")
_SYMBOLS = re.compile(r"[\W_]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
# What a terminal or a database would stumble over says nothing to a judge.
_CONTROL = dict.fromkeys((*range(9), *range(10, 32), *range(127, 160)), "\ufffd")


def transcript(messages: Sequence[Message]) -> str:
    """Every line of what was said is indented by a bar, so that nothing said can look like a new message."""
    called = {call.id: call.name for message in messages for call in message.tool_calls or () if call.id}
    return "\n".join(_entry(number, message, called) for number, message in enumerate(messages, 1))


def _entry(number: int, message: Message, called: Mapping[str, str]) -> str:
    who = {"assistant": "agent"}.get(message.role, message.role)
    name = message.name or called.get(message.tool_call_id or "", "")
    lines = [f"[{number}] {_title(who)}{f' {_title(name)}' if name else ''}:"]
    if text := text_of(message):
        lines.append(_barred(text))
    if isinstance(message.content, list):
        lines += [_barred(f"({block.type}, not shown)") for block in message.content if _is_hidden(block)]
    lines += [
        _barred(f"(calls tool {call.name} with {call.function.arguments})")
        for call in message.tool_calls or ()
    ]
    return "\n".join(lines if len(lines) > 1 else [*lines, _barred("(nothing)")])


def _is_hidden(block: ContentBlock) -> bool:
    return not text_of([block]) and block.text != ""


def _title(text: str) -> str:
    """Roles and names come from the agent too: they get no blank and no line break."""
    return _NOT_IN_A_TITLE.sub("_", text)[:64]


def _barred(text: str) -> str:
    left_out = len(text) - _HEAD - _TAIL
    if left_out > 0:
        text = f"{text[:_HEAD]}\n({left_out:,} characters left out)\n{text[-_TAIL:]}"
    return "\n".join(f"    | {line.translate(_CONTROL)}" for line in whole_text(text).splitlines() or [""])


def checked_quotes(quotes: Sequence[str], messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Each quote with whether somebody really said it, blanks, case and quotation marks aside."""
    said = [_plain(text) for text in _texts(messages)]
    wanted = [_plain(_BAR.sub("\n", quote)) for quote in quotes]
    return [
        {"quote": quote, "found": bool(plain) and any(plain in text for text in said)}
        for quote, plain in zip(quotes, wanted, strict=True)
    ]


def planted(reasoning: str, messages: Sequence[Message], keys: Sequence[str]) -> bool:
    """Whether a judge's reasoning was taken from a verdict that somebody in the conversation wrote for it."""
    wanted = _letters(reasoning)
    suspects = (_unescaped(text) for text in _texts(messages) if "{" in text)
    return any(wanted in _letters(text) for text in suspects if any(key in text for key in keys))


def _unescaped(text: str) -> str:
    """What JSON text says, however it spells it."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text)


def _texts(messages: Sequence[Message]) -> list[str]:
    """What each message says, tool calls included."""
    return [
        " ".join([text_of(m), *(f"{c.name} {c.function.arguments}" for c in m.tool_calls or ())])
        for m in messages
    ]


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.replace("“", '"').replace("”", '"').replace("’", "'").split()).strip("\"' .…|")


def _letters(text: str) -> str:
    return _SYMBOLS.sub("", unicodedata.normalize("NFKC", text).casefold())


_NOT_THERE = "N/A"


def fill(template: str, ctx: EvaluatorContext[Any], criteria: list[EvaluationCriteria]) -> str:
    """The template with every known placeholder replaced; unknown ones stay as they are."""
    return placeholders.fill(template, lambda name: _value(name, ctx, criteria))


def _value(name: str, ctx: EvaluatorContext[Any], criteria: list[EvaluationCriteria]) -> str | None:
    match name:
        case "input" | "response" | "reference":
            return text_at(name, ctx) or _NOT_THERE
        case "criterion_name":
            return ", ".join(criterion.name for criterion in criteria)
        case "criterion_description":
            return "; ".join(criterion.description for criterion in criteria)
        case "criterion_scale":
            return ", ".join(criterion.scale for criterion in criteria)
        case _ if name.startswith(("context.", "metadata.")):
            return text_at(name, ctx) or _NOT_THERE
        case _:
            return None


def text_at(path: str, ctx: EvaluatorContext[Any]) -> str | None:
    """What a path leads to, as text for a reader; ``None`` where there is nothing."""
    value = ctx.find(path)
    if value is None:
        return None
    return text_of(value) if isinstance(value, Message) else placeholders.written(value)


# Recordings of prompts recognise marks by this form and leave them out of the comparison.
MARK = re.compile(r"\bmark-[0-9a-f]{16}\b")


def new_mark() -> str:
    return f"mark-{secrets.token_hex(8)}"


def fenced(title: str, text: str, mark: str) -> str:
    """The text between two lines that carry the mark."""
    return f"=== {title} {mark} ===\n{text}\n=== end of {title} {mark} ==="
