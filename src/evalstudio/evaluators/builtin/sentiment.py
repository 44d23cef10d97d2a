"""How positive or negative a text sounds: the AFINN scores of its words and emoji, as a number or a word."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from ...base.lazy_dataclass import dataclass
from ...base.text import counted
from ..contract import EvaluationResult, EvaluatorContext, NotAvailable
from ..criteria import Score, on_scale
from ..definition import define_evaluator
from .text import Graded, ScopedTextConfig, is_unspaced, joined, nfc, scoped_texts, text_work, visible

Category = Literal["positive", "neutral", "negative"]


class SentimentConfig(ScopedTextConfig):
    """What to measure, and where neutral ends."""

    output_type: Literal["comparativeNormalized", "rawScore", "category"] = Field(
        "comparativeNormalized",
        description="The mean score per word from 0 to 1, the sum of all scores, or a word for the mood",
    )
    positive_threshold: float = Field(
        0.2, allow_inf_nan=False, description="Mean scores per word above this are positive"
    )
    negative_threshold: float = Field(
        -0.2, allow_inf_nan=False, description="Mean scores per word below this are negative"
    )

    @model_validator(mode="after")
    def _ordered(self) -> SentimentConfig:
        if self.negative_threshold >= self.positive_threshold:
            raise ValueError("negativeThreshold must be below positiveThreshold")
        return self

    def category(self, comparative: float) -> Category:
        if comparative > self.positive_threshold:
            return "positive"
        return "negative" if comparative < self.negative_threshold else "neutral"


@define_evaluator(type="sentiment", kind="metric", inline=True, work=text_work)
def sentiment(ctx: EvaluatorContext[SentimentConfig]) -> Graded:
    """How positive or negative the agent sounds."""
    config = ctx.config
    mood = sentiment_score(joined(scoped_texts(ctx, config.scope, config.source_field)))
    category = config.category(mood.comparative)
    values = {"rawScore": mood.raw, "category": mood.comparative, "comparativeNormalized": mood.normalized}
    reason = f"{category}: {mood.raw:+d} over {counted(mood.tokens, 'word')}"
    metadata = _metadata(config, mood, category)
    result = EvaluationResult.measured(values[config.output_type], reason, **metadata)
    if config.criterion_name is None:
        return result
    criterion = ctx.criterion(config.criterion_name)
    if criterion is None:
        return []
    scores: dict[str, Score] = {"rawScore": mood.raw, "category": category}
    result.criterion_name = config.criterion_name
    result.score = scores.get(config.output_type, on_scale(mood.normalized, criterion))
    return result


def _metadata(config: SentimentConfig, mood: SentimentScore, category: Category) -> dict[str, Any]:
    metadata = {
        "rawScore": mood.raw,
        "comparativeScore": mood.comparative,
        "positiveWords": mood.positive,
        "negativeWords": mood.negative,
        "category": category,
        "tokens": mood.tokens,
    }
    return metadata | {"unbounded": True} if config.output_type == "rawScore" else metadata


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
class SentimentScore:
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


def sentiment_score(text: str) -> SentimentScore:
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
    return SentimentScore(total, len(tokens), positive[::-1], negative[::-1])


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
    """For ``str.translate``: punctuation becomes a blank, emoji and unspaced letters get blanks around."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if code in _SKIN_TONES:
            spaced = ""
        elif any(code in block for block in _EMOJI_BLOCKS):
            spaced = f" {char} "
        elif is_unspaced(char):
            # A word of another script may stand right beside; marks belong to the letter before them.
            spaced = "" if unicodedata.category(char)[0] == "M" else f" {char} "
        else:
            spaced = char if unicodedata.category(char)[0] in "LMN" else " "
        if len(self) < _MOST_REMEMBERED:
            self[code] = spaced
        return spaced


_spacing = _Spacing({ord(mark): "'" for mark in "'’‘ʼ＇"} | {ord(mark): "-" for mark in "-‐‑"})


@cache
def _lexicon() -> dict[str, int]:
    """The scores of single words and emoji. Phrases are left out: their words and negators count."""
    package = find_spec("afinn")
    if package is None or not package.submodule_search_locations:
        raise NotAvailable('the AFINN word list is missing; install it with "pip install afinn"')
    # Found without importing the package, whose scorer is not needed.
    path = Path(package.submodule_search_locations[0], "data", "AFINN-en-165.txt")
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {nfc(word): int(score) for word, score in lines if " " not in word} | EMOJI_SCORES


_BY_SCORE = {
    4: "🤩🥳🎉🎊🏆💯",
    3: "😀😃😄😁😊☺🥰😍😘😻❤♥❣💓💕💖💗💘💙💚💛💜💝💞💟🧡🖤🤍🤎🤗👏🙌🥇💐🌈👍👌😇😎🌟",
    2: "🙂😉😋😌😚😗😙😸😺😽🤭🤝🙏✨⭐🌞☀🌹🌺🌸💪🎁🍀🆒✌🤟🤘🫶🚀✅✔☑🎈🥂🍾🎯",
    1: "😂🤣😆😅😜😝😛🤪🤠😹🌻🌼🍻☘🆗💡🔥",
    -1: "😐😑😶😒🙄😬😕🤨😓😪🥱😷⚠🆘❌✖⛔🚫",
    -2: "🙁☹😟😔😞😣😖😫😩😥😢😭😿🥺😰😨😱😧😦💔👎🤕🤒🤢😤🙀💀☠😵🥴",
    -3: "😠😡😾👿😈🤮🤬💩🖕",
}

EMOJI_SCORES = {emoji: score for score, several in _BY_SCORE.items() for emoji in several}
