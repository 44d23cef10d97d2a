"""How many of the expected keywords a text has. Keywords come from the config or from the record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, cast

from pydantic import AfterValidator, AliasChoices, Field, field_validator, model_validator

from ...messages import Message, text_of
from ..contract import EvaluatorContext, NotAvailable, TurnFacts
from ..definition import define_evaluator
from .terms import Terms, check_terms, is_quick
from .text import (
    Graded,
    ScopedTextConfig,
    characters_at,
    check_apart,
    comparable,
    graded,
    joined,
    scoped_texts,
    text_work,
    visible_word,
)

_SEPARATORS = re.compile(r"[,;，；、،؛\r\n\v\f\x85\u2028\u2029]")
_MOST_LISTED = 10


class KeywordCoverageConfig(ScopedTextConfig):
    """The keywords to look for, and how."""

    expected_keywords: list[Annotated[str, AfterValidator(visible_word)]] | None = Field(
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
    threshold: float = Field(0.5, gt=0, le=1, description="The least share of keywords that passes")

    @model_validator(mode="after")
    def _one_source(self) -> KeywordCoverageConfig:
        if (self.expected_keywords is None) == (not (self.keywords_source_field or "").strip()):
            raise ValueError("give either expectedKeywords or keywordsSourceField")
        check_apart(self.source_field, self.keywords_source_field, "keywordsSourceField")
        return self

    @field_validator("expected_keywords")
    @classmethod
    def _not_too_many(cls, keywords: list[str] | None) -> list[str] | None:
        check_terms(keywords or ())
        return keywords

    @cached_property
    def compiled(self) -> Terms:
        return Terms(self.expected, whole_word=self.match_whole_word)

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


def _work(config: KeywordCoverageConfig, facts: TurnFacts) -> float:
    path = config.keywords_source_field
    # Keywords that come with each record are made ready for each.
    return text_work(config, facts) + (10 * characters_at(path, facts) if path else 0)


@define_evaluator(
    type="keyword-coverage",
    gate="finally",
    inline=lambda config: is_quick(config.expected_keywords or ()),
    work=_work,
)
def keyword_coverage(ctx: EvaluatorContext[KeywordCoverageConfig]) -> Graded:
    """What the agent says mentions enough of the expected keywords."""
    config = ctx.config
    text = config.fold(joined(scoped_texts(ctx, config.scope, config.source_field)))
    path = config.keywords_source_field
    if config.expected_keywords:
        expected, terms = config.expected, config.compiled
    else:
        expected = config.folded(check_terms(_keywords_at(ctx, path or "")))
        terms = Terms(expected, whole_word=config.match_whole_word)
    forms = terms.present(text)
    present = [keyword for form, keyword in expected.items() if form in forms]
    missing = [keyword for form, keyword in expected.items() if form not in forms]
    share, reason = len(present) / len(expected), _reason(present, missing)
    return graded(ctx, share, reason, foundKeywords=present, missingKeywords=missing)


def _keywords_at(ctx: EvaluatorContext[KeywordCoverageConfig], path: str) -> list[str]:
    value: Any = ctx.find(path)
    if isinstance(value, list | tuple):
        texts = [_keyword(item, f"{path}[{place}]") for place, item in enumerate(cast(Sequence[Any], value))]
    else:
        texts = [] if value is None else split_keywords(_keyword(value, path))
    keywords = [text.strip() for text in texts if text.strip()]
    if not keywords:
        raise NotAvailable(f'no keywords at "{path}"')
    return keywords


def _keyword(value: object, path: str) -> str:
    text = text_of(value) if isinstance(value, Message) else value
    if not isinstance(text, str):
        raise NotAvailable(f'the keyword at "{path}" is a {type(value).__name__}, not text')
    return text


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
