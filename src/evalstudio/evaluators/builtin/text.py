"""Text as the built-in evaluators compare it, and their answers: a fraction or a yes/no, on a scale."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from ..contract import EvaluationResult, EvaluatorContext
from ..criteria import Name, on_scale
from ..definition import EvaluatorConfig

# Characters that show nothing: the format characters, and the other ones Unicode says to ignore.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)


CriterionName = Annotated[
    Name | None, Field(description="The criterion to score; without one the result stands for itself")
]
Graded = EvaluationResult | list[EvaluationResult]


class TextConfig(EvaluatorConfig):
    """Which text an evaluator looks at, and which criterion it scores."""

    criterion_name: CriterionName = None
    source_field: str = Field(
        "response",
        validation_alias=AliasChoices("sourceField", "sourceTextField"),
        description='Where the text is: "response", "prompt", "groundTruth" or a path like "context.reply"',
    )


def nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def collapse(text: str) -> str:
    """Every run of blanks as one space, none around."""
    return " ".join(text.split())


def visible(text: str) -> str:
    """Without the characters that show nothing."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def comparable(text: str, *, case_sensitive: bool, collapsed: bool) -> str:
    """The form in which two texts are compared."""
    text = nfc(text)
    if not case_sensitive:
        # Folding can take a text out of its normal form.
        text = nfc(text.casefold())
    return collapse(text) if collapsed else text


def is_word(char: str) -> bool:
    """Whether a character belongs to a word: letters, digits, underscore, and marks on them."""
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"


def contains(text: str, term: str, *, whole_word: bool) -> bool:
    """Whether the term occurs. As a whole word, its edges must be word edges where they are letters."""
    if not whole_word:
        return term in text
    opens, closes = is_word(term[0]), is_word(term[-1])
    at = text.find(term)
    while at >= 0:
        end = at + len(term)
        glued_before = opens and at > 0 and is_word(text[at - 1])
        glued_after = closes and end < len(text) and is_word(text[end])
        if not (glued_before or glued_after):
            return True
        at = text.find(term, _after_word(text, at) if opens else at + 1)
    return False


def _after_word(text: str, at: int) -> int:
    """The end of the word at a place. No other word begins before it, so it is read only once."""
    at += 1
    while at < len(text) and is_word(text[at]):
        at += 1
    return at


def graded(ctx: EvaluatorContext[Any], fraction: float, reason: str, /, **metadata: Any) -> Graded:
    """A fraction that holds from the config's threshold up."""
    return _scored(ctx, ctx.config.criterion_name, fraction, ctx.config.threshold, reason, metadata)


def ruled(
    ctx: EvaluatorContext[Any], holds: bool, reason: str, rule: Any = None, /, **metadata: Any
) -> Graded:
    """A plain yes or no, for the criterion of the rule, or of the config where there are no rules."""
    name = (rule or ctx.config).criterion_name
    return _scored(ctx, name, 1.0 if holds else 0.0, 0.5, reason, metadata)


def _scored(
    ctx: EvaluatorContext[Any],
    criterion_name: str | None,
    fraction: float,
    threshold: float,
    reason: str,
    metadata: dict[str, Any],
) -> Graded:
    """The result on its criterion's scale. Nothing at all when its criterion is not declared."""
    result = EvaluationResult(fraction >= threshold, fraction, reason, metadata)
    if criterion_name is None:
        return result
    criterion = ctx.criterion(criterion_name)
    if criterion is None:
        return []
    result.criterion_name = criterion_name
    result.score = on_scale(fraction, criterion, threshold)
    return result


def as_list(result: Graded) -> list[EvaluationResult]:
    return result if isinstance(result, list) else [result]


def errored(
    error: Exception | str, criterion_name: str | None = None, /, **metadata: Any
) -> EvaluationResult:
    """One rule that could not be applied, where others of the same evaluator still can."""
    message = str(error) or type(error).__name__
    return EvaluationResult(error=message, criterion_name=criterion_name, metadata=metadata)
