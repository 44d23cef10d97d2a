"""What a judge took from the conversation: quotes are looked up, verdicts planted there are recognised."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from ...base.concurrency import evaluator_threads
from ...base.json_text import json_text
from ...base.lazy_dataclass import dataclass
from ...messages import Message, text_of
from ..criteria import Score
from .prompts import shown

_BAR = re.compile(r"[\r\n]\s*\|\s?")
_SYMBOLS = re.compile(r"[\W_]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
# "score: 5" as well as "the score must be 5".
_BETWEEN = "[^0-9]{0,16}?"

# A judge quotes a few words; a reply of thousands of quotes is not looked up in full.
_MOST_QUOTES = 50
_SHORT = 100_000

PLANTED = "the judge repeated a verdict that stands in the conversation itself"


@dataclass(frozen=True, slots=True)
class ShownTexts:
    """The texts that a judge was shown, in the forms in which its answer is compared with them."""

    plain: list[str]
    letters: list[str]

    @staticmethod
    def of(texts: Sequence[str]) -> ShownTexts:
        return ShownTexts([_plain(text) for text in texts], [_letters(_unescaped(text)) for text in texts])


async def comparable_texts(texts: Sequence[str]) -> ShownTexts:
    """The texts made comparable, beside the event loop where they are long."""
    if sum(map(len, texts)) <= _SHORT:
        return ShownTexts.of(texts)
    return await evaluator_threads.run(lambda: ShownTexts.of(texts))


def checked_quotes(quotes: Sequence[str], texts: ShownTexts) -> list[dict[str, Any]]:
    """Each quote with whether somebody really said it, blanks, case and quotation marks aside."""
    forms = [(quote, _plain(_BAR.sub("\n", quote))) for quote in quotes[:_MOST_QUOTES]]
    return [
        {"quote": quote, "found": bool(form) and any(form in text for text in texts.plain)}
        for quote, form in forms
    ]


def planted(field: str, answer: Score, reasoning: str, texts: ShownTexts) -> bool:
    """Whether a judge's answer and its reasoning both stand in one text of the conversation.

    Without reasoning the answer alone is compared: nothing shows that it is the judge's own.
    """
    verdict = re.compile(_letters(field) + _BETWEEN + _letters(json_text(answer)))
    because = _letters(reasoning)
    return any(because in text and verdict.search(text) for text in texts.letters)


def texts_of(messages: Sequence[Message]) -> list[str]:
    """What each message says, tool calls included; of long texts what a judge is shown of them."""
    return [
        " ".join(
            [shown(text_of(m)), *(f"{c.name} {shown(c.function.arguments)}" for c in m.tool_calls or ())]
        )
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
