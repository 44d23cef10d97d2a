"""Text as the built-in evaluators compare it, and their answers: a fraction or a yes/no, on a scale."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from ...base.json_text import json_bytes
from ..contract import EvaluationResult, EvaluatorContext, RepeatedResult, TurnFacts
from ..criteria import EvaluationCriteria, Name, on_scale
from ..definition import EvaluatorConfig

# Patterns of many ranges take a while to compile, and only texts beyond ASCII need them.
# Scripts without blanks between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese and their neighbours.
_UNSPACED = cache(
    lambda: re.compile(
        "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f"
        "\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3031-\u3035\u3038-\u303c\u3041-\u312f\u31a0-\u31bf"
        "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua980-\ua9ff\uaa60-\uaadf\uf900-\ufaff\uff66-\uff9f"
        "\U00016ff0-\U00016ff1\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
    )
)
_HANGUL = cache(lambda: re.compile("[\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa1-\uffdc]"))
# What follows one of these is written below the letter before it and belongs to it.
_STACKING = "\u1039\u17d2\u1a60"

# Characters that show nothing: the format characters, and the other ones Unicode says to ignore.
_INVISIBLE = cache(
    lambda: re.compile(
        "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
        "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
        "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
        "\U000e0000-\U000e0fff]+"
    )
)

# Marks on letters where Unicode knows no such letter: strokes through a word, stacks of dots. Those that make
# another letter (ñ, é) are composed by then and stay, since they make another word.
_LOOSE_MARKS = cache(
    lambda: re.compile(
        "([A-Za-z\u00c0-\u02af\u0370-\u052f\u1e00-\u1fff])[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+"
    )
)

_MOST_ANSWERS = 1_000
_LONGEST_ANSWER = 1_000
# Longer texts are brought into their form by each who compares them, so that none is kept.
_REMEMBERED = 10_000

CriterionName = Annotated[
    Name | None, Field(description="The criterion to score; without one the result stands for itself")
]
Graded = EvaluationResult | list[EvaluationResult]


Scope = Annotated[
    Literal["turn", "last"],
    Field(description="Whether to look at all the agent said in a turn, or at its last message alone"),
]


class TextConfig(EvaluatorConfig):
    """Which text an evaluator looks at, and which criterion it scores."""

    criterion_name: CriterionName = None
    source_field: str = Field(
        "response",
        validation_alias=AliasChoices("sourceField", "sourceTextField"),
        description='Where the text is: "response", "prompt", "groundTruth" or a path like "context.reply"',
    )


class ScopedTextConfig(TextConfig):
    """A text, and how much of the turn it is where it is the response."""

    scope: Scope = "turn"


def scoped_texts(
    ctx: EvaluatorContext[Any], scope: str, path: str = "response", *, forbids: bool = False
) -> list[str]:
    """The texts at a path, each to be looked at by itself; the response is all that was said in the turn.

    What ``forbids`` something looks at the words before the first question too.
    """
    facts = ctx.facts
    if scope == "last" or (path and path != "response"):
        return [ctx.need_text(path)]
    said = facts.turn_texts()
    return [*facts.opening, *said] if forbids and facts.opening else said


def characters_at(path: str, facts: TurnFacts) -> int:
    """About how long what a path leads to is."""
    if path in ("", "response"):
        return facts.size()
    value = facts.ground_truth if path == "groundTruth" else EvaluatorContext(None, facts).find(path)
    if isinstance(value, str):
        return len(value)
    return 0 if value is None else len(json_bytes(value))


def text_work(config: TextConfig, facts: TurnFacts) -> float:
    """The work of reading the text of a config once."""
    return facts.size() if config.source_field == "response" else characters_at(config.source_field, facts)


def joined(texts: Sequence[str]) -> str:
    """Several texts as one, each on lines of its own."""
    return texts[0] if len(texts) == 1 else "\n".join(texts)


def nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def collapse(text: str) -> str:
    """Every run of blanks as one space, none around."""
    return " ".join(text.split())


def visible(text: str) -> str:
    """Without the characters that show nothing."""
    return text if text.isascii() else _INVISIBLE().sub("", text)


def undisguised(text: str) -> str:
    """Without hidden characters and with look-alikes in their plain form: what a reader sees.

    Whatever must not be there is looked for in this form too, so that it cannot be hidden.
    """
    return text if text.isascii() else _LOOSE_MARKS().sub(r"\1", unicodedata.normalize("NFKC", visible(text)))


def visible_word(word: str) -> str:
    """A word with something to see in it, without blanks around it."""
    if not visible(word).strip():
        raise ValueError("must not be blank")
    return word.strip()


def comparable(text: str, *, case_sensitive: bool, collapsed: bool) -> str:
    """The form in which two texts are compared."""
    if case_sensitive and not collapsed:
        return nfc(text)
    form = _comparable if len(text) <= _REMEMBERED else _comparable.__wrapped__
    return form(text, case_sensitive, collapsed)


def comparing(*, case_sensitive: bool, collapsed: bool) -> Callable[[str], str]:
    """What brings texts into the form in which they are compared."""
    if not collapsed:
        return nfc if case_sensitive else folded
    return partial(comparable, case_sensitive=case_sensitive, collapsed=True)


def folded(text: str) -> str:
    """The text without a difference between upper and lower case."""
    return text.casefold() if text.isascii() else comparable(text, case_sensitive=False, collapsed=False)


# Several evaluators look at the same text one after the other.
@lru_cache(maxsize=8)
def _comparable(text: str, case_sensitive: bool, collapsed: bool) -> str:
    text = nfc(text)
    if not case_sensitive:
        # Folding can take a text out of its normal form.
        text = nfc(text.casefold())
    return collapse(text) if collapsed else text


def check_apart(source: str, other: str | None, setting: str) -> None:
    """Refuse to compare a text with itself, which holds whatever it says."""
    if other is not None and (source or "response") == other:
        raise ValueError(f"sourceField and {setting} are both {other!r}: a text always agrees with itself")


def is_word(char: str) -> bool:
    """Whether a character belongs to a word: letters, digits, underscore, and marks on them."""
    return char.isalnum() or char == "_" or (not char.isascii() and unicodedata.category(char)[0] == "M")


def is_unspaced(char: str) -> bool:
    """Whether a character belongs to a script that is written without blanks between words."""
    return char > "\u0e00" and _UNSPACED().match(char) is not None


def word_count(text: str) -> int:
    """The number of words; in scripts without blanks between them every letter is counted as one."""
    if text.isascii() or _UNSPACED().search(text) is None:
        return len(text.split())
    spaced = [word for word in _UNSPACED().sub(" ", text).split() if any(map(is_word, word))]
    letters = [char for char in _UNSPACED().findall(text) if unicodedata.category(char)[0] in "LN"]
    return len(spaced) + len(letters)


def contains(text: str, term: str, *, whole_word: bool) -> bool:
    """Whether the term occurs. As a whole word, its edges must be word edges where they are letters."""
    if not whole_word:
        return term in text
    at = text.find(term)
    while at >= 0:
        end = at + len(term)
        if begins_word(text, at) and ends_word(text, end):
            return True
        at = text.find(term, _next_word(text, at) if is_word(text[at]) else at + 1)
    return False


def begins_word(text: str, at: int) -> bool:
    """Whether no word goes on from before a place."""
    return at == 0 or not _glued(text[at - 1], text[at])


def ends_word(text: str, end: int) -> bool:
    """Whether no word goes on after a place."""
    if end == len(text) or not _glued(text[end - 1], text[end]):
        return True
    # Korean puts blanks between words, but particles right behind them.
    return _HANGUL().match(text[end - 1]) is not None and _HANGUL().match(text[end]) is not None


def _glued(before: str, after: str) -> bool:
    """Whether two neighbours belong to one word, by the ways of their scripts."""
    if not (is_word(before) and is_word(after)):
        return False
    if unicodedata.category(after)[0] == "M" or before in _STACKING:
        return True
    return not (is_unspaced(before) or is_unspaced(after))


def _next_word(text: str, at: int) -> int:
    """Where the next word begins. None begins before, so every letter is read only once."""
    at += 1
    while at < len(text) and not begins_word(text, at):
        at += 1
    return at


def graded(ctx: EvaluatorContext[Any], fraction: float, reason: str, /, **metadata: Any) -> Graded:
    """A fraction that holds from the config's threshold up."""
    config = ctx.config
    result = EvaluationResult(fraction >= config.threshold, fraction, reason, metadata)
    name = config.criterion_name
    return result if name is None else _on_criterion(ctx, result, name, fraction, config.threshold)


