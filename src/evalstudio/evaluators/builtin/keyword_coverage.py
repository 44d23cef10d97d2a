"""How many of the expected keywords a text has. Keywords come from the config or from the record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, cast

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from ...messages import as_text
from ..contract import EvaluatorContext, NotAvailable
from ..criteria import named
from ..definition import define_evaluator
from .text import Graded, TextConfig, comparable, contains, graded

_SEPARATORS = re.compile(r"[,;，；、،؛\r\n\v\f\x85\u2028\u2029]")
_MOST_LISTED = 10


class KeywordCoverageConfig(TextConfig):
    """The keywords to look for, and how."""

    expected_keywords: list[Annotated[str, AfterValidator(named)]] | None = Field(
        None, min_length=1, description="The words or phrases to look for"
    )
    keywords_source_field: str | None = Field(
        None, description='Where the keywords are instead, as a list or as text, such as "groundTruth"'
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ")
    match_whole_word: bool = Field(True, description="Whether a keyword inside a longer word does not count")
    normalize_whitespace: bool = Field(
        True,
        validation_alias=AliasChoices("normalizeWhitespace", "normalizeWhitespaceForSource"),
        description="Whether runs of blanks count as one space",
    )
    threshold: float = Field(0.5, ge=0, le=1, description="The least share of keywords that passes")

    @model_validator(mode="after")
    def _one_source(self) -> KeywordCoverageConfig:
        if (self.expected_keywords is None) == (not (self.keywords_source_field or "").strip()):
            raise ValueError("give either expectedKeywords or keywordsSourceField")
        return self

    @cached_property
    def expected(self) -> dict[str, str]:
        return self.folded(self.expected_keywords or ())

    def fold(self, text: str) -> str:
        return comparable(text, case_sensitive=self.case_sensitive, collapsed=self.normalize_whitespace)

    def folded(self, keywords: Iterable[str]) -> dict[str, str]:
        """Each different keyword in the form to look for, with its first spelling."""
        forms: dict[str, str] = {}
        for keyword in keywords:
            forms.setdefault(self.fold(keyword), keyword)
        return forms


@define_evaluator(type="keyword-coverage", gate="finally", inline=True)
def keyword_coverage(ctx: EvaluatorContext[KeywordCoverageConfig]) -> Graded:
    """The response mentions enough of the expected keywords."""
    config = ctx.config
    text = config.fold(ctx.need_text(config.source_field))
    path = config.keywords_source_field
    expected = config.expected if config.expected_keywords else config.folded(_keywords_at(ctx, path or ""))
    present: list[str] = []
    missing: list[str] = []
    for form, keyword in expected.items():
        (present if contains(text, form, whole_word=config.match_whole_word) else missing).append(keyword)
    share, reason = len(present) / len(expected), _reason(present, missing)
    return graded(ctx, share, reason, foundKeywords=present, missingKeywords=missing)


def _keywords_at(ctx: EvaluatorContext[KeywordCoverageConfig], path: str) -> list[str]:
    value: Any = ctx.find(path)
    if isinstance(value, list | tuple):
        texts = [item for item in cast(Sequence[Any], value) if isinstance(item, str)]
    else:
        texts = split_keywords(as_text(value) or "")
    keywords = [text.strip() for text in texts if text.strip()]
    if not keywords:
        raise NotAvailable(f'no keywords at "{path}"')
    return keywords


def split_keywords(text: str) -> list[str]:
    """Phrases between commas, semicolons or line breaks; in a text without any of these, its words."""
    return _SEPARATORS.split(text) if _SEPARATORS.search(text) else text.split()


def _reason(present: Sequence[str], missing: Sequence[str]) -> str:
    total = len(present) + len(missing)
    reason = f"{len(present)} of {total} keyword{'s' if total > 1 else ''} found"
    if not missing:
        return reason
    more = len(missing) - _MOST_LISTED
    listed = ", ".join(missing[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
    return f"{reason}, missing: {listed}"
