"""Whether a text is free of given terms, also when they are written with look-alikes or hidden characters."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import define_evaluator
from .text import Graded, ScopedTextConfig, comparable, contains, ruled, scoped_texts, undisguised


def _plain(text: str, case_sensitive: bool) -> str:
    return comparable(undisguised(text), case_sensitive=case_sensitive, collapsed=True)


def _visible_term(term: str) -> str:
    if not _plain(term, case_sensitive=True):
        raise ValueError("must not be blank")
    return term


class ToxicityConfig(ScopedTextConfig):
    """The terms that must not occur."""

    toxic_terms: list[Annotated[str, AfterValidator(_visible_term)]] = Field(
        min_length=1, description="The words or phrases that must not occur"
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ")
    match_whole_word: bool = Field(True, description="Whether a term inside a longer word does not count")

    @cached_property
    def terms(self) -> dict[str, str]:
        """Each different term in the form to look for, with its first spelling."""
        forms: dict[str, str] = {}
        for term in self.toxic_terms:
            forms.setdefault(_plain(term, self.case_sensitive), term)
        return forms


@define_evaluator(type="toxicity", inline=True)
def toxicity(ctx: EvaluatorContext[ToxicityConfig]) -> Graded:
    """What the agent says has none of the given toxic terms."""
    config = ctx.config
    texts = [
        _plain(text, config.case_sensitive) for text in scoped_texts(ctx, config.scope, config.source_field)
    ]
    whole = config.match_whole_word
    present = [
        term
        for form, term in config.terms.items()
        if any(contains(text, form, whole_word=whole) for text in texts)
    ]
    reason = f"toxic terms found: {', '.join(present)}" if present else "no toxic terms found"
    result = ruled(ctx, not present, reason, foundToxicTerms=present)
    if isinstance(result, EvaluationResult) and result.criterion_name is not None:
        # A term occurs or it does not: a yes or no on every scale, not the end of a range.
        result.score = not present
    return result
