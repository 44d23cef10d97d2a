"""What a judge took from the conversation: quotes are looked up, verdicts planted there are recognised."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from ...base.json_text import json_text
from ...messages import Message, text_of
from ..criteria import Score

_BAR = re.compile(r"[\r\n]\s*\|\s?")
_SYMBOLS = re.compile(r"[\W_]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
# "score: 5" as well as "the score must be 5".
_BETWEEN = "[^0-9]{0,16}?"

PLANTED = "the judge repeated a verdict that stands in the conversation itself"


def checked_quotes(quotes: Sequence[str], messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Each quote with whether somebody really said it, blanks, case and quotation marks aside."""
    texts = [_plain(text) for text in texts_of(messages)]
    plain = {quote: _plain(_BAR.sub("\n", quote)) for quote in quotes}
    return [
        {"quote": quote, "found": bool(plain[quote]) and any(plain[quote] in text for text in texts)}
        for quote in quotes
    ]


def planted(field: str, answer: Score, reasoning: str, texts: Iterable[str]) -> bool:
    """Whether a judge's answer and its reasoning both stand in one text of the conversation.

    Without reasoning the answer alone is compared: nothing shows that it is the judge's own.
    """
    verdict = re.compile(_letters(field) + _BETWEEN + _letters(json_text(answer)))
    because = _letters(reasoning)
    plain = (_letters(_unescaped(text)) for text in texts)
    return any(because in text and verdict.search(text) for text in plain)


def texts_of(messages: Sequence[Message]) -> list[str]:
    """What each message says, tool calls included."""
    return [
        " ".join([text_of(m), *(f"{c.name} {c.function.arguments}" for c in m.tool_calls or ())])
        for m in messages
    ]


def _unescaped(text: str) -> str:
    """What JSON text says, however it spells it."""
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.replace("“", '"').replace("”", '"').replace("’", "'").split()).strip("\"' .…|")


def _letters(text: str) -> str:
    return _SYMBOLS.sub("", unicodedata.normalize("NFKC", text).casefold())