def ruled(
    ctx: EvaluatorContext[Any], holds: bool, reason: str, rule: Any = None, /, **metadata: Any
) -> Graded:
    """A plain yes or no, for the criterion of the rule, or of the config where there are no rules."""
    name = (ctx.config if rule is None else rule).criterion_name
    fraction = 1.0 if holds else 0.0
    result = EvaluationResult(holds, fraction, reason, metadata)
    return result if name is None else _on_criterion(ctx, result, name, fraction, 0.5)


def _on_criterion(
    ctx: EvaluatorContext[Any], result: EvaluationResult, name: str, fraction: float, threshold: float
) -> Graded:
    """The result on its criterion's scale. Nothing at all when its criterion is not declared."""
    criterion = ctx.criterion(name)
    if criterion is None:
        return []
    result.criterion_name = name
    result.score = on_scale(fraction, criterion, threshold)
    return result


class Answers:
    """The results of a check by what they depend on, beside the criteria: most records get one of few."""

    def __init__(self) -> None:
        # In one piece, for threads that read it while another changes it.
        self._made: tuple[Sequence[EvaluationCriteria], dict[object, Graded]] = ((), {})

    def made(self, ctx: EvaluatorContext[Any]) -> dict[object, Graded]:
        """Those for the criteria of a turn."""
        criteria, made = self._made
        if criteria is not ctx.facts.criteria:
            made = dict[object, Graded]()
            self._made = (ctx.facts.criteria, made)
        return made

    @staticmethod
    def keep(made: dict[object, Graded], key: object, result: Graded) -> Graded:
        """A result for this turn, and for those to come where it is short and there are few."""
        if isinstance(result, list) or len(made) >= _MOST_ANSWERS or len(result.reason) > _LONGEST_ANSWER:
            return result
        made[key] = repeated = RepeatedResult(
            result.success, result.value, result.reason, result.metadata, result.criterion_name, result.score
        )
        return repeated


def as_list(result: Graded) -> list[EvaluationResult]:
    return result if isinstance(result, list) else [result]


def errored(
    error: Exception | str, criterion_name: str | None = None, /, **metadata: Any
) -> EvaluationResult:
    """One rule that could not be applied, where others of the same evaluator still can."""
    message = str(error) or type(error).__name__
    return EvaluationResult(error=message, criterion_name=criterion_name, metadata=metadata)
