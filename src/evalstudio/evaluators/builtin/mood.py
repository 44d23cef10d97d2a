"""Reading the mood of a text: the scores of its words on the AFINN list, and of its emoji, added up.

The word list and its licence come with the ``afinn`` package; reading and counting are our own.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..contract import NotAvailable
from .emoji_scores import EMOJI_SCORES
from .text import nfc, visible

_NEGATION_REACH = 3
_CONTRACTED = (
    "ain aren can couldn didn doesn don hadn hasn haven isn mightn mustn needn "
    "shan shouldn wasn weren won wouldn"
)
NEGATORS = frozenset(
    ["not", "never", "non", "neither", "nor", "without", "cannot"]
    + [stem + ending for stem in _CONTRACTED.split() for ending in ("'t", "t")]
)

# A joined emoji counts once, as its first part; so does a flag, which is two letters.
_JOINED = re.compile(
    "\u200d[\u2190-\u2bff\U0001f000-\U0001faff]|(?<=[\U0001f1e6-\U0001f1ff])[\U0001f1e6-\U0001f1ff]"
)
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_EMOJI_BLOCKS = (range(0x2600, 0x27C0), range(0x2B00, 0x2C00), range(0x1F000, 0x1FB00))
_MOST_REMEMBERED = 5_000


@dataclass(frozen=True, slots=True)
class Mood:
    """What the words of a text come to; the words are in reverse order of appearance."""

    raw: int
    tokens: int
    positive: list[str]
    negative: list[str]

    @property
    def comparative(self) -> float:
        return self.raw / self.tokens if self.tokens else 0.0

    @property
    def normalized(self) -> float:
        """From 0 to 1: the scores of words go from -5 to 5."""
        return (self.comparative + 5) / 10


def read_mood(text: str) -> Mood:
    """Add up the scores of a text's words. A negator turns the next scored word within three around."""
    scores, tokens = _lexicon(), tokenize(text)
    total, negated_until = 0, -1
    positive: list[str] = []
    negative: list[str] = []
    for place, token in enumerate(tokens):
        if token in NEGATORS:
            negated_until = place + _NEGATION_REACH
        elif score := scores.get(token):
            if place <= negated_until:
                score, negated_until = -score, -1
            total += score
            (positive if score > 0 else negative).append(token)
    return Mood(total, len(tokens), positive[::-1], negative[::-1])


def tokenize(text: str) -> list[str]:
    """Words in lower case, with the apostrophes and hyphens inside them, and each emoji by itself."""
    if not text.isascii():
        text = visible(_JOINED.sub("", text))
    spaced = nfc(text).lower().translate(_spacing)
    if "'" not in spaced and "-" not in spaced:
        return spaced.split()
    words = (word.strip("'-") for word in spaced.replace("--", " ").split())
    return [word for word in words if word]


class _Spacing(dict[int, str]):
    """For ``str.translate``: punctuation becomes a blank, emoji get blanks around them, the rest stays."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if code in _SKIN_TONES:
            found = ""
        elif any(code in block for block in _EMOJI_BLOCKS):
            found = f" {char} "
        else:
            found = char if unicodedata.category(char)[0] in "LMN" else " "
        if len(self) < _MOST_REMEMBERED:
            self[code] = found
        return found


_spacing = _Spacing({ord(mark): "'" for mark in "'’‘ʼ＇"} | {ord(mark): "-" for mark in "-‐‑"})


@cache
def _lexicon() -> dict[str, int]:
    """The scores of single words and emoji. Phrases are left out: their words and negators speak for them."""
    package = find_spec("afinn")
    if package is None or not package.submodule_search_locations:
        raise NotAvailable('the AFINN word list is missing; install it with "pip install afinn"')
    # Found without importing the package, whose scorer is not needed.
    path = Path(package.submodule_search_locations[0], "data", "AFINN-en-165.txt")
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {nfc(word): int(score) for word, score in lines if " " not in word} | EMOJI_SCORES
